// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

/// Names in a host's folder of run files, shared by the meter that writes them and the store that reads
/// them. docs/schema.md says what they mean.
namespace joulemark::run_format {

inline constexpr int schema = 1;

inline constexpr std::string_view runs_folder = "runs";
inline constexpr std::string_view run_file = "run.json";
inline constexpr std::string_view gpu_file = "gpu.csv";
inline constexpr std::string_view cpu_file = "cpu.csv";
inline constexpr std::string_view node_file = "node.csv";
inline constexpr std::string_view regions_file = "regions.csv";
inline constexpr std::string_view end_file = "end.json";
inline constexpr std::array all_files{run_file, gpu_file, cpu_file, node_file, regions_file, end_file};

/// The first columns of gpu.csv, cpu.csv and node.csv; a column per metric follows (sensors/metric.h).
inline constexpr std::array<std::string_view, 3> sample_columns{"time_ns", "read_ns", "device"};
inline constexpr std::array<std::string_view, 14> region_columns{
    "time_ns", "event",  "name", "index",        "rank",    "samples",
    "updates", "tokens", "loss", "quality_name", "quality", "quality_direction",
    "source",  "data"};

/// The meter's own regions.
inline constexpr std::string_view idle_before_region = "joulemark.idle_before";
inline constexpr std::string_view command_region = "joulemark.command";
inline constexpr std::string_view idle_after_region = "joulemark.idle_after";
inline constexpr std::string_view own_prefix = "joulemark.";

}  // namespace joulemark::run_format

// SPDX-License-Identifier: Apache-2.0
// How long a large study takes to load: writes a database of the size of Frey et al. 2022 (3,400 runs on 64
// GPUs with 10 regions each, 2.2 million rows of metrics, no series) into the working directory, then reads
// it run by run and prints time and peak memory. `store_load 100` makes 100 runs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/run_format.h"
#include "store/host_writer.h"
#include "store/load.h"
#include "store/schema.h"

namespace {

using namespace joulemark;
using namespace joulemark::store;

constexpr int hosts = 8, gpus = 8, regions = 10;

HostDigest synthetic_host(int host) {
    HostDigest digest;
    HostRecord& record = digest.record;
    record.host = fmt::format("node{}", host);
    record.run_json = {{"expected_hosts", nlohmann::json::array()},
                       {"factors", {{"gpus", hosts * gpus}, {"power_cap_w", 200}, {"local_batch", 128}}},
                       {"devices", nlohmann::json::array()},
                       {"sources", nlohmann::json::array()}};
    for (int i = 0; i < hosts; ++i) {
        record.run_json["expected_hosts"].push_back(fmt::format("node{}", i));
    }
    for (int gpu = 0; gpu < gpus; ++gpu) {
        const std::string id = fmt::format("gpu{}", gpu);
        record.run_json["devices"].push_back({{"device", id}, {"component", "gpu"}, {"memory_bytes", 17e9}});
        for (const char* source : {"nvml", "nvml.energy"}) {
            record.run_json["sources"].push_back({{"source", source},
                                                  {"device", id},
                                                  {"metrics", {"power_w"}},
                                                  {"method", "sampled"},
                                                  {"scope", "gpu board"},
                                                  {"period_s", 0.1}});
        }
    }
    record.end_json = {{"end_ns", 11'000'000'000}, {"exit_status", 0}};
    for (int index = 0; index < regions; ++index) {
        RegionRecord& region = record.regions.emplace_back();
        region.name = index == 0 ? std::string(run_format::command_region) : "epoch";
        region.index = index;
        region.start_ns = index * 1'000'000'000LL;
        region.end_ns = region.start_ns + 1'000'000'000;
        region.samples = 1000;
        for (int gpu = 0; gpu < gpus; ++gpu) {
            DeviceMetrics& m = region.devices.emplace_back();
            m.device = fmt::format("gpu{}", gpu);
            m.component = "gpu";
            m.energy_method = "counter";
            m.energy_j = m.energy_counter_j = m.energy_integrated_j = m.energy_protocol_j = 200.125 + gpu;
            m.mean_power_w = m.max_power_w = 200.25 + index;
            m.gpu_busy_pct = m.gpu_memory_util_pct = m.sm_clock_mhz = 87.5;
            m.covered_s = 1;
            m.samples = 10;
        }
    }
    return digest;
}

void write(const std::filesystem::path& path, int runs) {
    Database database(path);
    database.execute(schema_sql);
    HostWriter writer(database);
    Transaction transaction(database);
    for (int run = 0; run < runs; ++run) {
        const std::string name = fmt::format("run{:05}", run);
        for (int host = 0; host < hosts; ++host) {
            writer.write(name, synthetic_host(host), "synthetic");
        }
        writer.refresh_run(name);
    }
    transaction.commit();
}

}  // namespace

int main(int argc, char** argv) {
    const int runs = argc > 1 ? std::atoi(argv[1]) : 3400;
    const std::filesystem::path path = "store_load.sqlite";
    std::filesystem::remove(path);
    if (fork() == 0) {  // so that writing does not count in the peak memory of reading
        write(path, runs);
        std::_Exit(0);
    }
    wait(nullptr);
    const auto begin = std::chrono::steady_clock::now();
    double energy_j = 0;
    std::size_t rows = 0;
    for_each_run(Database(path), [&](const RunRecord& run) {
        for (const HostRecord& host : run.hosts) {
            for (const RegionRecord& region : host.regions) {
                for (const DeviceMetrics& device : region.devices) {
                    energy_j += device.energy_j.value_or(0);
                    ++rows;
                }
            }
        }
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{} runs, {} rows, {} MiB: {:.2f} s, {} MiB peak ({:.3e} J)\n", runs, rows,
               std::filesystem::file_size(path) >> 20, took.count(), usage.ru_maxrss >> 10, energy_j);
    std::filesystem::remove(path);
}

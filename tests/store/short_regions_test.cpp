// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "store/host_digest.h"
#include "temporary_folder.h"

namespace joulemark::store {
namespace {

using nlohmann::json;

constexpr double idle_w = 100, busy_w = 600, burst_s = 0.3, gap_s = 0.71, lag_s = 0.05;
constexpr int bursts = 30;

/// Energy of bursts that begin at 0 and every burst_s + gap_s; every other one draws `scatter` more, and the
/// rest that much less.
double energy_j(double until_s, double scatter = 0) {
    double busy_s = 0;
    for (int i = 0; i < bursts; ++i) {
        const double into_s = std::clamp(until_s - i * (burst_s + gap_s), 0.0, burst_s);
        busy_s += into_s * (1 + (i % 2 == 0 ? scatter : -scatter));
    }
    return idle_w * until_s + (busy_w - idle_w) * busy_s;
}

/// The folder of a host whose counter refreshes every 100 ms and is read every `period_s`. The command and
/// the first burst begin at time 0.
std::filesystem::path host_folder(const std::filesystem::path& folder, double period_s,
                                  const json& calibration = nullptr, double scatter = 0) {
    json source{{"source", "nvml.energy"}, {"device", "gpu0"},     {"metrics", {"energy_j"}},
                {"method", "counter"},     {"scope", "gpu board"}, {"period_s", period_s},
                {"native_period_s", 0.1}};
    if (!calibration.is_null()) {
        source["calibration"] = calibration;
    }
    const double end_s = bursts * (burst_s + gap_s);
    std::ofstream(folder / "run.json")
        << json{{"schema", 1},
                {"run", "r"},
                {"host", "h"},
                {"start_ns", 0},
                {"rate_hz", 10},
                {"devices", {{{"device", "gpu0"}, {"file", "gpu"}, {"component", "gpu"}}}},
                {"sources", json::array({source})}};
    std::ofstream(folder / "end.json") << json{{"end_ns", nanoseconds(end_s)}, {"exit_status", 0}};
    std::ofstream gpu(folder / "gpu.csv");
    gpu << "time_ns,read_ns,device,energy_j\n";
    for (double t = 0; t < end_s + period_s; t += period_s) {
        const double refreshed = std::floor((t + 0.037) / 0.1) * 0.1 - 0.037;
        gpu << nanoseconds(t) << ",0,gpu0," << std::to_string(1000 + energy_j(refreshed - lag_s, scatter))
            << '\n';
    }
    std::ofstream regions(folder / "regions.csv");
    regions << "time_ns,event,name,index,rank,samples,updates,tokens,loss,quality_name,quality,quality_"
               "direction,source,data\n";
    regions << "0,begin,joulemark.command,0,0,,,,,,,,meter,\n";
    for (int i = 0; i < bursts; ++i) {
        const double start = i * (burst_s + gap_s);
        regions << nanoseconds(start) << ",begin,epoch," << i << ",0,,,,,,,,socket,\n";
        regions << nanoseconds(start + burst_s) << ",end,epoch," << i << ",0,,,,,,,,socket,\n";
    }
    regions << nanoseconds(end_s) << ",end,joulemark.command,0,0,,,,,,,,meter,\n";
    return folder;
}

TEST(ShortRegions, AreAttributedWhereTheCounterWasSeenToRefresh) {
    const TemporaryFolder folder;
    const HostRecord host = digest_host(host_folder(folder.path(), 0.01), "r", "h").record;
    ASSERT_EQ(host.attributions.size(), 1U);
    EXPECT_EQ(host.attributions[0].name, "epoch");
    EXPECT_NEAR(host.attributions[0].refresh_s, 0.1, 1e-4);
    EXPECT_NEAR(host.attributions[0].lag_s, lag_s, 2e-3);
    EXPECT_FALSE(host.attributions[0].calibrated);
    int attributed = 0;
    for (const RegionRecord& region : host.regions) {
        if (region.name == "epoch" && region.devices[0].energy_method == "attributed") {
            ++attributed;
            EXPECT_NEAR(*region.devices[0].energy_j / (busy_w * burst_s), 1, 0.03);
            EXPECT_LT(*region.devices[0].energy_bound_j, 0.1 * busy_w * burst_s);
            EXPECT_DOUBLE_EQ(*region.devices[0].mean_power_w, *region.devices[0].energy_j / burst_s);
        }
    }
    EXPECT_GE(attributed, bursts - 1);  // the first one begins before any refresh was seen
    EXPECT_EQ(host.regions.front().devices[0].energy_method, "counter") << "the command is long";
}

TEST(ShortRegions, UseWhatCalibrationKnows) {
    const TemporaryFolder folder;
    const json calibration{{"energy_j", {{"refresh_s", 0.1}, {"lag_s", lag_s}, {"window_s", 0.0}}}};
    const HostRecord host = digest_host(host_folder(folder.path(), 0.01, calibration), "r", "h").record;
    ASSERT_EQ(host.attributions.size(), 1U);
    EXPECT_TRUE(host.attributions[0].calibrated);
    EXPECT_EQ(host.attributions[0].lag_s, lag_s);
}

TEST(ShortRegions, AnEpochShorterThanThePeriodHasABoundAndNoZero) {
    const TemporaryFolder folder;
    const HostRecord host = digest_host(host_folder(folder.path(), 1.0), "r", "h").record;
    EXPECT_TRUE(host.attributions.empty());
    const auto told = std::ranges::find(host.warnings, "short_regions", &Warning::code);
    ASSERT_NE(told, host.warnings.end());
    EXPECT_NE(told->text.find("--energy-rate"), std::string::npos);
    for (const RegionRecord& region : host.regions) {
        if (region.name == "epoch" && region.devices[0].energy_j) {
            EXPECT_GT(*region.devices[0].energy_j, 0);
            EXPECT_GE(*region.devices[0].energy_bound_j, 0.2 * *region.devices[0].energy_j);
        }
    }
}

TEST(ShortRegions, WideBoundsAreToldWhereAttributionFoundItsModelToo) {
    const TemporaryFolder folder;
    const HostRecord host = digest_host(host_folder(folder.path(), 0.01, nullptr, 0.9), "r", "h").record;
    const bool wide = std::ranges::any_of(host.regions, [](const RegionRecord& region) {
        const DeviceMetrics& metrics = region.devices[0];
        return region.name == "epoch" && *metrics.energy_bound_j > 0.1 * *metrics.energy_j;
    });
    EXPECT_FALSE(host.attributions.empty());
    EXPECT_TRUE(wide);
    EXPECT_EQ(std::ranges::count(host.warnings, "short_regions", &Warning::code), 1);
}

TEST(ShortRegions, ARegionThatStartsAtZeroHasAStart) {
    const TemporaryFolder folder;
    const HostRecord host = digest_host(host_folder(folder.path(), 0.01), "r", "h").record;
    const auto first = std::ranges::find(host.regions, "epoch", &RegionRecord::name);
    ASSERT_NE(first, host.regions.end());
    EXPECT_EQ(first->start_ns, 0);
    EXPECT_FALSE(first->open);
    EXPECT_DOUBLE_EQ(first->duration_s(), burst_s);
    ASSERT_TRUE(first->devices[0].energy_j);
    EXPECT_NEAR(*first->devices[0].energy_j, busy_w * burst_s, busy_w * 0.3);
}

}  // namespace
}  // namespace joulemark::store

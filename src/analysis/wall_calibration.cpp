// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_calibration.h"

#include <cmath>
#include <map>
#include <utility>

#include "analysis/json_access.h"
#include "stats/linear.h"

namespace joulemark::analysis {
namespace {

constexpr std::size_t least_runs = 3;

struct Group {
    std::vector<double> parts_w, wall_w;  ///< per host
    std::vector<const RunMetrics*> without_meter;
    bool simulated = false;
};

}  // namespace

std::vector<WallCalibration> wall_calibrations(const std::vector<RunMetrics>& runs) {
    std::map<std::pair<std::string, std::vector<std::string>>, Group> groups;
    for (const RunMetrics& run : runs) {
        if (!run.usable() || !run.energy_j || run.energy_uncertain || run.wall_time_s.value_or(0) <= 0 ||
            run.imported || run.hosts.empty() || run.components == std::vector<std::string>{"node"}) {
            continue;
        }
        Group& group = groups[{text(run.factors, "hardware"), run.components}];
        const auto wall = run.energy_by_component_j.find("node");
        if (wall == run.energy_by_component_j.end()) {
            group.without_meter.push_back(&run);
            continue;
        }
        const double host_seconds = *run.wall_time_s * static_cast<double>(run.hosts.size());
        group.parts_w.push_back(*run.energy_j / host_seconds);
        group.wall_w.push_back(wall->second / host_seconds);
        group.simulated = group.simulated || run.simulated;
    }
    std::vector<WallCalibration> calibrations;
    for (const auto& [key, group] : groups) {
        const auto line =
            group.parts_w.size() < least_runs ? std::nullopt : stats::fit_line(group.parts_w, group.wall_w);
        if (!line) {
            continue;
        }
        WallCalibration calibration{.hardware = key.first,
                                    .components = key.second,
                                    .base_w = line->parameter(0),
                                    .factor = line->parameter(1),
                                    .r2 = line->r2,
                                    .n = group.parts_w.size(),
                                    .estimates = {},
                                    .simulated = group.simulated};
        for (const RunMetrics* run : group.without_meter) {
            const double host_seconds = *run->wall_time_s * static_cast<double>(run->hosts.size());
            const Eigen::Vector2d at(1, *run->energy_j / host_seconds);
            stats::Estimate wall = line->mean_at(at);
            wall.ci95 = line->prediction_at(at);
            wall.value *= host_seconds;
            if (wall.ci95) {
                wall.ci95 = stats::Interval{wall.ci95->low * host_seconds, wall.ci95->high * host_seconds};
            }
            calibration.estimates.push_back({run->run, wall});
        }
        calibrations.push_back(std::move(calibration));
    }
    return calibrations;
}

}  // namespace joulemark::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/trade_off.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/configurations.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

/// What configurations must share to compute the same.
json work_of(const json& all) {
    json work = json::object();
    for (const char* name : {"workload", "hardware", "series", "samples", "epochs", "dataset_samples"}) {
        if (all.contains(name)) {
            work[name] = all[name];
        }
    }
    return work;
}

}  // namespace

std::vector<TradeOff> trade_offs(const std::vector<Configuration>& configurations) {
    std::map<std::pair<json, std::vector<std::string>>, std::vector<const Configuration*>> groups;
    for (const Configuration& configuration : configurations) {
        const auto known = [&](const char* metric) { return configuration.mean(metric).value_or(0) > 0; };
        if (known("epoch_time_s") && known("epoch_energy_j")) {
            const auto& components = configuration.runs.front()->components;
            groups[{work_of(configuration.factors), components}].push_back(&configuration);
        }
    }
    std::vector<TradeOff> found;
    for (const auto& [work, members] : groups) {
        const auto least = [&](const char* metric) {
            return *std::ranges::min_element(members, {},
                                             [&](const Configuration* c) { return *c->mean(metric); });
        };
        const Configuration* fastest = least("epoch_time_s");
        const Configuration* frugal = least("epoch_energy_j");
        if (fastest != frugal) {
            found.push_back({.group = work.first,
                             .fastest = fastest->factors,
                             .frugal = frugal->factors,
                             .time_ratio = ratio(*frugal, *fastest, "epoch_time_s"),
                             .energy_ratio = ratio(*frugal, *fastest, "epoch_energy_j"),
                             .simulated = any_simulated(members)});
        }
    }
    return found;
}

}  // namespace joulemark::analysis

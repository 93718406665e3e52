// SPDX-License-Identifier: Apache-2.0
#include "analysis/given.h"

#include <algorithm>
#include <cstdint>

#include "analysis/json_access.h"

namespace joulemark::analysis {

void add_given(RunMetrics& run) {
    const nlohmann::json& given = child(run.provenance, "given");
    if (!given.is_object()) {
        return;
    }
    run.components = given.value("components", std::vector<std::string>{});
    if (run.components.size() == 1 && run.energy_j) {
        run.energy_by_component_j[run.components.front()] = *run.energy_j;
    }
    run.mean_of = static_cast<std::size_t>(std::max(given.value("n", std::int64_t{1}), std::int64_t{1}));
    run.sd_given = given.value("sd", std::map<std::string, double>{});
    // An energy per epoch or per sample is the given energy over numbers that do not scatter.
    if (const auto sd = run.sd_given.find("energy_j"); sd != run.sd_given.end() && run.energy_j) {
        const double relative = sd->second / *run.energy_j;
        for (const auto& [name, value] : {std::pair("epoch_energy_j", run.epoch_energy_j),
                                          std::pair("joule_per_sample", run.joule_per_sample)}) {
            if (value && child(run.factors, "epochs").is_number()) {
                run.sd_given[name] = relative * *value;
            }
        }
    }
}

}  // namespace joulemark::analysis

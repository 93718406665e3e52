// SPDX-License-Identifier: Apache-2.0
#include "analysis/regressions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/configurations.h"
#include "stats/linear.h"

namespace joulemark::analysis {
namespace {

using Eigen::Index;
using nlohmann::json;
using Members = std::vector<const Configuration*>;

struct Column {
    std::string name;
    std::vector<double> values;  ///< per configuration
};

/// Beyond it an effect is named as hardly separable (Marquardt 1970).
constexpr double notable_inflation = 10;

bool varies(const Column& column) {
    const auto [low, high] = std::ranges::minmax_element(column.values);
    return low != column.values.end() && *high - *low > 1e-9 * std::abs(*high);
}

Eigen::MatrixXd matrix_of(const std::vector<Column>& columns) {
    const auto n = static_cast<Index>(columns.front().values.size());
    Eigen::MatrixXd matrix(n, static_cast<Index>(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j) {
        matrix.col(static_cast<Index>(j)) = Eigen::Map<const Eigen::VectorXd>(columns[j].values.data(), n);
    }
    return matrix;
}

/// Whether a column adds nothing to those before it and a constant.
bool depends_on(const std::vector<Column>& kept, const Column& column) {
    std::vector<Column> all = kept;
    all.push_back(column);
    return stats::variance_inflation(matrix_of(all)).back() > 1e8;
}

/// Least squares on configurations; columns that follow from others are refused with `reason`.
std::optional<Regression> regress(Regression regression, const std::vector<Column>& candidates,
                                  const std::vector<double>& response, const std::string& reason) {
    std::vector<Column> kept;
    for (const Column& column : candidates) {
        if (!varies(column)) {
            continue;
        }
        if (!kept.empty() && depends_on(kept, column)) {
            regression.refused.push_back({{column.name}, reason});
        } else {
            kept.push_back(column);
        }
    }
    const std::size_t n = response.size();
    if (kept.empty() || n < kept.size() + 2) {
        return std::nullopt;
    }
    const Eigen::MatrixXd regressors = matrix_of(kept);
    Eigen::MatrixXd design(regressors.rows(), regressors.cols() + 1);
    design << Eigen::VectorXd::Ones(regressors.rows()), regressors;
    const auto fit =
        stats::fit_linear(design, Eigen::Map<const Eigen::VectorXd>(response.data(), regressors.rows()));
    if (!fit) {
        return std::nullopt;
    }
    const auto inflation = stats::variance_inflation(regressors);
    regression.terms.push_back({"intercept", fit->parameter(0), std::nullopt});
    for (std::size_t j = 0; j < kept.size(); ++j) {
        regression.terms.push_back({kept[j].name, fit->parameter(static_cast<Index>(j) + 1), inflation[j]});
        if (inflation[j] > notable_inflation) {
            regression.notes.push_back(
                fmt::format("{} is nearly a combination of the other terms (variance inflation "
                            "{:.0f}): its value and theirs cannot be told apart well",
                            kept[j].name, inflation[j]));
        }
    }
    regression.r2 = fit->r2;
    regression.n = n;
    return regression;
}

json subset(const json& factors, std::initializer_list<const char*> names) {
    json kept = json::object();
    for (const char* name : names) {
        if (const auto found = factors.find(name); found != factors.end()) {
            kept[name] = *found;
        }
    }
    return kept;
}

std::string hardware_of(const Configuration& configuration) {
    const auto found = configuration.factors.find("hardware");
    return found != configuration.factors.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Whether samples and updates can be told apart: the local batch varies on some hardware.
bool local_batch_varies(const Members& members) {
    std::map<std::string, std::set<double>> batches;
    for (const Configuration* member : members) {
        // The factor where it is known: samples / updates also moves with an epoch's last, partial batch.
        const auto factor = member->factors.find("local_batch");
        batches[hardware_of(*member)].insert(factor != member->factors.end() && factor->is_number()
                                                 ? 1e6 * factor->get<double>()
                                                 : std::round(1e6 * *member->mean("samples_per_gpu_hour") /
                                                              *member->mean("updates_per_gpu_hour")));
    }
    return std::ranges::any_of(batches, [](const auto& entry) {
        return entry.second.size() > 1 && *entry.second.rbegin() > 1.001 * *entry.second.begin();
    });
}

std::optional<Regression> power_of(const json& group, const Members& members) {
    Column samples{"samples_per_gpu_hour", {}}, updates{"updates_per_gpu_hour", {}}, gpus{"gpus", {}};
    std::vector<double> power;
    std::set<std::string> hardware;
    for (const Configuration* member : members) {
        power.push_back(1000 * *member->mean("energy_per_gpu_hour_kwh"));
        samples.values.push_back(*member->mean("samples_per_gpu_hour"));
        updates.values.push_back(*member->mean("updates_per_gpu_hour"));
        gpus.values.push_back(*member->number("gpus"));
        hardware.insert(hardware_of(*member));
    }
    std::vector<Column> columns{samples};
    Regression regression{.response = "power_per_gpu_w",
                          .group = group,
                          .terms = {},
                          .refused = {},
                          .notes = {},
                          .simulated = any_simulated(members)};
    if (local_batch_varies(members)) {
        columns.push_back(updates);
    } else {
        regression.refused.push_back({{"samples_per_gpu_hour", "updates_per_gpu_hour"},
                                      "samples are updates x local batch, and the local batch does not vary: "
                                      "their effects are one; vary "
                                      "local_batch to separate them"});
    }
    columns.push_back(gpus);
    for (auto name = hardware.begin(); name != hardware.end(); ++name) {
        if (name == hardware.begin()) {
            continue;  // the reference
        }
        Column indicator{"hardware=" + *name, {}};
        for (const Configuration* member : members) {
            indicator.values.push_back(hardware_of(*member) == *name ? 1 : 0);
        }
        columns.push_back(std::move(indicator));
    }
    return regress(std::move(regression), columns, power,
                   "it follows from the other terms in this study: vary it on its own");
}

constexpr const char* follows = "it follows from the other terms in this design: vary it on its own";
constexpr std::array effect_factors{"gpus", "power_cap_w", "sm_clock_mhz", "local_batch", "global_batch"};

/// Main effects on the logarithm, about the mean of the design so that they stay what they are beside
/// interactions.
std::vector<Column> main_effects(const Members& members) {
    std::vector<Column> columns;
    for (const char* factor : effect_factors) {
        Column column{factor, {}};
        for (const Configuration* member : members) {
            const Value level = member->number(factor);
            if (!level || *level <= 0) {
                break;
            }
            column.values.push_back(std::log(*level));
        }
        if (column.values.size() != members.size() || !varies(column)) {
            continue;
        }
        double mean = 0;
        for (const double value : column.values) {
            mean += value / static_cast<double>(column.values.size());
        }
        for (double& value : column.values) {
            value -= mean;
        }
        columns.push_back(std::move(column));
    }
    return columns;
}

/// Whether some pair of factors varies jointly: the interactions are no combination of the main effects.
bool crossed(const std::vector<Column>& columns, std::size_t mains) {
    const std::vector<Column> main(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(mains));
    return std::any_of(columns.begin() + static_cast<std::ptrdiff_t>(mains), columns.end(),
                       [&](const Column& product) { return varies(product) && !depends_on(main, product); });
}

std::optional<Regression> effects_on(const char* response, const json& group, const Members& all) {
    Members members;
    std::vector<double> values;
    for (const Configuration* member : all) {
        const Value mean = member->mean(response);
        if (mean && *mean > 0) {
            members.push_back(member);
            values.push_back(std::log(*mean));
        }
    }
    if (members.size() < 4) {
        return std::nullopt;
    }
    Regression regression{.response = fmt::format("log {}", response),
                          .group = group,
                          .terms = {},
                          .refused = {},
                          .notes = {},
                          .simulated = any_simulated(members)};
    std::vector<Column> columns;
    for (Column& column : main_effects(members)) {
        if (!columns.empty() && depends_on(columns, column)) {
            regression.refused.push_back({{column.name}, follows});
        } else {
            columns.push_back(std::move(column));
        }
    }
    const std::size_t mains = columns.size();
    if (mains < 2) {
        // One factor has laws of its own, and a batch that follows from it is no second one; but of factors
        // that always moved together that is to be said.
        const bool together = std::ranges::any_of(regression.refused, [](const Regression::Refusal& refusal) {
            return !refusal.terms.front().ends_with("_batch");
        });
        return together ? regress(std::move(regression), columns, values, follows) : std::nullopt;
    }
    for (std::size_t i = 0; i < mains; ++i) {
        for (std::size_t j = i + 1; j < mains; ++j) {
            Column product{columns[i].name + " x " + columns[j].name, {}};
            for (std::size_t k = 0; k < members.size(); ++k) {
                product.values.push_back(columns[i].values[k] * columns[j].values[k]);
            }
            columns.push_back(std::move(product));
        }
    }
    // Interactions must not crowd out the mains: with too few configurations there are none.
    if (members.size() < columns.size() + 3) {
        for (std::size_t k = mains; k < columns.size(); ++k) {
            regression.refused.push_back({{columns[k].name}, "too few configurations for interactions"});
        }
        columns.resize(mains);
    } else if (!crossed(columns, mains)) {
        for (std::size_t k = mains; k < columns.size(); ++k) {
            regression.refused.push_back(
                {{columns[k].name},
                 "no two factors vary together: a one-factor design shows each effect at the "
                 "baseline of the others only; use design: full-factorial"});
        }
        columns.resize(mains);
    }
    return regress(std::move(regression), columns, values, follows);
}

}  // namespace

std::vector<Regression> power_regressions(const std::vector<Configuration>& configurations) {
    std::map<json, Members> groups;
    for (const Configuration& configuration : configurations) {
        if (configuration.mean("energy_per_gpu_hour_kwh") && configuration.number("gpus") &&
            configuration.mean("samples_per_gpu_hour").value_or(0) > 0 &&
            configuration.mean("updates_per_gpu_hour").value_or(0) > 0) {
            groups[subset(configuration.factors, {"workload", "series", "power_cap_w", "sm_clock_mhz"})]
                .push_back(&configuration);
        }
    }
    std::vector<Regression> regressions;
    for (const auto& [group, members] : groups) {
        if (auto regression = power_of(group, members)) {
            regressions.push_back(std::move(*regression));
        }
    }
    return regressions;
}

std::vector<Regression> factor_effects(const std::vector<Configuration>& configurations) {
    std::map<json, Members> groups;
    for (const Configuration& configuration : configurations) {
        groups[subset(configuration.factors, {"workload", "hardware", "series", "dataset_samples"})]
            .push_back(&configuration);
    }
    std::vector<Regression> regressions;
    for (const auto& [group, members] : groups) {
        for (const char* response : {"epoch_time_s", "epoch_energy_j"}) {
            if (auto regression = effects_on(response, group, members)) {
                regressions.push_back(std::move(*regression));
            }
        }
    }
    return regressions;
}

}  // namespace joulemark::analysis

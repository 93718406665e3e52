// SPDX-License-Identifier: Apache-2.0
#include "meter/summary.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "report/terminal.h"

namespace joulemark::meter {
namespace {

struct Component {
    std::string_view key, label, scope;
};
constexpr std::array components{
    Component{"gpu", "GPU", "gpu"},
    Component{"cpu", "CPU", "cpu"},
    Component{"dram", "DRAM", "dram"},
    Component{"node", "node", "node"},
};

/// Devices of one component, added up.
struct Sum {
    double best = 0, counter = 0, integrated = 0, epochs = 0;
    int devices = 0, counters = 0, integrals = 0, with_epochs = 0;
    bool simulated = false, estimated = false;
};

Sum sum_of(const SummaryInput& input, std::string_view component) {
    Sum sum;
    for (const Totals::Entry& entry : input.energies) {
        if (entry.component != component) {
            continue;
        }
        ++sum.devices;
        sum.best += *entry.best();
        sum.counters += entry.counter_j ? 1 : 0;
        sum.counter += entry.counter_j.value_or(0);
        sum.integrals += entry.integrated_j ? 1 : 0;
        sum.integrated += entry.integrated_j.value_or(0);
        sum.with_epochs += entry.epochs_j ? 1 : 0;
        sum.epochs += entry.epochs_j.value_or(0);
        sum.simulated = sum.simulated || entry.method == "simulated";
        sum.estimated = sum.estimated || entry.method == "estimated";
    }
    return sum;
}

std::string method_text(const Sum& sum) {
    std::string text = sum.simulated ? "simulated, " : sum.estimated ? "estimated, " : "";
    if (sum.counters < sum.devices) {
        return text + "integrated power";
    }
    text += "counter";
    if (sum.integrals == sum.devices && sum.counter > 0) {
        text += fmt::format(" (integrated power {}, {:+.1f} %)", report::energy_text(sum.integrated),
                            100 * (sum.integrated / sum.counter - 1));
    }
    return text;
}

std::string mean_power_text(const Sum& sum, const Component& component, double command_s) {
    if (command_s <= 0) {
        return "";
    }
    const auto watts = report::number_text(sum.best / sum.devices / command_s);
    return component.key == "gpu" ? fmt::format(", mean {} W per GPU ({} GPU{})", watts, sum.devices,
                                                sum.devices == 1 ? "" : "s")
                                  : fmt::format(", mean {} W", report::number_text(sum.best / command_s));
}

/// Why there is no energy of a component, from the sensors that could have told it.
std::string reason(const sensors::Machine& machine, std::string_view scope) {
    for (const sensors::SensorReport& report : machine.reports) {
        if (report.status == "unavailable" && report.scope.starts_with(scope) &&
            (report.quantity.starts_with("energy") || report.quantity.starts_with("power"))) {
            return fmt::format(" ({})", report.reason);
        }
    }
    return "";
}

void add(std::string& text, std::string_view label, std::string_view value) {
    text += fmt::format("  {:<8} {}\n", label, value);
}

}  // namespace

std::string summary(const SummaryInput& input, const sensors::Machine& machine) {
    std::string text =
        fmt::format("joulemark: {}: {}, {}\n", input.run, report::duration_text(input.command_s),
                    input.end.signal ? fmt::format("ended by signal {}", *input.end.signal)
                                     : fmt::format("exit status {}", input.end.exit_status));
    std::string contains;
    std::string lacks;
    double total = 0;
    double epochs = 0;
    int metered = 0;
    bool marked_simulated = false;
    for (const Component& component : components) {
        const Sum sum = sum_of(input, component.key);
        if (sum.devices == 0) {
            if (component.key != "node") {
                lacks += fmt::format("{}{}{}", lacks.empty() ? "" : ", ", component.label,
                                     reason(machine, component.scope));
            }
            continue;
        }
        add(text, component.label,
            fmt::format("{:<10} {}{}", report::energy_text(sum.best), method_text(sum),
                        mean_power_text(sum, component, input.command_s)));
        marked_simulated = marked_simulated || sum.simulated;
        if (component.key != "node") {  // contains the others
            contains += fmt::format("{}{}", contains.empty() ? "" : " + ", component.label);
            total += sum.best;
            epochs += sum.epochs;
            ++metered;
        }
    }
    if (metered > 1) {
        add(text, "total", fmt::format("{:<10} {}", report::energy_text(total), contains));
    }
    if (!lacks.empty()) {
        add(text, "lacks", lacks);
    }
    if (input.epochs.count > 0) {
        const auto count = static_cast<double>(input.epochs.count);
        add(text, "epochs",
            fmt::format(
                "{}, mean {}{}", input.epochs.count, report::duration_text(input.epochs.seconds / count),
                metered == 0 ? ""
                             : fmt::format(", {} each ({})", report::energy_text(epochs / count), contains)));
    }
    std::string own = fmt::format("{} CPU, {:.1f} MiB", report::duration_text(input.cost.cpu_s),
                                  static_cast<double>(input.cost.max_rss_bytes) / (1 << 20));
    if (input.statistics) {
        own += fmt::format(", {} in sensor reads", report::duration_text(input.statistics->driver_s));
    }
    if (input.statistics && !input.statistics->achieved_hz.empty()) {
        const auto& rates = input.statistics->achieved_hz;
        const auto fastest =
            std::ranges::max_element(rates, {}, [](const auto& rate) { return rate.second; });
        own += fmt::format(", {:.4g} samples/s", fastest->second);
        if (input.statistics->late > 0) {
            own += fmt::format(" ({} left out: reading took too long)", input.statistics->late);
        }
    }
    if (input.counts.lost > 0) {
        own += fmt::format(", {} of {} rows lost", input.counts.lost, input.counts.rows);
    }
    add(text, "meter", own);
    add(text, "data", input.folder);
    if (machine.simulated && !marked_simulated) {
        add(text, "note", "the GPUs are simulated");
    }
    for (const std::string& warning : input.warnings) {
        add(text, "warning", warning);
    }
    return text;
}

}  // namespace joulemark::meter

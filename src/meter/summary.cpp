// SPDX-License-Identifier: Apache-2.0
#include "meter/summary.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/energy.h"
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
    double power_w = 0;  ///< mean over the time that the readings cover
    int devices = 0, counters = 0, integrals = 0, with_epochs = 0;
    bool simulated = false, estimated = false, whole = true;
    std::string doubts;   ///< of counters whose device has another reading
    std::string unknown;  ///< devices without energy, and why
};

void append(std::string& list, std::string_view item) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", item);
}

Sum sum_of(const SummaryInput& input, const sensors::Machine& machine, std::string_view component) {
    Sum sum;
    for (const Totals::Entry& entry : input.energies) {
        if (entry.component != component) {
            continue;
        }
        if (!entry.doubt.empty()) {
            append(entry.best() ? sum.doubts : sum.unknown,
                   fmt::format("the counter of {} {}", entry.device, entry.doubt));
        }
        if (!entry.best()) {
            continue;
        }
        const bool counted = entry.counter_j && entry.doubt.empty();
        ++sum.devices;
        sum.best += *entry.best();
        sum.power_w += entry.covered_s > 0 ? *entry.best() / entry.covered_s : 0;
        sum.whole = sum.whole && entry.covers(input.command_s);
        sum.counters += counted ? 1 : 0;
        sum.counter += counted ? *entry.counter_j : 0;
        sum.integrals += entry.integrated_j ? 1 : 0;
        sum.integrated += entry.integrated_j.value_or(0);
        sum.with_epochs += entry.epochs_j ? 1 : 0;
        sum.epochs += entry.epochs_j.value_or(0);
        sum.simulated = sum.simulated || entry.method == "simulated";
        sum.estimated = sum.estimated || entry.method == "estimated";
    }
    for (const sensors::Device& device : machine.devices) {
        const bool told = std::ranges::count(input.energies, device.id, &Totals::Entry::device) > 0;
        if (component == "gpu" && device.component == component && !told && sum.devices > 0) {
            append(sum.unknown, device.id + " told none");
        }
    }
    return sum;
}

std::string method_text(const Sum& sum) {
    std::string text = sum.simulated ? "simulated, " : sum.estimated ? "estimated, " : "";
    if (sum.counters < sum.devices) {
        text += sum.counters > 0 ? "counter and integrated power" : "integrated power";
        return text + (sum.doubts.empty() ? "" : fmt::format(" ({})", sum.doubts));
    }
    text += "counter";
    if (sum.integrals == sum.devices && sum.counter > 0) {
        text += fmt::format(" (integrated power {}, {:+.1f} %)", report::energy_text(sum.integrated),
                            100 * (sum.integrated / sum.counter - 1));
    }
    return text;
}

std::string mean_power_text(const Sum& sum, const Component& component) {
    if (sum.power_w <= 0) {
        return "";
    }
    const char* of = sum.whole ? "" : " while read";
    return component.key == "gpu"
               ? fmt::format(", mean {} W per GPU{} ({} GPU{})", report::number_text(sum.power_w / sum.devices),
                             of, sum.devices, sum.devices == 1 ? "" : "s")
               : fmt::format(", mean {} W{}", report::number_text(sum.power_w), of);
}

/// Why there is no energy of a component, from the first sensor that could have told it and from the estimate, which
/// the user can do something about.
std::string reason(const sensors::Machine& machine, std::string_view scope) {
    std::string text;
    for (const sensors::SensorReport& report : machine.reports) {
        const bool estimate = report.name.starts_with("cpu-estimate");
        if (report.status == "unavailable" && report.scope.starts_with(scope) &&
            (report.quantity.starts_with("energy") || report.quantity.starts_with("power")) &&
            (text.empty() || estimate)) {
            text += text.empty() ? "" : "; ";
            text += estimate ? fmt::format("{}: {}", report.reason, report.remedy) : report.reason;
        }
    }
    return text.empty() ? "" : fmt::format(" ({})", text);
}

/// What a counter went through that it may not have come out of whole; "" if nothing.
std::string events_text(const sensors::CounterEvents& events) {
    std::string text;
    for (const auto& [count, what] : {std::pair(events.resets, "was reset"),
                                      std::pair(events.frozen, "stood still while power was drawn"),
                                      std::pair(events.unknowable, "may have wrapped more than once unseen")}) {
        if (count > 0) {
            append(text, count == 1 ? std::string(what) : fmt::format("{} ({} times)", what, count));
        }
    }
    return text.empty() ? "" : "the energy counter " + text;
}

void add(std::string& text, std::string_view label, std::string_view value) {
    text += fmt::format("  {:<8} {}\n", label, value);
}

}  // namespace

std::vector<std::string> coverage_warnings(const std::vector<Totals::Entry>& energies, double command_s) {
    std::vector<std::string> warnings;
    for (const Totals::Entry& entry : energies) {
        if (entry.best() && !entry.covers(command_s)) {
            warnings.push_back(fmt::format("{} was read for {} of {} only: its energy is that of this time",
                                           entry.device, report::duration_text(entry.covered_s),
                                           report::duration_text(command_s)));
        }
    }
    return warnings;
}

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
    bool whole = true;
    bool partly = false;
    bool epochs_whole = true;
    const bool module_scope = std::ranges::any_of(
        machine.sources, [](const auto& source) { return source->info().scope == "gpu module"; });
    for (const Component& component : components) {
        const Sum sum = sum_of(input, machine, component.key);
        if (!sum.unknown.empty()) {
            append(lacks, fmt::format("{} ({})", component.label, sum.unknown));
        } else if (sum.devices == 0 && component.key != "node") {
            append(lacks, fmt::format("{}{}", component.label, reason(machine, component.scope)));
        }
        if (sum.devices == 0) {
            continue;
        }
        add(text, component.label,
            fmt::format("{}{:<10} {}{}", sum.whole ? "" : "at least ", report::energy_text(sum.best),
                        method_text(sum), mean_power_text(sum, component)));
        marked_simulated = marked_simulated || sum.simulated;
        if (counts_in_total(component.key, module_scope, false)) {
            contains += fmt::format("{}{}", contains.empty() ? "" : " + ", component.label);
            total += sum.best;
            epochs += sum.epochs;
            whole = whole && sum.whole;
            partly = partly || !sum.unknown.empty();
            epochs_whole = epochs_whole && sum.with_epochs == sum.devices;
            ++metered;
        }
    }
    if (metered > 1 && !partly) {
        add(text, "total", fmt::format("{}{:<10} {}", whole ? "" : "at least ", report::energy_text(total), contains));
    }
    if (!lacks.empty()) {
        add(text, "lacks", lacks);
    }
    if (input.epochs.count > 0 || input.epochs.aborted > 0) {
        const auto count = static_cast<double>(input.epochs.count);
        std::string line = fmt::format("{}", input.epochs.count);
        if (input.epochs.count > 0) {
            line += fmt::format(", mean {}", report::duration_text(input.epochs.seconds / count));
        }
        if (input.epochs.count > 0 && metered > 0 && !partly && epochs_whole) {
            line += fmt::format(", {} each ({})", report::energy_text(epochs / count), contains);
        }
        if (input.epochs.aborted > 0) {
            line += fmt::format("; {} aborted and left out", input.epochs.aborted);
        }
        add(text, "epochs", line);
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
    for (const auto& source : machine.sources) {
        if (const std::string events = events_text(source->events()); !events.empty()) {
            add(text, "warning",
                fmt::format("{} of {}: {}", source->info().name, source->info().device, events));
        }
    }
    return text;
}

}  // namespace joulemark::meter

// SPDX-License-Identifier: Apache-2.0
#include "sensors/probe.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "core/units.h"

namespace joulemark::sensors {
namespace {

/// When the values of one metric changed.
struct Changes {
    double last = std::nan("");
    std::vector<std::int64_t> at_ns;
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// The median time between changes. The first change starts the clock, so three are needed.
std::optional<double> period(const Changes& changes) {
    constexpr std::size_t least = 3;
    if (changes.at_ns.size() < least) {
        return std::nullopt;
    }
    std::vector<double> gaps;
    for (std::size_t i = 1; i < changes.at_ns.size(); ++i) {
        gaps.push_back(seconds(changes.at_ns[i] - changes.at_ns[i - 1]));
    }
    return median(std::move(gaps));
}

ProbeResult probe_source(Source& source, Clock& clock, double duration_s) {
    constexpr std::int64_t step_ns = ns_per_s / 1000;
    const std::size_t n = source.info().metrics.size();
    const MonotonicClock real;
    std::vector<double> values(n);
    std::vector<double> latencies;
    std::vector<Changes> changes(n);
    const std::int64_t end_ns = clock.now_ns() + nanoseconds(duration_s);
    while (true) {
        const std::int64_t now_ns = clock.now_ns();
        const std::int64_t before_ns = real.now_ns();
        source.read(values);
        latencies.push_back(seconds(real.now_ns() - before_ns));
        for (std::size_t i = 0; i < n; ++i) {
            if (!std::isnan(values[i]) && values[i] != changes[i].last) {
                if (!std::isnan(changes[i].last)) {
                    changes[i].at_ns.push_back(now_ns);
                }
                changes[i].last = values[i];
            }
        }
        if (now_ns >= end_ns) {
            break;
        }
        clock.drive_until(now_ns + step_ns, {});
    }
    ProbeResult result;
    result.read_latency_s = median(std::move(latencies));
    std::ranges::transform(changes, std::back_inserter(result.update_period_s), period);
    return result;
}

}  // namespace

std::vector<ProbeResult> probe(const Machine& machine, double duration_s) {
    std::vector<ProbeResult> results(machine.sources.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < results.size(); ++i) {
            threads.emplace_back([&machine, &result = results[i], &source = *machine.sources[i], duration_s] {
                result = probe_source(source, *machine.clock, duration_s);
            });
        }
    }
    return results;
}

void probe_reports(Machine& machine) {
    const std::vector<ProbeResult> results = probe(machine);
    for (std::size_t i = 0; i < results.size(); ++i) {
        const SourceInfo& info = machine.sources[i]->info();
        const std::string name = fmt::format("{} {}", info.name, info.device);
        for (std::size_t m = 0; m < info.metrics.size(); ++m) {
            for (SensorReport& report : machine.reports) {
                if (report.status == "used" && report.name == name && report.quantity == quantity(info.metrics[m])) {
                    report.update_period_s = results[i].update_period_s[m];
                    report.read_latency_s = results[i].read_latency_s;
                }
            }
        }
    }
}

}  // namespace joulemark::sensors

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

/// The median of some reads, one after the other and with no other going on: they wait for each other in the
/// driver.
double read_latency(Source& source) {
    constexpr std::size_t most = 21;
    constexpr double long_enough_s = 0.1;
    const MonotonicClock real;
    std::vector<double> values(source.info().metrics.size());
    std::vector<double> latencies;
    double total_s = 0;
    while (latencies.size() < most && total_s < long_enough_s) {
        const std::int64_t before_ns = real.now_ns();
        source.read(values);
        latencies.push_back(seconds(real.now_ns() - before_ns));
        total_s += latencies.back();
    }
    return median(std::move(latencies));
}

std::vector<std::optional<double>> update_periods(Source& source, Clock& clock, double duration_s) {
    constexpr std::int64_t step_ns = ns_per_s / 1000;
    const std::size_t n = source.info().metrics.size();
    std::vector<double> values(n);
    std::vector<Changes> changes(n);
    const std::int64_t end_ns = clock.now_ns() + nanoseconds(duration_s);
    while (true) {
        const std::int64_t now_ns = clock.now_ns();
        source.read(values);
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
    std::vector<std::optional<double>> periods;
    std::ranges::transform(changes, std::back_inserter(periods), period);
    return periods;
}

}  // namespace

std::vector<ProbeResult> probe(const Machine& machine, double duration_s) {
    std::vector<ProbeResult> results(machine.sources.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        results[i].read_latency_s = read_latency(*machine.sources[i]);
    }
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < results.size(); ++i) {
            threads.emplace_back([&machine, &result = results[i], &source = *machine.sources[i], duration_s] {
                result.update_period_s = update_periods(source, *machine.clock, duration_s);
            });
            if (machine.clock->simulated()) {  // its time would pass while another's thread waits for a core
                threads.back().join();
            }
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
                if (report.status == "used" && report.name == name &&
                    report.quantity == quantity(info.metrics[m])) {
                    report.update_period_s = results[i].update_period_s[m];
                    report.read_latency_s = results[i].read_latency_s;
                }
            }
        }
    }
}

}  // namespace joulemark::sensors

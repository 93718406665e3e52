// SPDX-License-Identifier: Apache-2.0
//
// RAPL through the kernel's perf events, where the powercap files are closed: perf asks for CAP_PERFMON, or
// for kernel.perf_event_paranoid <= 0, and its counters are 64 bits wide.
#include "sensors/perf_rapl.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/csv.h"
#include "sensors/backend.h"
#include "sensors/counter.h"
#include "sensors/cpu_info.h"

namespace joulemark::sensors {
namespace {

constexpr const char* power_events = "sys/bus/event_source/devices/power";

class PerfSource final : public Source {
  public:
    PerfSource(SourceInfo info, files::Descriptor event, CounterModel model)
        : Source(std::move(info)), event_(std::move(event)), counter_(model) {}

    void read(std::span<double> values) noexcept override {
        std::uint64_t count = 0;
        const bool good = ::read(event_.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count);
        values[0] = counter_.update(clock_.now_ns(), good ? std::optional(count) : std::nullopt);
    }
    CounterEvents events() const override { return counter_.events(); }

  private:
    files::Descriptor event_;
    Counter counter_;
    MonotonicClock clock_;
};

struct Domain {
    const char* event;
    const char* component;
    const char* scope;
};
constexpr Domain domains[] = {{"energy-pkg", "cpu", "cpu package"}, {"energy-ram", "dram", "dram"}};

/// "event=0x02" as a number.
std::optional<std::uint64_t> event_code(const std::string& text) {
    const std::size_t at = text.find("0x");
    std::uint64_t code = 0;
    if (at == std::string::npos ||
        std::from_chars(text.data() + at + 2, text.data() + text.size(), code, 16).ec != std::errc{}) {
        return std::nullopt;
    }
    return code;
}

/// "0,32" or "0-1": one processor per package.
std::vector<int> cpu_list(const std::string& text) {
    std::vector<int> cpus;
    std::vector<std::string> parts;
    csv::split(text, parts);
    for (const std::string& part : parts) {
        const std::size_t dash = part.find('-');
        const auto low = csv::integer(part.substr(0, dash));
        const auto high = dash == std::string::npos ? low : csv::integer(part.substr(dash + 1));
        for (auto cpu = low.value_or(0); low && high && cpu <= *high; ++cpu) {
            cpus.push_back(static_cast<int>(cpu));
        }
    }
    return cpus;
}

}  // namespace

int open_perf_event(std::uint32_t type, std::uint64_t config, int cpu) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

void add_perf_rapl(Discovery& discovery, PerfOpener open) {
    const FileTree& files = discovery.files;
    Machine& machine = discovery.machine;
    const auto type = files.number(fmt::format("{}/type", power_events));
    if (machine.simulated || !type) {
        return;  // RAPL's own report says why there is none
    }
    const std::string model_name = read_cpu_info(files).model;
    for (const Domain& domain : domains) {
        const std::string event = fmt::format("{}/events/{}", power_events, domain.event);
        const auto code = event_code(files.line(event).value_or(""));
        const auto scale = csv::number(files.line(event + ".scale").value_or(""));
        if (!code || !scale || !(*scale > 0)) {
            continue;
        }
        for (const int cpu : cpu_list(files.line(std::string(power_events) + "/cpumask").value_or(""))) {
            const auto package =
                files.number(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu));
            const std::string id = fmt::format("{}{}", domain.component, package.value_or(0));
            const std::string name = fmt::format("perf {}", id);
            if (discovery.has(id)) {
                discovery.available(name, "energy", domain.scope,
                                    "the powercap file of the same counter is used");
                continue;
            }
            files::Descriptor descriptor(open(static_cast<std::uint32_t>(*type), *code, cpu));
            if (!descriptor) {
                discovery.unavailable(
                    name, "energy", domain.scope,
                    {fmt::format("perf event {} cannot be opened: {}", domain.event, std::strerror(errno)),
                     "sudo sysctl kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on joulemark"});
                continue;
            }
            discovery.add({.id = id,
                           .file = File::cpu,
                           .name = model_name,
                           .component = domain.component,
                           .index = static_cast<int>(package.value_or(0))});
            SourceInfo info;
            info.name = "perf";
            info.device = id;
            info.metrics = {Metric::cpu_energy_j};
            info.method = "counter";
            info.scope = domain.scope;
            info.origin = fmt::format("perf event power/{}", domain.event);
            info.native_period_s = 0.001;
            const CounterModel model{
                .modulus = 0,
                .units_per_joule = 1 / *scale,
                .max_power_w = 1000,
                .min_power_w = std::string_view(domain.component) == "dram" ? 0.01 : 0.1};
            discovery.use(std::make_unique<PerfSource>(std::move(info), std::move(descriptor), model),
                          "RAPL through perf events, since its powercap file is closed or missing");
        }
    }
}

void discover_perf_rapl(Discovery& discovery) {
    if (discovery.options.root == "/") {  // events are the kernel's: none lies below another root
        add_perf_rapl(discovery, open_perf_event);
    }
}

}  // namespace joulemark::sensors

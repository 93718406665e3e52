// SPDX-License-Identifier: Apache-2.0
//
// Utilisation and memory of the host, from /proc.
#include <algorithm>
#include <charconv>

#include "sensors/backend.h"
#include "sensors/cpu_info.h"
#include "sensors/proc_stat.h"

namespace joulemark::sensors {
namespace {

constexpr const char* meminfo = "proc/meminfo";

class BusySource final : public Source {
  public:
    BusySource(SourceInfo info, ProcStat stat) : Source(std::move(info)), stat_(std::move(stat)) {}
    void read(std::span<double> values) noexcept override { values[0] = stat_.busy_pct().value_or(gap); }

  private:
    ProcStat stat_;
};

class MemorySource final : public Source {
  public:
    MemorySource(SourceInfo info, OpenFile file) : Source(std::move(info)), file_(std::move(file)) {}

    void read(std::span<double> values) noexcept override {
        char buffer[256];  // the two lines are among the first three
        const std::string_view text = file_.read(buffer);
        const auto total = number_after(text, "MemTotal:");
        const auto available = number_after(text, "MemAvailable:");
        values[0] = total && available ? static_cast<double>(*total - *available) * 1024 : gap;
    }

  private:
    OpenFile file_;
};

SourceInfo describe(const FileTree& files, const char* path, const char* device, Metric metric) {
    SourceInfo info;
    info.name = "proc";
    info.device = device;
    info.metrics = {metric};
    info.method = "sampled";
    info.scope = "node";
    info.origin = files.shown(path);
    return info;
}

Failure cannot_open(const FileTree& files, const char* path) {
    return {fmt::format("{} cannot be opened", files.shown(path)), "mount /proc"};
}

}  // namespace

std::optional<double> ProcStat::busy_pct() noexcept {
    // cpu user nice system idle iowait irq softirq steal; guest time, which follows, is contained in user.
    constexpr std::size_t fields = 8;
    constexpr std::size_t idle_field = 3;
    constexpr std::size_t iowait_field = 4;
    char buffer[256];
    std::string_view text = file_.read(buffer);
    if (!text.starts_with("cpu ")) {
        return std::nullopt;
    }
    std::uint64_t total = 0;
    std::uint64_t idle = 0;
    const char* at = text.data() + 4;
    const char* const end = text.data() + text.size();
    for (std::size_t i = 0; i < fields; ++i) {
        while (at != end && *at == ' ') {
            ++at;
        }
        std::uint64_t ticks = 0;
        const auto [next, error] = std::from_chars(at, end, ticks);
        if (error != std::errc{}) {
            return std::nullopt;
        }
        at = next;
        total += ticks;
        idle += i == idle_field || i == iowait_field ? ticks : 0;
    }
    const auto passed = static_cast<double>(static_cast<std::int64_t>(total - total_));
    const auto idled = static_cast<double>(static_cast<std::int64_t>(idle - idle_));
    if (passed == 0) {
        return busy_pct_;
    }
    total_ = total;
    idle_ = idle;
    // iowait may fall a little: the kernel documents it as unreliable.
    // The total falls where a processor is taken away.
    busy_pct_ = passed > 0 ? std::optional(100 * std::clamp(1 - idled / passed, 0.0, 1.0)) : std::nullopt;
    return busy_pct_;
}

void discover_proc(Discovery& discovery) {
    const FileTree& files = discovery.files;
    if (FileTree::Opened stat = files.open(ProcStat::path); stat.file) {
        discovery.add(
            {.id = "cpu", .file = File::cpu, .name = read_cpu_info(files).model, .component = "cpu"});
        discovery.use(
            std::make_unique<BusySource>(describe(files, ProcStat::path, "cpu", Metric::cpu_busy_pct),
                                         ProcStat(OpenFile(std::move(stat.file)))),
            "mean over all processors since the reading before");
    } else {
        discovery.unavailable("proc cpu", "busy", "node", cannot_open(files, ProcStat::path));
    }
    if (FileTree::Opened memory = files.open(meminfo); memory.file) {
        discovery.add({.id = "node", .file = File::node, .name = "", .component = "node"});
        discovery.use(
            std::make_unique<MemorySource>(describe(files, meminfo, "node", Metric::node_memory_used_bytes),
                                           OpenFile(std::move(memory.file))),
            "MemTotal less MemAvailable");
    } else {
        discovery.unavailable("proc node", "memory used", "node", cannot_open(files, meminfo));
    }
}

}  // namespace joulemark::sensors

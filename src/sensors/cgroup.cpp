// SPDX-License-Identifier: Apache-2.0
//
// Memory and processor time of the job, from its control group, version 1 or 2.
#include <sstream>

#include "sensors/backend.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* mount = "sys/fs/cgroup";

/// A group's directory for one controller, below the root.
struct Group {
    std::string directory;
    bool version_2 = false;
    bool slurm_step = false;  ///< holds a step of a Slurm job and nothing else
};

/// ".../job_12/step_0/user/task_0" cut behind the component that starts with `prefix`.
std::optional<std::string> cut_behind(const std::string& path, std::string_view prefix) {
    const std::size_t at = path.find("/" + std::string(prefix));
    if (at == std::string::npos) {
        return std::nullopt;
    }
    return path.substr(0, path.find('/', at + 1));
}

/// The path of this process's group, from lines such as "0::/user.slice" and "5:cpu,cpuacct:/slurm/job_12".
std::optional<std::string> path_in(const std::string& groups, const std::string& controller) {
    std::istringstream lines(groups);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
        if (controller.empty() ? names == ",," : names.find("," + controller + ",") != std::string::npos) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

/// Looks for `file` of this process's group, or of the group above it that holds the whole Slurm job or step.
std::optional<Group> find_group(const FileTree& files, const std::string& groups,
                                const std::string& controller, bool version_2, std::string_view slurm_part,
                                const std::string& file) {
    const auto own = path_in(groups, version_2 ? "" : controller);
    if (!own) {
        return std::nullopt;
    }
    const auto slurm = cut_behind(*own, slurm_part);
    const std::string base = version_2 ? mount : fmt::format("{}/{}", mount, controller);
    // Inside a container the path may be the host's, and the container's own group is mounted at the top.
    for (const std::string& path : {slurm.value_or(*own), *own, std::string()}) {
        Group group{base + (path == "/" ? "" : path), version_2, slurm.has_value() && path == slurm};
        if (files.exists(group.directory + "/" + file)) {
            return group;
        }
    }
    return std::nullopt;
}

class TimeSource final : public Source {
  public:
    TimeSource(SourceInfo info, OpenFile file, bool version_2)
        : Source(std::move(info)), file_(std::move(file)), version_2_(version_2) {}
    void read(std::span<double> values) noexcept override {
        char buffer[128];
        const std::string_view text = file_.read(buffer);
        const auto usage = version_2_ ? number_after(text, "usage_usec") : number_after(text, "");
        values[0] = usage ? static_cast<double>(*usage) / (version_2_ ? 1e6 : 1e9) : gap;
    }

  private:
    OpenFile file_;
    bool version_2_;
};

SourceInfo describe(const FileTree& files, const std::string& path, const char* device, Metric metric) {
    SourceInfo info;
    info.name = "cgroup";
    info.device = device;
    info.metrics = {metric};
    info.method = "sampled";
    info.scope = "process";
    info.origin = files.shown(path);
    return info;
}

void use_memory(Discovery& discovery, const std::string& groups) {
    const FileTree& files = discovery.files;
    std::string file = "memory.current";
    auto group = find_group(files, groups, "memory", true, "job_", file);
    if (!group) {
        file = "memory.usage_in_bytes";
        group = find_group(files, groups, "memory", false, "job_", file);
    }
    const Failure none{"this process is in no control group with memory accounting", ""};
    FileTree::Opened opened;
    if (group) {
        file = group->directory + "/" + file;
        opened = files.open(file);
    }
    if (!opened.file) {
        discovery.unavailable("cgroup node", "cgroup memory", "process", none);
        return;
    }
    discovery.add({.id = "node", .file = File::node, .name = "", .component = "node"});
    discovery.use(std::make_unique<FileGauge>(describe(files, file, "node", Metric::node_cgroup_memory_bytes),
                                              OpenFile(std::move(opened.file)), 1),
                  group->slurm_step ? "memory charged to the Slurm job on this node"
                                    : "memory charged to this process's control group, page cache included");
}

// Only a group that holds the job and nothing else tells the job's time: a login session's holds the shell
// too.
void use_time(Discovery& discovery, const std::string& groups) {
    const FileTree& files = discovery.files;
    std::string file = "cpu.stat";
    auto group = find_group(files, groups, "cpuacct", true, "step_", file);
    if (!group || !group->slurm_step) {
        file = "cpuacct.usage";
        group = find_group(files, groups, "cpuacct", false, "step_", file);
    }
    FileTree::Opened opened;
    if (group && group->slurm_step) {
        file = group->directory + "/" + file;
        opened = files.open(file);
    }
    if (!opened.file) {
        discovery.unavailable(
            "cgroup cpu", "process cpu", "process",
            {"the job has no control group of its own; the kernel's resource usage of the command stands "
             "in for it",
             ""});
        return;
    }
    discovery.add({.id = "cpu", .file = File::cpu, .name = "", .component = "cpu"});
    discovery.use(std::make_unique<TimeSource>(describe(files, file, "cpu", Metric::cpu_process_s),
                                               OpenFile(std::move(opened.file)), group->version_2),
                  "processor time of the Slurm step on this node");
}

}  // namespace

void discover_cgroup(Discovery& discovery) {
    const std::string groups = discovery.files.text("proc/self/cgroup").value_or("");
    use_memory(discovery, groups);
    use_time(discovery, groups);
}

}  // namespace joulemark::sensors

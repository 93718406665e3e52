// SPDX-License-Identifier: Apache-2.0
//
// Intel's and AMD's energy counters through the kernel's powercap files. The domains form a tree, and a joule
// appears in several of them: psys holds the packages, a package holds its core and uncore parts; DRAM stands
// beside its package. Used are the packages and the DRAM domains: every joule once.
#include <algorithm>
#include <cctype>
#include <map>

#include "sensors/backend.h"
#include "sensors/cpu_info.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* powercap = "sys/class/powercap";

struct Zone {
    std::string path;     // sys/class/powercap/intel-rapl:0:1
    std::string name;     // package-0, core, uncore, dram, psys
    std::string package;  // of the package it belongs to: "0", or "0-die1"
    bool mmio = false;

    std::string label() const {
        return name.starts_with("package") || name == "psys" || package.empty()
                   ? name
                   : fmt::format("{} of package-{}", name, package);
    }
};

/// "package-0-die-1" is called "0-die1".
std::string package_key(const std::string& name) {
    std::string key = name.substr(std::string_view("package-").size());
    if (const std::size_t die = key.find("-die-"); die != std::string::npos) {
        key.erase(die + 4, 1);
    }
    return key;
}

std::vector<Zone> find_zones(const FileTree& files) {
    std::vector<Zone> zones;
    std::map<std::string, std::string> packages;  // path of a package's zone -> its key
    for (const std::string& entry : files.entries(powercap)) {
        const bool mmio = entry.starts_with("intel-rapl-mmio:");
        if (!mmio && !entry.starts_with("intel-rapl:")) {
            continue;
        }
        Zone zone{fmt::format("{}/{}", powercap, entry), "", "", mmio};
        zone.name = files.line(zone.path + "/name").value_or(entry);
        if (zone.name.starts_with("package-")) {
            zone.package = package_key(zone.name);
            packages[zone.path] = zone.package;
        } else if (const auto parent = packages.find(zone.path.substr(0, zone.path.rfind(':')));
                   parent != packages.end()) {
            zone.package = parent->second;
        }
        zones.push_back(std::move(zone));
    }
    // Of two zones with one name the MSR's comes first: the memory-mapped one repeats it.
    std::ranges::stable_sort(zones, {}, &Zone::mmio);
    return zones;
}

std::string contained(const Zone& zone) {
    if (zone.name == "psys") {
        return "contains the packages, which are used one by one";
    }
    return fmt::format("contained in package-{}", zone.package);
}

Failure explain(const Refusal& refusal, const std::string& file) {
    if (!refusal.permission) {
        return {refusal.reason, ""};
    }
    return {refusal.reason + " (root only since kernel 5.10)",
            fmt::format("sudo chmod o+r {} until the next boot; for good a udev rule: "
                        "SUBSYSTEM==\"powercap\", ACTION==\"add\", "
                        "RUN+=\"/bin/chmod o+r /sys%p/energy_uj\"",
                        file)};
}

class RaplDiscovery {
  public:
    RaplDiscovery(Discovery& discovery, CpuInfo cpu) : discovery_(discovery), cpu_(std::move(cpu)) {}

    void run() {
        const std::vector<Zone> zones = find_zones(discovery_.files);
        if (zones.empty()) {
            discovery_.unavailable("rapl", "energy", "cpu package", nothing_there());
            return;
        }
        for (const Zone& zone : zones) {
            take(zone);
        }
        const bool dram = std::ranges::any_of(zones, [](const Zone& zone) { return zone.name == "dram"; });
        if (!dram) {
            discovery_.unavailable("rapl dram", "energy", "dram",
                                   {cpu_.vendor == "AuthenticAMD" ? "AMD processors have no DRAM domain"
                                                                  : "this processor has no DRAM domain",
                                    ""});
        }
    }

  private:
    Failure nothing_there() const {
        if (cpu_.virtual_machine) {
            return {"this is a virtual machine, and hypervisors do not pass RAPL on", "measure on the host"};
        }
        if (cpu_.vendor.empty()) {
            return {"this processor has no RAPL", ""};
        }
        return {fmt::format("{} holds no RAPL zone", discovery_.files.shown(powercap)),
                cpu_.vendor == "AuthenticAMD"
                    ? "sudo modprobe intel_rapl_msr (kernel 5.8 and newer serve AMD too)"
                    : "sudo modprobe intel_rapl_msr"};
    }

    void take(const Zone& zone) {
        const std::string name = "rapl " + zone.label();
        const bool dram = zone.name == "dram";
        const std::string scope = dram ? "dram" : zone.name == "psys" ? "platform" : "cpu package";
        if (!dram && !zone.name.starts_with("package-")) {
            discovery_.available(name, "energy", scope, contained(zone));
            return;
        }
        const std::string id = (dram ? "dram" : "cpu") + (zone.package.empty() ? "0" : zone.package);
        if (std::ranges::find(taken_, id) != taken_.end()) {
            discovery_.available(name + (zone.mmio ? " (mmio)" : ""), "energy", scope,
                                 "repeats the zone of that name that is used");
            return;
        }
        const std::string path = zone.path + "/energy_uj";
        auto opened = open_number(discovery_.files, path);
        if (const auto* refusal = std::get_if<Refusal>(&opened)) {
            const Failure failure = explain(*refusal, discovery_.files.shown(path));
            discovery_.machine.warnings.push_back(
                fmt::format("{} is not measured: {}", zone.label(), failure.reason));
            discovery_.unavailable(name + (zone.mmio ? " (mmio)" : ""), "energy", scope, failure);
            return;
        }
        const auto range = discovery_.files.number(zone.path + "/max_energy_range_uj");
        if (!range || *range == 0) {
            discovery_.unavailable(
                name, "energy", scope,
                {fmt::format("{}/max_energy_range_uj cannot be read, so a wrap could not be told from a "
                             "reset",
                             discovery_.files.shown(zone.path)),
                 ""});
            return;
        }
        taken_.push_back(id);
        use(zone, id, dram, std::get<OpenFile>(std::move(opened)), *range);
    }

    void use(const Zone& zone, const std::string& id, bool dram, OpenFile file, std::uint64_t range) {
        Device device{.id = id,
                      .file = File::cpu,
                      .name = dram ? zone.label() : cpu_.model,
                      .component = dram ? "dram" : "cpu"};
        device.index = std::atoi(zone.package.c_str());
        discovery_.add(device);

        SourceInfo info;
        info.name = "rapl";
        info.device = id;
        info.metrics = {Metric::cpu_energy_j};
        info.method = "counter";
        info.scope = dram ? "dram" : "cpu package";
        info.origin = discovery_.files.shown(zone.path + "/energy_uj");
        info.native_period_s = 0.001;
        info.accuracy_note = dram ? "a model on some client processors, measured on servers"
                                  : "measured since Haswell, a model before";
        // The limit of the zone is a lasting one; short peaks reach twice as much.
        const double limit_w =
            static_cast<double>(
                discovery_.files.number(zone.path + "/constraint_0_max_power_uw").value_or(0)) *
            1e-6;
        const CounterModel model{.modulus = range + 1,
                                 .units_per_joule = 1e6,
                                 .max_power_w = std::max(2 * limit_w, dram ? 300.0 : 1000.0),
                                 .min_power_w = dram ? 0.01 : 0.1};
        discovery_.use(std::make_unique<FileCounter>(std::move(info), std::move(file), model),
                       fmt::format("energy counter of {}, {}", zone.label(),
                                   dram ? "not contained in a package" : "holds its cores and uncore"));
    }

    Discovery& discovery_;
    CpuInfo cpu_;
    std::vector<std::string> taken_;
};

}  // namespace

void discover_rapl(Discovery& discovery) {
    if (discovery.machine.simulated) {
        discovery.unavailable(
            "rapl", "energy", "cpu package",
            {"the GPUs are simulated, and real joules do not go with simulated seconds", ""});
        return;
    }
    RaplDiscovery(discovery, read_cpu_info(discovery.files)).run();
}

}  // namespace joulemark::sensors

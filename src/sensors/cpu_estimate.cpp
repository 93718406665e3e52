// SPDX-License-Identifier: Apache-2.0
//
// An estimate of processor power from utilisation, only when asked for and where nothing measures it.
#include "sensors/cpu_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/csv.h"
#include "sensors/backend.h"
#include "sensors/cpu_info.h"
#include "sensors/proc_stat.h"

namespace joulemark::sensors {
namespace {

constexpr const char* rated_variable = "JOULEMARK_CPU_RATED_W";

struct Rated {
    std::string_view model;  // as it stands in /proc/cpuinfo
    double watts;
};
// Intel ARK and AMD's product pages: "TDP" and "Default TDP". Hosts of V100, A100 and H100 systems.
constexpr std::array rated_table{
    Rated{"Gold 6148", 150},     Rated{"Gold 6230", 125},      Rated{"Gold 6248", 150},
    Rated{"Platinum 8168", 205}, Rated{"Platinum 8260", 165},  Rated{"Platinum 8268", 205},
    Rated{"Platinum 8358", 250}, Rated{"Platinum 8360Y", 250}, Rated{"Platinum 8368", 270},
    Rated{"Platinum 8380", 270}, Rated{"Platinum 8468", 350},  Rated{"Platinum 8480", 350},
    Rated{"EPYC 7302", 155},     Rated{"EPYC 7402", 180},      Rated{"EPYC 7413", 180},
    Rated{"EPYC 7513", 200},     Rated{"EPYC 7543", 225},      Rated{"EPYC 7662", 225},
    Rated{"EPYC 7713", 225},     Rated{"EPYC 7742", 225},      Rated{"EPYC 7763", 280},
    Rated{"EPYC 9354", 280},     Rated{"EPYC 9534", 280},      Rated{"EPYC 9654", 360},
};

class EstimateSource final : public Source {
  public:
    EstimateSource(SourceInfo info, ProcStat stat, double rated_w)
        : Source(std::move(info)), stat_(std::move(stat)), rated_w_(rated_w) {}
    void read(std::span<double> values) noexcept override {
        const auto busy = stat_.busy_pct();
        values[0] = busy ? rated_w_ * relative_power(*busy) : gap;
    }

  private:
    ProcStat stat_;
    double rated_w_;
};

struct RatedPower {
    double watts;
    std::string source;
};

Result<RatedPower> rated_power(const Discovery& discovery, const CpuInfo& cpu) {
    const std::string remedy =
        fmt::format("set {} to the rated power of the processors that this machine uses", rated_variable);
    if (const auto given = discovery.environment.find(rated_variable); given != discovery.environment.end()) {
        const auto watts = csv::number(given->second);
        if (!watts || !(*watts > 0) || !std::isfinite(*watts)) {
            throw bad_input("{}={} is no power in watts: give a positive number", rated_variable,
                            given->second);
        }
        return RatedPower{*watts, fmt::format("{}={}", rated_variable, given->second)};
    }
    if (cpu.virtual_machine) {
        return Failure{"a virtual machine's processor model does not tell its share of the host's power",
                       remedy};
    }
    if (const auto watts = rated_power_w(cpu.model)) {
        return RatedPower{*watts * cpu.sockets,
                          fmt::format("{} x {} W, the rated power of {}", cpu.sockets, *watts, cpu.model)};
    }
    return Failure{fmt::format("the rated power of '{}' is not known", cpu.model), remedy};
}

bool cpu_is_measured(const Machine& machine) {
    return std::ranges::any_of(machine.sources, [](const auto& source) {
        const Metric first = source->info().metrics.front();
        return source->info().scope == "cpu package" &&
               (first == Metric::cpu_energy_j || first == Metric::cpu_power_w);
    });
}

}  // namespace

std::optional<double> rated_power_w(std::string_view cpu_model) {
    const auto row = std::ranges::find_if(rated_table, [cpu_model](const Rated& rated) {
        return cpu_model.find(rated.model) != std::string_view::npos;
    });
    return row == rated_table.end() ? std::nullopt : std::optional(row->watts);
}

double relative_power(double busy_pct) {
    struct Point {
        double busy, share;
    };
    constexpr std::array<Point, 4> curve{{{0, 0.12}, {10, 0.32}, {50, 0.75}, {100, 1.02}}};
    const auto above =
        std::ranges::find_if(curve, [busy_pct](const Point& point) { return point.busy >= busy_pct; });
    if (above == curve.begin()) {
        return curve.front().share;
    }
    if (above == curve.end()) {
        return curve.back().share;
    }
    const Point below = *(above - 1);
    return below.share + (above->share - below.share) * (busy_pct - below.busy) / (above->busy - below.busy);
}

void discover_cpu_estimate(Discovery& discovery) {
    const std::string name = "cpu-estimate cpu";
    const std::string scope = "cpu package";
    if (cpu_is_measured(discovery.machine)) {
        if (discovery.options.estimate_cpu) {
            discovery.available(name, "power", scope,
                                "the processors' energy is measured, so nothing is estimated");
        }
        return;
    }
    const CpuInfo cpu = read_cpu_info(discovery.files);
    if (!discovery.options.estimate_cpu) {
        // What asking would do: nothing, where the rated power has to be told first.
        const bool told = discovery.environment.contains(rated_variable);
        const Failure failure{
            "no estimate unless asked for",
            told || rated_power(discovery, cpu)
                ? "--estimate cpu adds a labelled estimate"
                : fmt::format("--estimate cpu adds a labelled estimate, with {} set to the rated power of the "
                              "processors that this machine uses",
                              rated_variable)};
        discovery.machine.warnings.push_back(fmt::format("CPU energy is not measured: {}", failure.remedy));
        discovery.unavailable(name, "power", scope, failure);
        return;
    }
    const Result<RatedPower> rated = rated_power(discovery, cpu);
    FileTree::Opened stat = discovery.files.open(ProcStat::path);
    if (!rated || !stat.file) {
        const Failure failure =
            rated ? Failure{"the utilisation cannot be read", "mount /proc"} : rated.failure();
        discovery.machine.warnings.push_back(
            fmt::format("CPU energy is neither measured nor estimated: {}: {}", failure.reason, failure.remedy));
        discovery.unavailable(name, "power", scope, failure);
        return;
    }
    SourceInfo info;
    info.name = "cpu-estimate";
    info.device = "cpu";
    info.metrics = {Metric::cpu_power_w};
    info.method = "estimated";
    info.scope = scope;
    info.origin = discovery.files.shown(ProcStat::path);
    info.accuracy_note = "a guess from utilisation and rated power: may be off by half";
    discovery.add({.id = "cpu", .file = File::cpu, .name = cpu.model, .component = "cpu"});
    discovery.use(
        std::make_unique<EstimateSource>(std::move(info), ProcStat(OpenFile(std::move(stat.file))),
                                         rated->watts),
        fmt::format(
            "estimated, not measured: utilisation on a mean curve of Xeon servers (12 % of the rated power "
            "when idle), rated power {}",
            rated->source));
}

}  // namespace joulemark::sensors

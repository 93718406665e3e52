// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/shell.h"
#include "core/streams.h"
#include "launch/programs.h"
#include "sim/commands.h"

namespace joulemark::sim {
namespace {

struct CreateLine {
    std::string path, accelerator = "V100", clock = "virtual", sensors;
    unsigned gpus = 1;
    std::uint64_t seed = 1;
    double counter_latency_ms = 3.5;
    bool deny_controls = false;
    std::vector<std::string> faults;
};

constexpr const char* control_functions[] = {
    "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"};

void create(const CreateLine& line) {
    Options options;
    options.profile = find_profile(line.accelerator);
    if (options.profile == nullptr) {
        std::string known;
        for (const Profile& profile : profiles()) {
            known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.key);
        }
        throw bad_input("there is no simulated accelerator \"{}\"; known are {}", line.accelerator, known);
    }
    if (line.gpus < 1 || line.gpus > max_gpus) {
        throw bad_input("--gpus has to be from 1 to {}, not {}", max_gpus, line.gpus);
    }
    if (line.clock != "virtual" && line.clock != "real") {
        throw bad_input("--clock has to be virtual or real, not \"{}\"", line.clock);
    }
    if (!(line.counter_latency_ms >= 0 && line.counter_latency_ms < 1e6)) {
        throw bad_input("--counter-latency-ms has to be a duration from 0, not {}", line.counter_latency_ms);
    }
    options.gpus = line.gpus;
    options.clock = line.clock == "real" ? ClockMode::real : ClockMode::simulated;
    options.seed = line.seed;
    options.counter_latency_s = line.counter_latency_ms * 1e-3;
    if (!line.sensors.empty()) {
        options.sensors = parse_sensor_timing(line.sensors, "--sensors", *options.profile);
    }
    for (const std::string& spec : line.faults) {
        const Fault fault = parse_fault(spec);
        if (fault.gpu >= static_cast<std::int32_t>(line.gpus)) {
            throw bad_input("fault \"{}\": there is no GPU {} among {}", spec, fault.gpu, line.gpus);
        }
        options.faults.push_back(fault);
    }
    if (line.deny_controls) {
        for (const char* function : control_functions) {
            options.faults.push_back(parse_fault(fmt::format("no-permission:{}", function)));
        }
    }
    if (options.faults.size() > max_faults) {
        throw bad_input("{} faults are more than the {} that fit", options.faults.size(), max_faults);
    }
    State::create(line.path, options);
    say(fmt::format("{} x {}, {} clock: {}", line.gpus, options.profile->name, line.clock, line.path));
    // On standard output, for `eval "$(joulemark-sim create ...)"`.
    fmt::print("export JOULEMARK_SIM={}\n", shell_word(std::filesystem::absolute(line.path).string()));
    if (const auto library = launch::simulated_nvml()) {
        fmt::print("export JOULEMARK_NVML={}\n",
                   shell_word(std::filesystem::weakly_canonical(*library).string()));
    }
}

}  // namespace

void add_create(CLI::App& app) {
    auto line = std::make_shared<CreateLine>();
    CLI::App* command =
        app.add_subcommand("create", "Makes simulated GPUs: the file that JOULEMARK_SIM names");
    command->add_option("STATE", line->path, "File to make; an old one is replaced")->required();
    command->add_option("--accelerator", line->accelerator, "V100, A100, H100 or H200")
        ->capture_default_str();
    command->add_option("--gpus", line->gpus, "How many")->capture_default_str();
    command->add_option("--clock", line->clock, "virtual (a week in seconds) or real")->capture_default_str();
    command->add_option("--seed", line->seed, "Of UUIDs, sensor phases and noise")->capture_default_str();
    command
        ->add_option("--counter-latency-ms", line->counter_latency_ms,
                     "Of the energy counter, under the real clock")
        ->capture_default_str();
    command->add_option("--sensors", line->sensors,
                        "Timing of power and counter other than the accelerator's, as JSON such as "
                        "'{\"counter_window_s\": 0.1}'; docs/simulation.md lists the keys");
    command->add_flag("--deny-controls", line->deny_controls, "No permission to set power limits and clocks");
    command
        ->add_option("--fault", line->faults,
                     "KIND[:FUNCTION][=VALUE][@SECONDS][#GPU]; docs/simulation.md lists them")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->footer("Example: eval \"$(joulemark-sim create gpus.sim --accelerator V100 --gpus 8)\"\n"
        "prints what JOULEMARK_SIM and JOULEMARK_NVML have to be, and sets them.");
    command->callback([line] { create(*line); });
}

}  // namespace joulemark::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/state.h"

namespace joulemark::sim {

/// A state in a file of its own, removed at the end.
class Simulated {
  public:
    explicit Simulated(std::string_view accelerator = "H200", unsigned gpus = 2,
                       std::vector<std::string> faults = {}, ClockMode clock = ClockMode::simulated,
                       const std::string& sensors = "{}") {
        static int made = 0;
        path = std::filesystem::temp_directory_path() /
               ("joulemark-sim-test-" + std::to_string(getpid()) + "-" + std::to_string(++made));
        const Profile& profile = *find_profile(accelerator);
        Options options{.profile = &profile,
                        .gpus = gpus,
                        .clock = clock,
                        .sensors = parse_sensor_timing(sensors, "sensors", profile),
                        .faults = {}};
        for (const auto& fault : faults) {
            options.faults.push_back(parse_fault(fault));
        }
        State::create(path, options);
    }
    ~Simulated() { std::filesystem::remove(path); }
    Simulated(const Simulated&) = delete;
    Simulated& operator=(const Simulated&) = delete;

    State& state() const { return **State::open(path); }

    std::filesystem::path path;
};

/// joulemark-sim in a process of its own on the given state, killed and reaped at the end.
class Command {
  public:
    Command(const std::filesystem::path& state, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "joulemark-sim");
        std::vector<char*> argv;
        for (auto& argument : arguments) {
            argv.push_back(argument.data());
        }
        argv.push_back(nullptr);
        std::string environment = "JOULEMARK_SIM=" + state.string();
        char* const envp[] = {environment.data(), nullptr};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
        const std::string binary = JOULEMARK_BINARY_DIR "/bin/joulemark-sim";
        if (posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv.data(), envp) != 0) {
            pid_ = -1;
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    ~Command() { kill_now(); }
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    void kill_now() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }
    int wait() {
        int status = -1;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    pid_t pid_ = -1;
};

}  // namespace joulemark::sim

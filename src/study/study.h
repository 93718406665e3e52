// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/launcher.h"

namespace joulemark::study {

/// One level of a factor: a number where the text is one, so that 250 and 250.0 are the same level.
struct Level {
    explicit Level(std::string_view written);
    explicit Level(double number);
    std::string text;
    std::optional<double> number;
    bool operator==(const Level& other) const { return text == other.text; }
};

/// The levels of one run, in the order of the study file.
class Configuration {
  public:
    const Level* find(std::string_view factor) const;
    /// The level as a number; nothing when absent or text.
    std::optional<double> number(std::string_view factor) const;
    void set(const std::string& factor, Level level);
    const std::vector<std::pair<std::string, Level>>& levels() const { return levels_; }
    nlohmann::json json() const;
    bool operator==(const Configuration&) const = default;

  private:
    std::vector<std::pair<std::string, Level>> levels_;
};

struct Factor {
    std::string name;
    std::vector<Level> levels;
};

/// Factors multiplying a reference value, per factor and level: `{power_cap_w: {200: 1.05, 100: 1.93}}`.
using Relative = std::map<std::string, std::vector<std::pair<Level, double>>>;

struct Range {
    double low = 0, high = 0;
};

/// What the author of the study expects of a run, for --dry-run and --budget only; never a result.
struct Expectation {
    std::optional<double> epoch_time_s;  ///< at `gpus` GPUs
    double gpus = 1;
    double gpu_exponent = -1;  ///< epoch time ~ gpus^gpu_exponent
    Relative relative_time;
    std::vector<std::pair<Level, double>> gpu_hours;  ///< of a whole run, by GPUs; goes before epoch_time_s
    std::string accelerator;                          ///< whose published kWh per GPU hour applies
    std::optional<Range> kwh_per_gpu_hour;
    Relative relative_power;
    std::string source;
};

struct Workload {
    std::string name;   ///< level of the factor `workload`
    std::string model;  ///< of joulemark-train, or "simulated"; "" with a command
    std::vector<std::string> command;
    std::vector<std::string> arguments;     ///< appended to the command
    std::string dataset;                    ///< "synthetic", a path, or "" where the model needs none
    std::string make_dataset;               ///< the command that makes it, for people; "" where none is named
    int epochs = 1;                         ///< all of a run
    int warmup_epochs = 0;                  ///< the first of them, which count for no epoch time
    std::optional<std::int64_t> samples;    ///< per epoch
    std::optional<double> samples_per_gpu;  ///< weak scaling: the data set grows with the GPUs
    std::optional<std::int64_t> local_batch, global_batch;  ///< where no factor sets it
    std::optional<Expectation> expect;
    nlohmann::json truth = nlohmann::json::object();  ///< of simulated work, where the simulation says nothing

    bool simulated() const { return model == "simulated"; }
    /// Its ranks use CPUs, whatever GPUs there are.
    bool on_cpu() const;
};

enum class Design { one_factor, full_factorial };

/// A sub-design with a name; a study without `series:` is one series with the name "".
struct Series {
    std::string name;
    std::vector<Workload> workloads;
    std::vector<Factor> factors;
    Design design = Design::full_factorial;
    Configuration baseline;
    int repeats = 1;
    std::optional<Expectation> expect;
};

/// Runs on simulated GPUs, which joulemark-sim makes afresh for each run.
struct Simulation {
    std::string accelerator;
    int gpus_per_node = 1;
    std::int64_t seed = 0;
    double counter_latency_ms = 0;
    nlohmann::json truth =
        nlohmann::json::object();  ///< what the analysis should find, given to the simulated work
};

struct Study {
    std::filesystem::path file;
    std::string name;
    bool vary_train_seed =
        true;  ///< a training seed per repeat; else one, and repeats show hardware noise only
    bool random_order = true;
    std::int64_t seed = 0;
    launch::Launcher launcher = launch::Launcher::local;
    std::vector<std::string> launcher_arguments;
    std::optional<int> gpus_per_node;
    std::optional<double> rate_hz, idle_s, cooldown_c, timeout_s;
    std::map<std::string, std::string> environment;
    std::optional<Simulation> simulation;
    std::vector<Series> series;
};

/// Reads and checks a study file. Every mistake - a wrong or doubled key, a wrong type, an unknown factor or
/// placeholder, a baseline that is no level - throws bad_input with file, line and column. A study to be
/// rehearsed (rehearsal.h) need not fit its launcher, nor have simulated GPUs of its own.
Study read_study(const std::filesystem::path& file, bool to_rehearse = false);

/// The same from text; `file` is the name used in complaints.
Study parse_study(const std::string& text, const std::filesystem::path& file, bool to_rehearse = false);

}  // namespace joulemark::study

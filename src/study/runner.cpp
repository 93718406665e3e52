// SPDX-License-Identifier: Apache-2.0
#include "study/runner.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <sstream>
#include <system_error>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/shell.h"
#include "launch/process.h"
#include "launch/programs.h"
#include "report/terminal.h"
#include "study/folders.h"
#include "study/ledger.h"
#include "study/plan_file.h"
#include "study/progress.h"
#include "study/remaining.h"
#include "study/run_state.h"

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto tick = 1s;
constexpr auto kill_after = 30s;          ///< between SIGTERM and SIGKILL of a run that took too long
constexpr auto longest_cooldown = 15min;  ///< a room warmer than cooldown_c must not stop the study
constexpr int most_failures_in_a_row = 3;

double seconds_since(SteadyClock::time_point start) {
    return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// "0,1,2" of 3.
std::string numbers_below(int count) {
    std::string list;
    for (int number = 0; number < count; ++number) {
        list += fmt::format("{}{}", number == 0 ? "" : ",", number);
    }
    return list;
}

/// The last sentence joulemark wrote into a log, without its prefix.
std::string last_complaint(const fs::path& log, std::string_view program) {
    std::istringstream lines(files::read(log).value_or(""));
    std::string complaint;
    for (std::string line; std::getline(lines, line);) {
        if (const std::size_t end = line.find(": "); line.starts_with(program) && end < line.find(' ')) {
            complaint = line.substr(end + 2);
        }
    }
    return complaint;
}

/// The last line that a run's command wrote into its log; what follows is the meter's summary. "" without one.
std::string last_words(const fs::path& log, const std::string& run) {
    constexpr std::size_t longest = 200;
    std::istringstream lines(files::read(log).value_or(""));
    const std::string summary = fmt::format("joulemark: {}: ", run);
    std::string last;
    for (std::string line; std::getline(lines, line) && !line.starts_with(summary);) {
        std::ranges::replace_if(
            line, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
        const std::size_t first = line.find_first_not_of(' ');
        if (first != std::string::npos) {
            last = line.substr(first, std::min(line.find_last_not_of(' ') + 1 - first, longest));
        }
    }
    return last;
}

class Runner {
  public:
    Runner(const Study& study, const Site& site, const SweepOptions& options)
        : study_(study),
          site_(site),
          directory_(fs::absolute(options.directory)),
          options_(options),
          progress_(options.quiet) {}

    int run();

  private:
    struct Ending {
        int status = 0;
        std::string reason;  ///< why Joulemark itself ended it; "" when it ended by itself
    };

    void account_finished();
    bool exceeds_budget(const PlannedRun& run);
    void cool_down();
    void attempt(const PlannedRun& run);
    void fail(const PlannedRun& run, const std::string& title, const std::string& reason, const fs::path& log);
    Ending execute(const PlannedRun& run, const fs::path& log);
    Ending wait_for(launch::Process& process, const PlannedRun& run);
    void take_signal(const siginfo_t& info, const launch::Process* process);
    launch::Invocation invocation(const PlannedRun& run) const;
    std::vector<std::string> meter_words(const PlannedRun& run) const;
    bool keep_plan();
    std::string status_line(const PlannedRun& run, double elapsed_s) const;
    std::string wall_text(double seconds) const;
    std::string energy_so_far() const;
    int summary();

    const Study& study_;
    const Site& site_;
    fs::path directory_;
    const SweepOptions& options_;
    Progress progress_;
    launch::SignalGate gate_;
    std::vector<PlannedRun> runs_;
    std::vector<bool> done_;  ///< of runs_, by position
    Ledger ledger_;
    std::map<std::string, std::string> refused_;  ///< why, by configuration: its controls are not permitted
    Remaining rest_;  ///< before the present run
    SteadyClock::time_point turn_;  ///< when that of the present run began, with its cooling down
    int failed_ = 0;
    int failed_in_a_row_ = 0;
    int stop_signal_ = 0;
    bool stopped_ = false;  ///< before the last run, which is said when it happens
    bool is_unwritable_ = false;
};

std::vector<std::string> Runner::meter_words(const PlannedRun& run) const {
    std::vector<std::string> words{site_.joulemark.string(), "run"};
    const auto option = [&](const char* name, const std::string& value) {
        words.insert(words.end(), {name, value});
    };
    option("-o", directory_.string());
    option("--run-id", run.id);
    option("--study", study_.name);
    option("--repeat", std::to_string(run.repeat));
    option("--position", std::to_string(run.position));
    for (const auto& [factor, level] : run.factors.levels()) {
        option("--factor", factor + "=" + level.text);
    }
    option("--factor", fmt::format("warmup_epochs={}", run.workload->warmup_epochs));
    if (const auto per_node = gpus_per_node(study_, site_)) {
        option("--factor", fmt::format("gpus_per_node={}", *per_node));
    }
    option("--tag", fmt::format("seed={}", run.seed));
    option("--tag", fmt::format("train_seed={}", study_.vary_train_seed ? "vary" : "fixed"));
    if (const Level* cap = run.factors.find("power_cap_w")) {
        option("--power-cap-w", cap->text);
    }
    if (const Level* clock = run.factors.find("sm_clock_mhz")) {
        option("--sm-clock-mhz", clock->text);
    }
    if (study_.idle_s) {
        option("--idle-s", csv::text(*study_.idle_s));
    }
    if (study_.rate_hz) {
        option("--rate", csv::text(*study_.rate_hz));
    }
    return words;
}

launch::Invocation Runner::invocation(const PlannedRun& run) const {
    launch::Job job = site_.job;
    job.ranks = run.gpus;
    job.arguments = study_.launcher_arguments;
    job.gpus_per_node = gpus_per_node(study_, site_).value_or(1);
    std::vector<std::string> command = run.command;
    if (const auto program = launch::find_program(command.front())) {
        command.front() = program->string();
    }
    launch::Invocation result = launch::command_line(study_.launcher, job, meter_words(run), command);
    result.environment.insert(study_.environment.begin(), study_.environment.end());
    return result;
}

/// Beside simulated energy a time must not pass for the one that the energy was used in.
std::string Runner::wall_text(double seconds) const {
    return report::duration_text(seconds) + (study_.simulation ? " of real time" : "");
}

/// With a budget of all runs in the directory, else of those of this call.
std::string Runner::energy_so_far() const {
    const std::string of =
        options_.budget_j ? "of " + report::energy_text(*options_.budget_j) : "in this call";
    return fmt::format("{} {}", text(ledger_.used()), of);
}

std::string Runner::status_line(const PlannedRun& run, double elapsed_s) const {
    Remaining rest = rest_;
    rest.wall_s = std::max(0.0, rest.wall_s - elapsed_s);
    const std::string line =
        fmt::format("{}; [{}/{}] {}: {}", rest.text(study_.simulation.has_value()), run.position, runs_.size(),
                    describe(run), wall_text(elapsed_s));
    return ledger_.has_energy() ? line + ", " + energy_so_far() : line;
}

void Runner::take_signal(const siginfo_t& info, const launch::Process* process) {
    if (info.si_signo == SIGCHLD) {
        return;
    }
    stop_signal_ = info.si_signo;
    // The terminal signals the whole foreground group, the run included: only others' signals are passed on.
    if (process != nullptr && info.si_code != SI_KERNEL) {
        process->send(info.si_signo);
    }
}

Runner::Ending Runner::wait_for(launch::Process& process, const PlannedRun& run) {
    const auto start = SteadyClock::now();
    const auto timeout_s = study_.timeout_s;
    Ending ending;
    int last_sent = 0;
    while (!process.status()) {
        if (progress_.is_live()) {
            progress_.live(status_line(run, seconds_since(start)));
        }
        if (const auto info = gate_.wait(tick)) {
            take_signal(*info, &process);
        }
        const double over_s = timeout_s ? seconds_since(start) - *timeout_s : -1;
        if (over_s >= 0 && last_sent == 0) {
            ending.reason = fmt::format("ended after timeout_s = {}", csv::text(*timeout_s));
            last_sent = SIGTERM;
            process.send(SIGTERM);
        } else if (over_s >= std::chrono::duration<double>(kill_after).count() && last_sent == SIGTERM) {
            last_sent = SIGKILL;
            process.send(SIGKILL);
        }
    }
    // A signal that came with the end of this run must not be taken for one during the next.
    while (const auto info = gate_.wait(0ms)) {
        take_signal(*info, nullptr);
    }
    ending.status = *process.status();
    return ending;
}

Runner::Ending Runner::execute(const PlannedRun& run, const fs::path& log) {
    launch::Invocation meter = invocation(run);
    std::optional<TemporaryFolder> folder;
    if (study_.simulation) {
        const Simulation& simulation = *study_.simulation;
        folder.emplace();
        const std::string state = (folder->path() / "gpus").string();
        launch::Invocation create{{launch::find_program("joulemark-sim")->string(), "create", state,
                                   "--accelerator", simulation.accelerator, "--gpus",
                                   std::to_string(run.gpus), "--clock", "virtual", "--seed",
                                   std::to_string(simulation_seed(simulation, run.id))}};
        if (simulation.counter_latency_ms > 0) {
            create.command.insert(create.command.end(),
                                  {"--counter-latency-ms", csv::text(simulation.counter_latency_ms)});
        }
        launch::Process process(create, log, gate_);
        if (const Ending ending = wait_for(process, run); ending.status != 0) {
            return ending;
        }
        fs::remove(log);  // the log is the run's own, and only a failure to make its GPUs belongs into it
        meter.environment["JOULEMARK_SIM"] = state;
        // What restricts the real GPUs says nothing about these.
        meter.environment["CUDA_VISIBLE_DEVICES"] = numbers_below(run.gpus);
        meter.environment["JOULEMARK_NVML"] = launch::simulated_nvml()->string();
    }
    launch::Process process(meter, log, gate_);
    return wait_for(process, run);
}

void Runner::attempt(const PlannedRun& run) {
    const fs::path log = directory_ / "logs" / (run.id + ".log");
    supersede(directory_, run.id);
    fs::remove(log);
    rest_ = remaining(study_, runs_, done_, ledger_, run.position);
    const auto start = SteadyClock::now();
    const Ending ending = execute(run, log);
    const double wall_s = seconds_since(start);
    if (stop_signal_ != 0) {
        return;
    }
    const std::string title = fmt::format("[{}/{}] {}", run.position, runs_.size(), run.id);
    const RunState state = run_state(directory_, run.id);
    if (state.kind == RunState::Kind::done && ending.status == 0) {
        const auto used = site_.used(directory_ / "runs" / run.id);
        done_[static_cast<std::size_t>(run.position) - 1] = true;
        failed_in_a_row_ = 0;
        const auto known = taken(directory_, study_, run);
        ledger_.add(run, used, seconds_since(turn_), known ? std::optional(known->disk_bytes) : std::nullopt);
        rest_ = remaining(study_, runs_, done_, ledger_, run.position);
        progress_.say(fmt::format("{}: {}{}; {}", title, wall_text(wall_s),
                                  used ? ", " + text(*used) : "",
                                  rest_.text(study_.simulation.has_value())));
        return;
    }
    std::string reason = ending.reason.empty() ? last_complaint(log, "joulemark:") : ending.reason;
    // The meter refused the level, not permitted (3) or out of the device's range (2), before it began the
    // run.
    const bool is_refusal = ending.status == static_cast<int>(ExitCode::environment) ||
                            ending.status == static_cast<int>(ExitCode::bad_input);
    if (is_refusal && state.kind == RunState::Kind::absent && sets_controls(run) && !reason.empty()) {
        refused_[configuration_key(run)] = reason;
        runs_[static_cast<std::size_t>(run.position) - 1].skipped = reason;
        progress_.warn(fmt::format("{}: skipped: {}", title, reason));
        return;
    }
    ++failed_;
    ledger_.spend(site_.used(directory_ / "runs" / run.id));
    if (state.kind == RunState::Kind::done) {
        // Every host says that all went well, and only the launcher that it did not.
        supersede(directory_, run.id);
        reason =
            ending.reason.empty() ? fmt::format("exit status {} of its launcher", ending.status) : reason;
    } else if (state.kind == RunState::Kind::failed && ending.reason.empty()) {
        reason = fmt::format("exit status {}", state.exit_status);
    } else if (reason.empty()) {
        reason = fmt::format("exit status {}, without a complete record", ending.status);
    }
    // The same words go to every run: an option that the model does not know would fail them all, one by one.
    if (!run.workload->model.empty() && failed_ == 1 && std::ranges::count(done_, true) == 0 &&
        state.kind == RunState::Kind::failed && state.exit_status == static_cast<int>(ExitCode::bad_input)) {
        throw bad_input("{}: run {} refuses what the study gives it, so no other is made: {}",
                        study_.file.string(), run.id, last_complaint(log, "joulemark-"));
    }
    fail(run, title, reason, log);
}

void Runner::fail(const PlannedRun& run, const std::string& title, const std::string& reason,
                  const fs::path& log) {
    const std::string words = last_words(log, run.id);
    const bool is_said = words.empty() || words.ends_with(reason);
    progress_.warn(fmt::format("{}: failed: {}{}; its output is in {}", title, reason,
                               is_said ? "" : fmt::format(", last line \"{}\"", words), log.string()));
    // A full disk fails every run, and may be what failed this one.
    const bool is_last = rest_.left <= 1;
    if (keep_plan() && ++failed_in_a_row_ >= most_failures_in_a_row && !options_.keep_going && !is_last) {
        progress_.warn(fmt::format(
            "joulemark: stopped: {} runs in a row have failed; mend the cause, or add --keep-going to make the "
            "others all the same",
            failed_in_a_row_));
        stopped_ = true;
    }
}

bool Runner::keep_plan() {
    try {
        write_plan(directory_, study_, runs_);
    } catch (const Error& error) {
        progress_.warn(fmt::format("joulemark: stopped: {}", error.what()));
        stopped_ = is_unwritable_ = true;
    }
    return !is_unwritable_;
}

void Runner::cool_down() {
    if (!study_.cooldown_c || study_.simulation) {
        return;
    }
    const auto start = SteadyClock::now();
    for (auto hottest_c = site_.hottest_gpu_c();
         hottest_c && *hottest_c > *study_.cooldown_c && stop_signal_ == 0;
         hottest_c = site_.hottest_gpu_c()) {
        if (SteadyClock::now() - start > longest_cooldown) {
            progress_.warn(
                fmt::format("joulemark: the GPU stays at {:.0f} C, above cooldown_c = {}: going on",
                            *hottest_c, csv::text(*study_.cooldown_c)));
            return;
        }
        progress_.live(fmt::format("cooling down: {:.0f} C, waiting for {} C", *hottest_c,
                                   csv::text(*study_.cooldown_c)));
        if (const auto info = gate_.wait(tick)) {
            take_signal(*info, nullptr);
        }
    }
}

bool Runner::exceeds_budget(const PlannedRun& run) {
    if (!options_.budget_j) {
        return false;
    }
    const auto estimate = ledger_.estimate(run);
    const double next_j = estimate ? estimate->energy_j : 0;
    if (ledger_.used().energy_j + next_j <= *options_.budget_j) {
        return false;
    }
    progress_.warn(
        fmt::format("joulemark: stopped before {}: {} are used, it would take about {} ({}), and the budget "
                    "is {}",
                    run.id, text(ledger_.used()), report::energy_text(next_j),
                    estimate ? estimate->source : "no estimate", report::energy_text(*options_.budget_j)));
    return true;
}

void Runner::account_finished() {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (const auto known = taken(directory_, study_, runs_[i])) {
            done_[i] = true;
            // Energies are only read where they matter: it takes a pass over the samples.
            ledger_.add(runs_[i],
                        options_.budget_j ? site_.used(directory_ / "runs" / runs_[i].id) : std::nullopt,
                        known->wall_s, known->disk_bytes);
        }
    }
}

int Runner::summary() {
    const auto done = std::ranges::count(done_, true);
    const auto skipped =
        std::ranges::count_if(runs_, [](const PlannedRun& run) { return !run.skipped.empty(); });
    const auto total = static_cast<std::ptrdiff_t>(runs_.size());
    std::string line = fmt::format("study {}: {} of {} runs done", study_.name, done, total);
    line += skipped > 0 ? fmt::format(", {} skipped", skipped) : "";
    line += failed_ > 0 ? fmt::format(", {} failed", failed_) : "";
    line += ledger_.has_energy() ? ", " + energy_so_far() : "";
    if (stop_signal_ != 0) {
        progress_.warn(fmt::format("{}; stopped by signal {}, go on with: {}", line, stop_signal_, options_.again));
        return 128 + stop_signal_;
    }
    if (failed_ > 0 || stopped_) {
        progress_.warn(fmt::format("{}; make what is missing with: {}", line, options_.again));
        return static_cast<int>(ExitCode::environment);
    }
    if (done == 0) {
        progress_.warn(fmt::format("{}: there is nothing to analyse", line));
        return static_cast<int>(ExitCode::environment);
    }
    progress_.say(fmt::format("{}; next: joulemark analyze {}", line, shell_word(options_.directory.string())));
    return 0;
}

int Runner::run() {
    if (const std::vector<Error> found = obstacles(study_, site_); !found.empty()) {
        throw found.front();
    }
    runs_ = plan(study_, site_.limits);
    files::make_directories(directory_ / "logs");
    std::string lock_problem;
    const files::Descriptor lock = lock_directory(directory_, lock_problem);
    if (!lock_problem.empty()) {
        progress_.warn("joulemark: " + lock_problem);
    }
    for (const std::string& run : continue_plan(directory_, study_, runs_)) {
        supersede(directory_, run);
    }
    write_plan(directory_, study_, runs_);
    done_.assign(runs_.size(), false);
    account_finished();
    for (std::size_t i = 0; i < runs_.size() && stop_signal_ == 0 && !stopped_; ++i) {
        PlannedRun& run = runs_[i];
        if (done_[i]) {
            continue;
        }
        if (!run.skipped.empty()) {
            progress_.say(
                fmt::format("[{}/{}] {}: skipped: {}", run.position, runs_.size(), run.id, run.skipped));
            continue;
        }
        if (const auto refused = refused_.find(configuration_key(run)); refused != refused_.end()) {
            run.skipped = refused->second;
            continue;
        }
        stopped_ = exceeds_budget(run);
        if (stopped_) {
            break;
        }
        turn_ = SteadyClock::now();
        cool_down();
        if (stop_signal_ == 0) {
            attempt(run);
        }
    }
    if (!is_unwritable_) {
        keep_plan();
    }
    return summary();
}

}  // namespace

int sweep(const Study& study, const Site& site, const SweepOptions& options) {
    return Runner(study, site, options).run();
}

}  // namespace joulemark::study

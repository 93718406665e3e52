// SPDX-License-Identifier: Apache-2.0
#include "meter/run.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include "controls/controls.h"
#include "core/error.h"
#include "core/files.h"
#include "core/run_format.h"
#include "core/streams.h"
#include "core/units.h"
#include "launch/rank_environment.h"
#include "meter/child.h"
#include "meter/election.h"
#include "meter/log_lines.h"
#include "meter/marker_socket.h"
#include "meter/node_folder.h"
#include "meter/output_tap.h"
#include "meter/run_document.h"
#include "meter/run_writer.h"
#include "meter/sampler.h"
#include "meter/startup_memory.h"
#include "meter/summary.h"
#include "sensors/catalog.h"

namespace joulemark::meter {
namespace {

using namespace std::chrono_literals;

constexpr const char* socket_variable = "JOULEMARK_SOCKET";
constexpr const char* unbuffered_variable = "PYTHONUNBUFFERED";
/// Ranks of one node start together: one that has not come so long after the sampler does not run the meter.
constexpr auto ranks_come_within = 5s;

/// What fails here is Joulemark's failure and not the command's.
template <typename Prepare>
auto before_child(Prepare&& prepare) {
    const auto no_room = [](const std::string& reason) {
        return Error(ExitCode::before_child,
                     fmt::format("the meter cannot start: {}: raise the limits on memory and processes "
                                 "(ulimit -v, -u, or the job's)",
                                 reason));
    };
    try {
        return prepare();
    } catch (const Error& error) {
        throw Error(error.code() == ExitCode::environment ? ExitCode::before_child : error.code(),
                    error.what());
    } catch (const std::filesystem::filesystem_error& error) {
        throw Error(ExitCode::before_child, files::sentence(error));
    } catch (const std::system_error& error) {  // the standard library's, of a thread
        throw no_room(error.code().message());
    } catch (const std::bad_alloc&) {
        throw no_room("no memory");
    }
}

using LogReaders = std::vector<std::unique_ptr<LogReader>>;

LogReaders make_readers(const RunOptions& options, const launch::RankEnvironment& ranks) {
    LogReaders readers;
    if (options.mllog) {
        readers.push_back(std::make_unique<MllogReader>());
    }
    if (!options.epoch_regex.empty()) {
        readers.push_back(std::make_unique<EpochRegexReader>(options.epoch_regex));
    }
    if (!options.epoch_end_regex.empty()) {
        auto reader =
            std::make_unique<EpochRegexReader>(options.epoch_end_regex, EpochRegexReader::Line::at_end);
        if (ranks.rank == 0) {  // one that never prints would have an epoch open for ever
            readers.push_back(std::move(reader));
        }
    }
    return readers;
}

/// None where nobody reads the output.
std::unique_ptr<OutputTap> make_tap(LogReaders readers, SignalRelay& relay, Clock& clock, OutputTap::Take take) {
    if (readers.empty()) {
        return nullptr;
    }
    auto tap = before_child([&] { return std::make_unique<OutputTap>(std::move(readers), clock, std::move(take)); });
    relay.on_resize([tap = tap.get()] { tap->copy_window_size(); });
    return tap;
}

/// Starts the command and waits for its end. Gives nothing when it could not be started, which is said.
template <typename Started, typename Ended>
ChildEnd run_command(const RunOptions& options, const std::string& socket_path, SignalRelay& relay,
                     OutputTap* tap, Started&& started, Ended&& ended) {
    std::vector<std::pair<std::string, std::string>> environment{{socket_variable, socket_path}};
    if (tap != nullptr && tap->invites_buffering() && std::getenv(unbuffered_variable) == nullptr) {
        environment.emplace_back(unbuffered_variable, "1");  // else a line arrives when its epoch is long over
    }
    auto start = Child::start(options.command, environment, relay,
                              tap == nullptr ? std::nullopt : std::optional(tap->command_sides()));
    if (const auto* failure = std::get_if<Child::Failure>(&start)) {
        say(fmt::format("joulemark: {}", failure->sentence));
        return {.exit_status = failure->exit_status};
    }
    started();
    if (tap != nullptr) {
        tap->start();
    }
    const ChildEnd end = std::get<Child>(start).wait(std::forward<Ended>(ended));
    if (tap != nullptr) {
        tap->finish(end.exit_status != 0 || relay.child_asked_to_end());
    }
    return end;
}

/// Everything that meters one command on one node. Members end in reverse order: those that use others first.
class MeteredRun {
  public:
    MeteredRun(const RunOptions& options, const launch::RankEnvironment& ranks, const launch::Lookup& lookup,
               SignalRelay& relay, sensors::Machine& machine, std::optional<controls::Controls>& controls,
               std::optional<Election::Sampler> election);

    int run(LogReaders readers);

  private:
    void take(Message message, std::int64_t now_ns);
    void mark(std::string_view name, Message::Event event, std::int64_t time_ns);
    void idle(std::string_view name);
    /// Until the commands of all ranks that come have ended; gives the end of the last one, `end_ns` being
    /// that of the own command.
    std::int64_t wait_for_ranks(std::int64_t end_ns);
    std::vector<Election::Sampler::End> failed_ranks() const;
    void finish(const ChildEnd& end, std::int64_t begin_ns, std::int64_t end_ns);

    const RunOptions& options_;
    SignalRelay& relay_;
    sensors::Machine& machine_;
    std::optional<controls::Controls>& controls_;
    std::optional<Election::Sampler> election_;
    RunIdentity identity_;
    SamplingRates rates_;
    Totals totals_;
    RunWriter writer_;
    Sampler sampler_;
    std::mutex index_mutex_;
    MessageIndex index_;
    std::uint64_t implausible_times_ = 0, lost_marks_ = 0, negative_counts_ = 0;
    std::chrono::steady_clock::time_point patient_until_;  ///< with ranks that have not come
    std::vector<std::string> warnings_;
    MarkerSocket socket_;
};

SamplingRates rates(const RunOptions& options) {
    SamplingRates rates{.rate_hz = options.rate_hz};
    if (options.energy_rate_hz) {
        rates.energy_rate_hz = *options.energy_rate_hz;
        rates.slow_cpu_share = 0;  // asked for by name: whatever it costs
    }
    return rates;
}

std::optional<controls::Controls> apply_controls(const RunOptions& options, const sensors::Machine& machine) {
    const controls::Request request{options.power_cap_w, options.sm_clock_mhz};
    if (request.empty()) {
        return std::nullopt;
    }
    std::vector<controls::Target> targets;
    for (const sensors::Device& device : machine.devices) {
        if (device.component == "gpu") {
            targets.push_back({device.id, device.uuid});
        }
    }
    return controls::Controls::apply(request, targets);
}

/// A folder that no run has used yet: an MPI job's id can come again after a while, and then gets a number.
std::filesystem::path host_folder(const RunOptions& options, RunIdentity& identity) {
    const auto folder = [&] {
        return options.directory / run_format::runs_folder / identity.run / identity.ranks.node;
    };
    if (options.run_id.empty()) {
        const std::string base = identity.run;
        for (int number = 2; std::filesystem::exists(folder() / run_format::run_file); ++number) {
            identity.run = fmt::format("{}.{}", base, number);
        }
    }
    return folder();
}

MeteredRun::MeteredRun(const RunOptions& options, const launch::RankEnvironment& ranks,
                       const launch::Lookup& lookup, SignalRelay& relay, sensors::Machine& machine,
                       std::optional<controls::Controls>& controls, std::optional<Election::Sampler> election)
    : options_(options),
      relay_(relay),
      machine_(machine),
      controls_(controls),
      election_(std::move(election)),
      identity_(identify(options, ranks, lookup)),
      rates_(rates(options)),
      totals_(machine_.devices, machine_.sources, rates_.rate_hz, rates_.energy_rate_hz),
      writer_(host_folder(options, identity_),
              run_document(options, identity_, machine_, rates_.energy_rate_hz,
                           controls_ ? controls_->describe() : nlohmann::json::object()),
              machine_.sources, totals_, machine_.clock->simulated()),
      sampler_(machine_.clock, machine_.sources, writer_, rates_),
      socket_(node_folder(), *machine_.clock,
              [this](Message message, std::int64_t now_ns) { take(std::move(message), now_ns); }) {}

void MeteredRun::take(Message message, std::int64_t now_ns) {
    if (message.event == Message::Event::lost) {
        const std::scoped_lock lock(index_mutex_);
        lost_marks_ += message.count;
        return;
    }
    if (message.edge()) {
        sampler_.edge();
    }
    std::int64_t time_ns = now_ns;
    if (message.time_ns && !machine_.clock->simulated()) {
        // The sender's own time is better by the delay of the socket; one of another time name space is not.
        constexpr std::int64_t longest_delay_ns = 10 * ns_per_s;
        const std::int64_t delay_ns = now_ns - *message.time_ns;
        if (delay_ns >= 0 && delay_ns < longest_delay_ns) {
            time_ns = *message.time_ns;
        } else {
            ++implausible_times_;
        }
    }
    const std::scoped_lock lock(index_mutex_);
    negative_counts_ += static_cast<std::uint64_t>(drop_negative_counts(message));
    if (message.edge()) {
        message.index = index_.of(message);
    }
    writer_.message(message, time_ns);
}

void MeteredRun::mark(std::string_view name, Message::Event event, std::int64_t time_ns) {
    Message message;
    message.event = event;
    message.name = name;
    message.source = "meter";
    message.index = 0;
    writer_.message(message, time_ns);
}

void MeteredRun::idle(std::string_view name) {
    if (options_.idle_s <= 0 || relay_.interrupted().stop_requested()) {
        return;
    }
    const std::int64_t begin_ns = machine_.clock->now_ns();
    mark(name, Message::Event::begin, begin_ns);
    machine_.clock->drive_until(begin_ns + nanoseconds(options_.idle_s), relay_.interrupted());
    const std::int64_t end_ns = machine_.clock->now_ns();
    sampler_.edge();
    mark(name, Message::Event::end, end_ns);
}

std::int64_t MeteredRun::wait_for_ranks(std::int64_t end_ns) {
    constexpr auto patience = 10s;  // with ranks that a signal has reached: they are given time to end
    const int expected = identity_.ranks.local_world_size.value_or(1) - 1;
    auto come = std::ssize(election_->ends());
    std::optional<std::chrono::steady_clock::time_point> interrupted;
    while (true) {
        const auto come_by_now = std::ssize(election_->ends());  // asked first: of these it says whether they run
        const bool run = election_->others_run();
        const auto now = std::chrono::steady_clock::now();
        if (run || come_by_now > come) {
            come = come_by_now;
            end_ns = machine_.clock->now_ns();
        }
        if (relay_.interrupted().stop_requested()) {
            interrupted = interrupted.value_or(now);
        }
        // Those that have not come may be slow to start, or not run under the meter at all.
        if ((!run && (come >= expected || now > patient_until_)) || (interrupted && now - *interrupted > patience)) {
            break;
        }
        std::this_thread::sleep_for(10ms);
    }
    if (come < expected) {
        warnings_.push_back(
            fmt::format("{} started {} ranks on this node, and {} of them ran joulemark: only the ends and marks of "
                        "these are known",
                        identity_.ranks.launcher, expected + 1, come + 1));
    }
    return end_ns;
}

/// Those still at work have not failed, as far as one can know.
std::vector<Election::Sampler::End> MeteredRun::failed_ranks() const {
    if (!election_ || election_->others_run()) {
        return {};
    }
    auto ends = election_->ends();
    std::erase_if(ends, [](const Election::Sampler::End& end) { return end.exit_status == 0; });
    return ends;
}

int MeteredRun::run(LogReaders readers) {
    before_child([&] {
        sampler_.start();
        if (election_) {
            election_->announce(socket_.path());
            patient_until_ = std::chrono::steady_clock::now() + ranks_come_within;
        }
    });
    release_startup_memory();
    idle(run_format::idle_before_region);
    if (relay_.interrupted().stop_requested()) {
        const std::int64_t now_ns = machine_.clock->now_ns();
        const int signal = relay_.interrupting_signal();
        finish({.exit_status = 128 + signal, .signal = signal}, now_ns, now_ns);
        return 128 + signal;
    }
    const auto tap = make_tap(std::move(readers), relay_, *machine_.clock, [this](Message message) {
        message.rank = identity_.ranks.rank;
        const auto hold = machine_.clock->hold();
        take(std::move(message), machine_.clock->now_ns());
    });
    const std::int64_t begin_ns = machine_.clock->now_ns();
    std::int64_t end_ns = begin_ns;
    bool started = false;
    const ChildEnd end = run_command(
        options_, socket_.path(), relay_, tap.get(),
        [&] {
            started = true;
            mark(run_format::command_region, Message::Event::begin, begin_ns);
        },
        [&] { end_ns = machine_.clock->now_ns(); });
    relay_.on_resize(nullptr);
    if (tap && started) {
        std::ranges::copy(tap->doubts(), std::back_inserter(warnings_));
        if (identity_.ranks.rank == 0) {  // the others often print nothing
            std::ranges::copy(tap->unmatched(), std::back_inserter(warnings_));
        }
    }
    if (election_) {
        sampler_.edge();  // if no other rank runs any longer, the wait does not belong to the command
        end_ns = wait_for_ranks(end_ns);
    }
    if (started) {
        if (options_.idle_s > 0) {  // else the last sample of all is the one of this edge
            sampler_.edge();
        }
        mark(run_format::command_region, Message::Event::end, end_ns);
        idle(run_format::idle_after_region);
    }
    finish(end, begin_ns, end_ns);
    return end.exit_status;
}

void MeteredRun::finish(const ChildEnd& end, std::int64_t begin_ns, std::int64_t end_ns) {
    socket_.stop();
    const bool sensors_returned = sampler_.stop();
    writer_.stop();
    std::vector<std::string> warnings = std::move(warnings_);
    std::ranges::copy(writer_.warnings(), std::back_inserter(warnings));
    if (const std::string changed = controls_ ? controls_->restore() : ""; !changed.empty()) {
        warnings.push_back(changed);
    }
    if (!identity_.ranks.warning.empty()) {
        warnings.push_back(identity_.ranks.warning);
    }
    if (!sensors_returned) {
        warnings.emplace_back("a sensor did not return from its last read and was given up");
    }
    if (socket_.malformed() > 0) {
        warnings.push_back(fmt::format("{} messages to {} were not understood and dropped; of the first: {}",
                                       socket_.malformed(), socket_variable, socket_.first_complaint()));
    }
    if (lost_marks_ > 0) {
        warnings.push_back(
            fmt::format("{} marks did not get through to {} and are lost: each may be 64 KiB long, and one "
                        "waits 0.1 s at most",
                        lost_marks_, socket_variable));
    }
    if (implausible_times_ > 0) {
        warnings.push_back(fmt::format("{} marks told a time of another clock and count as of their arrival",
                                       implausible_times_));
    }
    const auto failed = failed_ranks();
    if (!failed.empty()) {
        warnings.push_back(
            fmt::format("{} other rank{} of this node failed, the first is rank {}: {}", failed.size(),
                        failed.size() == 1 ? "" : "s", failed.front().rank,
                        failed.front().exit_status
                            ? fmt::format("its command ended with status {}", *failed.front().exit_status)
                            : "its meter was killed before it could tell how its command ended"));
    }
    if (negative_counts_ > 0) {
        warnings.push_back(fmt::format("{} counts of samples, updates or tokens were negative and are left out",
                                       negative_counts_));
    }
    if (index_.repeated() > 0) {
        warnings.push_back(fmt::format("{} regions have an index that their rank had given another one of the "
                                       "same name", index_.repeated()));
    }
    const double command_s = seconds(end_ns - begin_ns);
    const std::vector<Totals::Entry> energies = totals_.entries();
    std::ranges::move(coverage_warnings(energies, command_s), std::back_inserter(warnings));
    const auto counts = writer_.counts();
    if (counts.lost > 0) {
        warnings.push_back(fmt::format("{} rows could not be written and are lost", counts.lost));
    }
    const auto statistics = sensors_returned ? std::optional(sampler_.statistics()) : std::nullopt;
    const OwnCost cost = own_cost();
    const RunEnd run_end{.end_ns = end_ns,
                         .command = end,
                         .failed_ranks = failed,
                         .cost = cost,
                         .statistics = statistics,
                         .rows = counts,
                         .marks = {.refused = socket_.malformed(), .lost = lost_marks_},
                         .warnings = warnings};
    if (!writer_.write_end(end_document(run_end, machine_))) {
        warnings.push_back(writer_.warnings().back());
    }
    if (!options_.quiet) {
        const std::string text = summary({.run = identity_.run,
                                          .folder = writer_.folder().string(),
                                          .command_s = command_s,
                                          .end = end,
                                          .energies = energies,
                                          .epochs = totals_.epochs(),
                                          .cost = cost,
                                          .statistics = statistics,
                                          .counts = counts,
                                          .warnings = warnings},
                                         machine_);
        say_text(text);
    }
    if (!sensors_returned) {
        std::fflush(nullptr);
        std::_Exit(end.exit_status);  // a thread is still inside the driver: nothing it uses may go away
    }
}

/// A rank whose node is metered by another one: runs its command and passes its marks on.
int run_as_member(const RunOptions& options, const launch::RankEnvironment& ranks, SignalRelay& relay,
                  const Election::Member& member, LogReaders readers) {
    MarkerSender sender(member.socket_path);
    MonotonicClock clock;
    const auto tap = make_tap(std::move(readers), relay, clock, [&](Message message) {
        message.rank = ranks.rank;
        message.time_ns = clock.now_ns();
        sender.send(message);
    });
    const ChildEnd end = run_command(
        options, member.socket_path, relay, tap.get(), [] {}, [] {});
    relay.on_resize(nullptr);
    member.ended(end.exit_status);
    return end.exit_status;
}

/// Names a job step on a node, as a part of a file name.
std::string election_key(const launch::RankEnvironment& ranks, const launch::Lookup& lookup) {
    std::string key = ranks.node + "-" + step_name(ranks, lookup);
    for (char& c : key) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    return key;
}

}  // namespace

int run(const RunOptions& options) {
    const launch::Lookup lookup = [](const char* name) { return std::getenv(name); };
    const launch::RankEnvironment ranks = launch::rank_environment(lookup);
    LogReaders readers = make_readers(options, ranks);
    const auto signals = before_child([] { return std::make_unique<SignalRelay>(); });
    SignalRelay& relay = *signals;
    std::optional<Election::Sampler> election;
    if (ranks.world_size > 1 && ranks.local_world_size.value_or(2) > 1) {
        auto role = before_child(
            [&] { return Election::hold(node_folder(), election_key(ranks, lookup), ranks.rank); });
        if (const auto* member = std::get_if<Election::Member>(&role)) {
            return run_as_member(options, ranks, relay, *member, std::move(readers));
        }
        election.emplace(std::get<Election::Sampler>(std::move(role)));
    }
    // A heap per thread is more than a meter should take, and so is what drivers allocate only to start.
    mallopt(M_ARENA_MAX, 1);
    sensors::Machine machine =
        before_child([&] { return sensors::discover({.estimate_cpu = options.estimate_cpu}); });
    std::optional<controls::Controls> controls = apply_controls(options, machine);
    malloc_trim(0);
    const auto metered = before_child([&] {
        return std::make_unique<MeteredRun>(options, ranks, lookup, relay, machine, controls,
                                            std::move(election));
    });
    return metered->run(std::move(readers));
}

}  // namespace joulemark::meter

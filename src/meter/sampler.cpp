// SPDX-License-Identifier: Apache-2.0
#include "meter/sampler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/units.h"

namespace joulemark::meter {
namespace {

using namespace std::chrono_literals;

/// How long a read may take before its sensor counts as hung.
constexpr auto patience = 3s;

std::int64_t clock_ns(clockid_t id) {
    timespec now{};
    clock_gettime(id, &now);
    return now.tv_sec * ns_per_s + now.tv_nsec;
}

/// Absolute deadlines `period` apart.
class Deadlines {
  public:
    Deadlines(std::int64_t now_ns, double rate_hz) : next_(now_ns), period_(nanoseconds(1 / rate_hz)) {
        advance(now_ns);
    }

    std::int64_t next() const { return next_; }
    /// The first one later than `now_ns`; gives the number of those skipped on the way.
    std::uint64_t advance(std::int64_t now_ns) {
        next_ += period_;
        if (next_ > now_ns) {
            return 0;
        }
        const std::int64_t skipped = (now_ns - next_) / period_ + 1;
        next_ += skipped * period_;
        return static_cast<std::uint64_t>(skipped);
    }
    void stretch(std::int64_t at_least_ns) { period_ = std::max(period_, at_least_ns); }

  private:
    std::int64_t next_;
    std::int64_t period_;
};

/// Reads one source into its channel, and keeps account.
class Reader {
  public:
    Reader(sensors::Source& source, std::uint32_t index) : source_(&source) { row_.source = index; }

    void read(const Clock& clock, RowChannel& channel) {
        const std::int64_t real_start = clock_ns(CLOCK_MONOTONIC);
        row_.time_ns = clock.now_ns();
        source_->read(std::span(row_.values).first(source_->info().metrics.size()));
        row_.read_ns = clock.now_ns() - row_.time_ns;
        real_ns_ += clock_ns(CLOCK_MONOTONIC) - real_start;
        channel.push(row_);
    }
    /// A read on the period, for the achieved rate, and for how late it began.
    void tick(const Clock& clock, RowChannel& channel, std::int64_t deadline_ns) {
        read(clock, channel);
        const double late_s = seconds(row_.time_ns - deadline_ns);
        late_s2_ += late_s * late_s;
        first_tick_ns_ = ticks_ == 0 ? row_.time_ns : first_tick_ns_;
        last_tick_ns_ = row_.time_ns;
        ++ticks_;
    }

    const sensors::SourceInfo& info() const { return source_->info(); }
    double driver_s() const { return seconds(real_ns_); }
    std::optional<double> achieved_hz() const {
        return ticks_ < 2 || last_tick_ns_ == first_tick_ns_
                   ? std::nullopt
                   : std::optional(static_cast<double>(ticks_ - 1) / seconds(last_tick_ns_ - first_tick_ns_));
    }

    std::optional<double> jitter_s() const {
        return ticks_ == 0 ? std::nullopt : std::optional(std::sqrt(late_s2_ / static_cast<double>(ticks_)));
    }

  private:
    sensors::Source* source_;
    Row row_{};
    std::int64_t real_ns_ = 0;
    std::int64_t first_tick_ns_ = 0, last_tick_ns_ = 0;
    std::uint64_t ticks_ = 0;
    double late_s2_ = 0;
};

/// Who of the threads has taken part in the clock, and who has returned: one that hangs in a driver is
/// noticed.
class Roll {
  public:
    void enter() {
        change([this] { ++entered_; });
    }
    void withdraw() {
        change([this] { --entered_; });
    }
    void seat() {
        change([this] { ++seated_; });
    }
    void leave() {
        change([this] { ++left_; });
    }
    /// Instead of `seat` and `leave`, by a thread for which the clock has no place.
    void turn_away(std::exception_ptr reason) {
        change([&] {
            ++seated_;
            ++left_;
            turned_away_ = std::move(reason);
        });
    }
    std::exception_ptr turned_away() {
        const std::scoped_lock lock(mutex_);
        return turned_away_;
    }
    bool wait_until_seated() {
        return wait([this] { return seated_ == entered_; });
    }
    bool wait_until_empty() {
        return wait([this] { return left_ == entered_; });
    }

  private:
    template <typename Change>
    void change(Change&& apply) {
        const std::scoped_lock lock(mutex_);
        apply();
        changed_.notify_all();
    }
    template <typename Holds>
    bool wait(Holds&& holds) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, holds);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int entered_ = 0, seated_ = 0, left_ = 0;
    std::exception_ptr turned_away_;
};

}  // namespace

struct Sampler::State {
    /// All fast sources. The mutex makes the sampling thread and region edges one producer.
    struct Fast {
        std::mutex mutex;
        std::vector<Reader> readers;
        RowChannel* channel = nullptr;
        std::uint64_t late = 0;
        std::stop_source stop;
    };

    /// One slow source. It sleeps until its deadline or until `request` wakes it.
    struct Slow {
        Slow(sensors::Source& source, std::uint32_t index) : reader(source, index) {}
        Reader reader;
        RowChannel* channel = nullptr;
        std::uint64_t late = 0;

        std::mutex mutex;
        std::condition_variable answered;
        std::stop_source wake;  ///< one per request: made by who asks, so that the thread never allocates
        std::uint64_t requested = 0, done = 0;
        bool stopping = false;

        void request(bool stop) {
            const std::scoped_lock lock(mutex);
            ++requested;
            stopping = stopping || stop;
            wake.request_stop();
            wake = std::stop_source();
        }
        void wait_answered(std::chrono::steady_clock::time_point deadline) {
            std::unique_lock lock(mutex);
            answered.wait_until(lock, deadline, [this] { return done == requested; });
        }
    };

    std::shared_ptr<Clock> clock;
    SamplingRates rates;
    Fast fast;
    std::vector<std::unique_ptr<Slow>> slow;
    Roll roll;
    std::vector<std::thread> threads;
    bool started = false;

    bool read_fast();
    void run_fast();
    void run_slow(Slow& source);
    void request_slow(bool stop);
    void wait_slow();
    template <typename Body>
    void spawn(Body body);
};

bool Sampler::State::read_fast() {
    // A read that hangs keeps the mutex for ever, and must not take markers with it.
    for (auto waited = 0ms; !fast.mutex.try_lock(); waited += 1ms) {
        if (waited >= patience) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    const std::scoped_lock lock(std::adopt_lock, fast.mutex);
    for (Reader& reader : fast.readers) {
        reader.read(*clock, *fast.channel);
    }
    return true;
}

void Sampler::State::run_fast() {
    Deadlines deadlines(clock->now_ns(), rates.rate_hz);
    while (clock->sleep_until(deadlines.next(), fast.stop.get_token())) {
        const std::scoped_lock lock(fast.mutex);
        for (Reader& reader : fast.readers) {
            reader.tick(*clock, *fast.channel, deadlines.next());
        }
        fast.late += deadlines.advance(clock->now_ns());
    }
}

void Sampler::State::run_slow(Slow& source) {
    Deadlines deadlines(clock->now_ns(), rates.energy_rate_hz);
    std::int64_t cpu_ns = 0;
    std::uint64_t reads = 0;
    for (bool stopping = false; !stopping;) {
        std::uint64_t asked = 0;
        std::stop_token wake;
        {
            const std::scoped_lock lock(source.mutex);
            asked = source.requested;
            stopping = source.stopping;
            wake = source.wake.get_token();
        }
        const bool answer = source.done != asked;
        if (!answer && !clock->sleep_until(deadlines.next(), wake)) {
            continue;  // asked for a reading meanwhile
        }
        const std::int64_t cpu_start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        answer ? source.reader.read(*clock, *source.channel)
               : source.reader.tick(*clock, *source.channel, deadlines.next());
        cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
        ++reads;
        if (answer) {
            const std::scoped_lock lock(source.mutex);
            source.done = asked;
            source.answered.notify_all();
            continue;
        }
        if (rates.slow_cpu_share > 0) {
            const double cost_ns = static_cast<double>(cpu_ns) / static_cast<double>(reads);
            deadlines.stretch(
                std::llround(cost_ns * static_cast<double>(slow.size()) / rates.slow_cpu_share));
        }
        source.late += deadlines.advance(clock->now_ns());
    }
}

void Sampler::State::request_slow(bool stop) {
    for (const auto& source : slow) {
        source->request(stop);
    }
}

void Sampler::State::wait_slow() {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (const auto& source : slow) {
        source->wait_answered(deadline);
    }
}

template <typename Body>
void Sampler::State::spawn(Body body) {
    roll.enter();
    try {
        threads.emplace_back([this, body] {
            // From its first sleep on a simulated clock waits for this thread: it must not run ahead before.
            try {
                clock->sleep_until(clock->now_ns(), std::stop_token());
            } catch (...) {
                roll.turn_away(std::current_exception());
                return;
            }
            roll.seat();
            body();
            roll.leave();
        });
    } catch (...) {  // no more threads: those that run are stopped, and nobody waits for this one
        roll.withdraw();
        throw;
    }
}

Sampler::Sampler(std::shared_ptr<Clock> clock, const std::vector<std::unique_ptr<sensors::Source>>& sources,
                 RunWriter& writer, const SamplingRates& rates)
    : state_(std::make_unique<State>()) {
    // Room for four seconds of ticks and as many edges; the writer comes twice a second.
    const auto room = [](double rate_hz, std::size_t count) {
        return std::max<std::size_t>(256, static_cast<std::size_t>(rate_hz * 8) * count);
    };
    state_->clock = std::move(clock);
    state_->rates = rates;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        if (sources[i]->info().slow) {
            state_->slow.push_back(std::make_unique<State::Slow>(*sources[i], index));
            state_->slow.back()->channel = &writer.channel(room(rates.energy_rate_hz, 1));
        } else {
            state_->fast.readers.emplace_back(*sources[i], index);
        }
    }
    state_->fast.channel = &writer.channel(room(rates.rate_hz, state_->fast.readers.size()));
}

Sampler::~Sampler() {
    stop();
}

void Sampler::start() {
    State& state = *state_;
    state.started = true;
    for (const auto& source : state.slow) {
        state.spawn([&state, slow = source.get()] { state.run_slow(*slow); });
    }
    state.request_slow(false);
    state.read_fast();
    if (!state.roll.turned_away()) {
        state.wait_slow();
    }
    if (!state.fast.readers.empty()) {
        state.spawn([&state] { state.run_fast(); });
    }
    state.roll.wait_until_seated();
    if (const auto reason = state.roll.turned_away()) {
        stop();
        std::rethrow_exception(reason);
    }
}

void Sampler::edge() {
    state_->request_slow(false);
    state_->read_fast();
    if (state_->clock->simulated()) {
        state_->wait_slow();
    }
}

bool Sampler::stop() {
    State& state = *state_;
    if (!state.started) {
        return true;
    }
    state.request_slow(true);
    state.fast.stop.request_stop();
    state.read_fast();
    if (!state.roll.wait_until_empty()) {
        return false;
    }
    for (std::thread& thread : state.threads) {
        thread.join();
    }
    state.started = false;
    return true;
}

Sampler::Statistics Sampler::statistics() const {
    Statistics statistics{.late = state_->fast.late};
    const auto add = [&](const Reader& reader) {
        statistics.driver_s += reader.driver_s();
        if (const auto rate = reader.achieved_hz()) {
            statistics.achieved_hz[reader.info().name + "." + reader.info().device] = *rate;
            statistics.jitter_s[reader.info().name + "." + reader.info().device] =
                reader.jitter_s().value_or(0);
        }
    };
    for (const Reader& reader : state_->fast.readers) {
        add(reader);
    }
    for (const auto& source : state_->slow) {
        add(source->reader);
        statistics.late += source->late;
    }
    return statistics;
}

}  // namespace joulemark::meter

// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPUs of one machine: a sparse file that every process maps. Readers take no lock. Writers
// hold a kernel lock (an OFD lock on one byte), and each change becomes visible by one atomic store, so that
// a process killed at any instruction leaves a state that is whole and unlocked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "sim/fault.h"
#include "sim/profile.h"
#include "sim/sensor_timing.h"

namespace joulemark::sim {

inline constexpr unsigned max_gpus = 512;
inline constexpr std::size_t max_participants = 8 * max_gpus;  ///< a meter has a thread per slow sensor
inline constexpr std::size_t max_faults = 32;
inline constexpr std::size_t max_segments = std::size_t{1} << 21;  ///< per GPU; pages are allocated when used

enum class ClockMode : std::uint32_t { simulated, real };

/// What a state is made from; everything else follows.
struct Options {
    const Profile* profile = nullptr;
    unsigned gpus = 1;
    ClockMode clock = ClockMode::simulated;
    std::uint64_t seed = 1;
    double counter_latency_s = 3.5e-3;         ///< only under the real clock: a simulated instant is frozen
    std::optional<SensorTiming> sensors = {};  ///< else the accelerator's
    std::vector<Fault> faults;
};

/// What a GPU does from `start_ns` until the next segment or `end_ns`, after which it idles. `energy_j`,
/// `busy_s` (integral of busy) and `temperature_c` hold at the start: any later time is one closed form away.
struct Segment {
    std::int64_t start_ns;
    std::atomic<std::int64_t> end_ns;  ///< brought forward when the work ends before
    double power_w;
    double busy;  ///< 0..1
    double sm_clock_mhz;
    std::uint64_t memory_bytes;
    double energy_j;
    double busy_s;
    double temperature_c;
    std::uint64_t owner;  ///< Slot::owner of the process whose load it is
    bool capped;          ///< the power limit holds it back
};

/// What a process wants a GPU to do.
struct Load {
    double power_w = 0;
    double busy = 0;
    double sm_clock_mhz = 0;
    std::uint64_t memory_bytes = 0;
    bool capped = false;
};

/// A seat at the clock. It is free (deadline `free_deadline`), or runnable (deadline <= now, or woken), or
/// asleep until the deadline. Whoever sits there holds a kernel lock on the slot's own byte of the file.
struct Slot {
    std::atomic<std::int64_t> deadline;
    std::atomic<std::uint64_t> owner;  ///< never used twice
    std::atomic<std::uint32_t> drives;
    std::atomic<std::uint32_t> woken;
    std::atomic<std::uint32_t> changes;  ///< futex word
};

struct Gpu {
    std::atomic<std::uint32_t> limit_mw;
    std::atomic<std::uint32_t> clock_low_mhz, clock_high_mhz;  ///< of a locked clock; 0, 0 without
    std::atomic<std::uint64_t> segments;                       ///< of the log; only these may be read
    std::atomic<std::uint64_t> allocated;                      ///< segments with disk space behind them
};

struct Header {
    char magic[8];
    std::uint32_t profile;
    std::uint32_t gpus;
    ClockMode clock;
    std::uint32_t faults;
    std::uint64_t seed;
    std::int64_t start_ns;     ///< of the clock
    std::int64_t realtime_ns;  ///< at start_ns
    double counter_latency_s;
    SensorTiming sensors;
    Fault fault[max_faults];
    std::atomic<std::int64_t> now_ns;   ///< of the simulated clock
    std::atomic<std::uint64_t> owners;  ///< given out so far
    std::atomic<std::uint64_t> runs;    ///< simulated trainings begun so far
    std::atomic<std::uint64_t> seats;   ///< slots from here on were never used
    Slot slot[max_participants];
    Gpu gpu[max_gpus];
};

class State {
  public:
    /// Makes the file, replacing an old one. Throws environment_error naming the path and the cause.
    static void create(const std::filesystem::path& path, const Options& options);

    /// Maps the file, or says why not. Within a process the same file gives the same object, which is kept to
    /// the end of the process: handles and threads may outlive the library that they came from.
    static Result<State*> open(const std::filesystem::path& path);

    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const Profile& profile() const { return profiles()[header_->profile]; }
    unsigned gpus() const { return header_->gpus; }
    bool real_clock() const { return header_->clock == ClockMode::real; }
    std::uint64_t seed() const { return header_->seed; }
    std::int64_t start_ns() const { return header_->start_ns; }
    const SensorTiming& sensors() const { return header_->sensors; }
    double counter_latency_s() const { return header_->counter_latency_s; }
    std::vector<Fault> faults() const { return {header_->fault, header_->fault + header_->faults}; }
    std::int64_t now_ns() const;
    std::int64_t realtime_ns() const;
    std::string uuid(unsigned gpu) const;
    /// From NVML's (and CUDA's) index to the physical number, and back: the same mapping.
    unsigned reordered(unsigned number) const;

    /// Excludes all other threads and processes while it lives.
    class Lock {
      public:
        explicit Lock(State& state);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

      private:
        State& state_;
        std::lock_guard<std::mutex> threads_;
    };

    double limit_w(unsigned gpu) const { return header_->gpu[gpu].limit_mw.load() * 1e-3; }
    /// Highest SM clock that the lock allows.
    double clock_limit_mhz(unsigned gpu) const;
    /// Both wake all who drive the clock, so that work in progress obeys at this instant.
    void set_limit_mw(unsigned gpu, std::uint32_t limit);
    void lock_clock_mhz(unsigned gpu, std::uint32_t low, std::uint32_t high);

    /// The load log of a GPU so far.
    std::span<const Segment> segments(unsigned gpu) const {
        return {log(gpu), header_->gpu[gpu].segments.load(std::memory_order_acquire)};
    }
    /// The segment that holds at a time, or null before the first. No lock.
    Segment* segment_at(unsigned gpu, std::int64_t time_ns) const;
    /// Closed forms, at any time up to now.
    double energy_j(unsigned gpu, std::int64_t time_ns) const;
    /// Mean of energy_j over the window that ends at a time; without a window, what it is then.
    double mean_energy_j(unsigned gpu, std::int64_t time_ns, std::int64_t window_ns) const;
    double busy_s(unsigned gpu, std::int64_t time_ns) const;
    double temperature_c(unsigned gpu, std::int64_t time_ns) const;
    /// Null when the GPU idles.
    Segment* load_at(unsigned gpu, std::int64_t time_ns) const;

    /// Appends to a GPU's log from now on. Throws environment_error when the disk or the log is full.
    void append(unsigned gpu, const Load& load, std::int64_t end_ns, std::uint64_t owner);
    /// The same, under a Lock that the caller holds.
    void append_locked(unsigned gpu, const Load& load, std::int64_t end_ns, std::uint64_t owner);
    /// Ends every load of an owner at this instant. Needs no space. Under a Lock that the caller holds.
    void end_loads_locked(std::uint64_t owner);

    std::uint64_t next_run() { return header_->runs.fetch_add(1); }

  private:
    friend class Participant;
    State(files::Descriptor file, Header* header, Segment* log);
    Segment* log(unsigned gpu) const { return log_ + static_cast<std::size_t>(gpu) * max_segments; }
    void reserve(unsigned gpu, std::uint64_t count);
    void wake_drivers();
    bool seat_is_alive(std::size_t seat);

    files::Descriptor file_;
    Header* header_;
    Segment* log_;
    std::mutex mutex_;                 // OFD locks do not exclude threads that share the descriptor
    bool own_[max_participants] = {};  // seats of this process, under mutex_
};

}  // namespace joulemark::sim

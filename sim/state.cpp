// SPDX-License-Identifier: Apache-2.0
#include "sim/state.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "sim/kernel.h"
#include "sim/truth.h"

namespace joulemark::sim {
namespace {

static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "atomics in shared memory must not hide a lock");

constexpr char magic[8] = {'J', 'M', 'S', 'I', 'M', '0', '3', '\0'};
constexpr std::size_t page = 4096;
constexpr std::size_t header_bytes = (sizeof(Header) + page - 1) / page * page;
constexpr std::uint64_t allocation_step = 512;  // segments
// The clock does not start at 0, nor the counters: a reader that takes 0 for "none" should be found out.
constexpr std::int64_t clock_start_ns = 1000 * ns_per_s;

std::size_t file_bytes(unsigned gpus) {
    return header_bytes + gpus * max_segments * sizeof(Segment);
}

}  // namespace

void State::create(const std::filesystem::path& path, const Options& options) {
    std::filesystem::path temporary = path;
    temporary += "." + std::to_string(getpid()) + ".tmp";
    const auto fail = [&](int error) {
        unlink(temporary.c_str());
        return environment_error("cannot create the simulated GPUs {}: {}", path.string(),
                                 std::strerror(error));
    };
    const files::Descriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) {
        throw fail(errno);
    }
    if (ftruncate(file.get(), static_cast<off_t>(file_bytes(options.gpus))) != 0) {
        throw fail(errno);
    }
    if (const int error = posix_fallocate(file.get(), 0, header_bytes); error != 0) {
        throw fail(error);
    }
    void* memory = mmap(nullptr, header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) {
        throw fail(errno);
    }
    const MonotonicClock clock;
    auto* header = new (memory) Header{};
    header->profile = static_cast<std::uint32_t>(options.profile - profiles().data());
    header->gpus = options.gpus;
    header->clock = options.clock;
    header->seed = options.seed;
    header->start_ns = options.clock == ClockMode::real ? clock.now_ns() : clock_start_ns;
    header->realtime_ns = clock.realtime_ns();
    header->now_ns = header->start_ns;
    header->counter_latency_s = options.counter_latency_s;
    header->sensors = options.sensors.value_or(SensorTiming(*options.profile));
    header->faults = static_cast<std::uint32_t>(options.faults.size());
    std::ranges::copy(options.faults, header->fault);
    for (Slot& slot : header->slot) {
        slot.deadline = free_deadline;
    }
    for (Gpu& gpu : header->gpu) {
        gpu.limit_mw = static_cast<std::uint32_t>(options.profile->limit_max_w * 1e3);
    }
    std::ranges::copy(magic, header->magic);
    munmap(memory, header_bytes);
    if (rename(temporary.c_str(), path.c_str()) != 0) {
        throw fail(errno);
    }
}

Result<State*> State::open(const std::filesystem::path& path) {
    static std::mutex mutex;
    // Never destroyed: threads may still leave the clock while the process ends.
    static auto& opened = *new std::map<std::pair<dev_t, ino_t>, std::unique_ptr<State>>;
    const std::string remedy =
        "make simulated GPUs with `joulemark-sim create` and name the file in JOULEMARK_SIM";
    const std::lock_guard guard(mutex);

    files::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) {
        return Failure{
            fmt::format("cannot open the simulated GPUs {}: {}", path.string(), std::strerror(errno)),
            remedy};
    }
    const std::pair key(status.st_dev, status.st_ino);
    if (const auto known = opened.find(key); known != opened.end()) {
        return known->second.get();
    }
    const Failure foreign{fmt::format("{} holds no simulated GPUs of this version", path.string()), remedy};
    const auto bytes = static_cast<std::size_t>(status.st_size);
    if (!S_ISREG(status.st_mode) || bytes < header_bytes) {
        return foreign;
    }
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) {
        return Failure{fmt::format("cannot map {}: {}", path.string(), std::strerror(errno)), remedy};
    }
    auto* header = static_cast<Header*>(memory);
    if (!std::ranges::equal(header->magic, magic) || header->gpus > max_gpus ||
        bytes != file_bytes(header->gpus) || header->profile >= profiles().size() ||
        header->faults > max_faults) {
        munmap(memory, bytes);
        return foreign;
    }
    auto* log = reinterpret_cast<Segment*>(static_cast<std::byte*>(memory) + header_bytes);
    std::unique_ptr<State> state(new State(std::move(file), header, log));
    return opened.emplace(key, std::move(state)).first->second.get();
}

State::State(files::Descriptor file, Header* header, Segment* log)
    : file_(std::move(file)), header_(header), log_(log) {}

State::Lock::Lock(State& state) : state_(state), threads_(state.mutex_) {
    lock_byte(state_.file_.get(), state_byte);
}
State::Lock::~Lock() {
    unlock_byte(state_.file_.get(), state_byte);
}

std::int64_t State::now_ns() const {
    return real_clock() ? MonotonicClock().now_ns() : header_->now_ns.load(std::memory_order_acquire);
}

std::int64_t State::realtime_ns() const {
    return real_clock() ? MonotonicClock().realtime_ns() : header_->realtime_ns + now_ns() - start_ns();
}

std::string State::uuid(unsigned gpu) const {
    const std::uint64_t machine = mix(seed(), header_->profile);  // readings are of the seed alone
    const std::uint64_t high = mix(machine, 2 * gpu);
    const std::uint64_t low = mix(machine, 2 * gpu + 1);
    return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                       high & 0xffff, low >> 48, low & 0xffffffffffff);
}

unsigned State::reordered(unsigned number) const {
    const std::span faults(header_->fault, header_->faults);
    const bool backwards = std::ranges::count(faults, FaultKind::index_order, &Fault::kind) > 0;
    return backwards ? gpus() - 1 - number : number;
}

double State::clock_limit_mhz(unsigned gpu) const {
    const double high = header_->gpu[gpu].clock_high_mhz.load();
    return high > 0 ? std::min(high, profile().clock_max_mhz) : profile().clock_max_mhz;
}

void State::set_limit_mw(unsigned gpu, std::uint32_t limit) {
    const Lock lock(*this);
    header_->gpu[gpu].limit_mw = limit;
    wake_drivers();
}

void State::lock_clock_mhz(unsigned gpu, std::uint32_t low, std::uint32_t high) {
    const Lock lock(*this);
    header_->gpu[gpu].clock_low_mhz = low;
    header_->gpu[gpu].clock_high_mhz = high;
    wake_drivers();
}

void State::wake_drivers() {
    for (std::size_t seat = 0; seat < header_->seats; ++seat) {
        Slot& slot = header_->slot[seat];
        if (slot.deadline != free_deadline && slot.drives != 0) {
            slot.woken = 1;
            futex_signal(slot.changes);
        }
    }
}

Segment* State::segment_at(unsigned gpu, std::int64_t time_ns) const {
    Segment* begin = log(gpu);
    Segment* end = begin + header_->gpu[gpu].segments.load(std::memory_order_acquire);
    // Nearly every question is about the recent past.
    for (int i = 0; i < 4 && end != begin; ++i, --end) {
        if (end[-1].start_ns <= time_ns) {
            return end - 1;
        }
    }
    Segment* after = std::upper_bound(begin, end, time_ns, [](std::int64_t time, const Segment& segment) {
        return time < segment.start_ns;
    });
    return after == begin ? nullptr : after - 1;
}

Segment* State::load_at(unsigned gpu, std::int64_t time_ns) const {
    Segment* segment = segment_at(gpu, time_ns);
    return segment != nullptr && time_ns < segment->end_ns ? segment : nullptr;
}

double State::energy_j(unsigned gpu, std::int64_t time_ns) const {
    const double idle = profile().idle_power_w;
    const Segment* segment = segment_at(gpu, time_ns);
    if (segment == nullptr) {
        return idle * seconds(time_ns - start_ns() + clock_start_ns);
    }
    const std::int64_t loaded_until = std::min(time_ns, segment->end_ns.load());
    return segment->energy_j + segment->power_w * seconds(loaded_until - segment->start_ns) +
           idle * seconds(time_ns - loaded_until);
}

double State::mean_energy_j(unsigned gpu, std::int64_t time_ns, std::int64_t window_ns) const {
    if (window_ns <= 0) {
        return energy_j(gpu, time_ns);
    }
    // Energy is a straight line between the edges of loads.
    const std::span<const Segment> log = segments(gpu);
    const auto edge_after = [&](std::int64_t time) {
        const auto next = std::ranges::upper_bound(log, time, {}, &Segment::start_ns);
        std::int64_t edge = next == log.end() ? time_ns : std::min(time_ns, next->start_ns);
        if (next != log.begin() && std::prev(next)->end_ns > time) {
            edge = std::min(edge, std::prev(next)->end_ns.load());
        }
        return edge;
    };
    double area = 0;  // in joule seconds, above the energy at the start
    const std::int64_t start = time_ns - window_ns;
    const double base_j = energy_j(gpu, start);
    for (std::int64_t from = start, to = 0; from < time_ns; from = to) {
        to = edge_after(from);
        area += (energy_j(gpu, from) + energy_j(gpu, to) - 2 * base_j) / 2 * seconds(to - from);
    }
    return base_j + area / seconds(window_ns);
}

double State::busy_s(unsigned gpu, std::int64_t time_ns) const {
    const Segment* segment = segment_at(gpu, time_ns);
    if (segment == nullptr) {
        return 0;
    }
    return segment->busy_s +
           segment->busy * seconds(std::min(time_ns, segment->end_ns.load()) - segment->start_ns);
}

double State::temperature_c(unsigned gpu, std::int64_t time_ns) const {
    const Profile& about = profile();
    const auto settled = [&](double power) { return about.ambient_c + about.kelvin_per_w * power; };
    const auto approach = [&](double from, double power, double s) {
        return settled(power) + (from - settled(power)) * std::exp(-s / about.thermal_time_s);
    };
    const Segment* segment = segment_at(gpu, time_ns);
    if (segment == nullptr) {
        return settled(about.idle_power_w);
    }
    const std::int64_t loaded_until = std::min(time_ns, segment->end_ns.load());
    const double after_load =
        approach(segment->temperature_c, segment->power_w, seconds(loaded_until - segment->start_ns));
    return approach(after_load, about.idle_power_w, seconds(time_ns - loaded_until));
}

void State::append(unsigned gpu, const Load& load, std::int64_t end_ns, std::uint64_t owner) {
    const Lock lock(*this);
    append_locked(gpu, load, end_ns, owner);
}

void State::append_locked(unsigned gpu, const Load& load, std::int64_t end_ns, std::uint64_t owner) {
    const std::uint64_t count = header_->gpu[gpu].segments;
    const std::int64_t now = now_ns();
    const std::int64_t start = count > 0 ? std::max(now, log(gpu)[count - 1].start_ns) : now;
    reserve(gpu, count + 1);
    new (&log(gpu)[count]) Segment{.start_ns = start,
                                   .end_ns = std::max(start, end_ns),
                                   .power_w = load.power_w,
                                   .busy = load.busy,
                                   .sm_clock_mhz = load.sm_clock_mhz,
                                   .memory_bytes = load.memory_bytes,
                                   .energy_j = energy_j(gpu, start),
                                   .busy_s = busy_s(gpu, start),
                                   .temperature_c = temperature_c(gpu, start),
                                   .owner = owner,
                                   .capped = load.capped};
    header_->gpu[gpu].segments.store(count + 1, std::memory_order_release);
}

void State::reserve(unsigned gpu, std::uint64_t count) {
    std::atomic<std::uint64_t>& allocated = header_->gpu[gpu].allocated;
    if (count <= allocated) {
        return;
    }
    if (count > max_segments) {
        throw environment_error(
            "the load log of simulated GPU {} is full; make a new state with `joulemark-sim create`", gpu);
    }
    // Writing to a page of a mapped sparse file on a full disk would end the process: ask for the space
    // first.
    const auto offset = header_bytes + (gpu * max_segments + allocated) * sizeof(Segment);
    const int error =
        posix_fallocate(file_.get(), static_cast<off_t>(offset), allocation_step * sizeof(Segment));
    if (error != 0) {
        throw environment_error("cannot extend the load log of the simulated GPUs: {}", std::strerror(error));
    }
    allocated += allocation_step;
}

void State::end_loads_locked(std::uint64_t owner) {
    const std::int64_t now = now_ns();
    for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
        Segment* load = load_at(gpu, now);
        if (load != nullptr && load->owner == owner) {
            load->end_ns = now;
        }
    }
}

}  // namespace joulemark::sim

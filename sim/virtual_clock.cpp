// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual_clock.h"

#include <algorithm>

#include "core/clock.h"
#include "sim/kernel.h"

namespace joulemark::sim {
namespace {

/// How long a sleeper trusts that somebody will wake it, before it looks for the dead itself.
constexpr std::int64_t patience_ns = 50'000'000;

}  // namespace

bool State::seat_is_alive(std::size_t seat) {
    return own_[seat] || byte_is_locked(file_.get(), seat_byte(seat));
}

std::unique_ptr<Participant> Participant::join(State& state, bool drives) {
    const State::Lock lock(state);
    drop_dead(state);
    Header& header = *state.header_;
    for (std::size_t seat = 0; seat < max_participants; ++seat) {
        Slot& slot = header.slot[seat];
        if (slot.deadline != free_deadline || !try_lock_byte(state.file_.get(), seat_byte(seat))) {
            continue;
        }
        state.own_[seat] = true;
        slot.owner = ++header.owners;
        slot.drives = drives ? 1 : 0;
        slot.woken = 0;
        header.seats = std::max<std::uint64_t>(header.seats, seat + 1);
        slot.deadline = 0;  // awake from here on
        return std::unique_ptr<Participant>(new Participant(state, seat));
    }
    return nullptr;
}

Participant::Participant(State& state, std::size_t seat)
    : state_(state), seat_(seat), slot_(state.header_->slot[seat]) {}

Participant::~Participant() {
    const State::Lock lock(state_);
    release(state_, seat_);
    unlock_byte(state_.file_.get(), seat_byte(seat_));
    state_.own_[seat_] = false;
    advance(state_);
}

void Participant::release(State& state, std::size_t seat) {
    Slot& slot = state.header_->slot[seat];
    state.end_loads_locked(slot.owner);
    slot.deadline = free_deadline;
}

void Participant::drop_dead(State& state) {
    for (std::size_t seat = 0; seat < state.header_->seats; ++seat) {
        if (state.header_->slot[seat].deadline != free_deadline && !state.seat_is_alive(seat)) {
            release(state, seat);
        }
    }
}

void Participant::advance(State& state) {
    Header& header = *state.header_;
    if (state.real_clock()) {
        return;
    }
    const std::int64_t now = header.now_ns;
    std::int64_t earliest = free_deadline;
    bool driven = false;
    for (std::size_t seat = 0; seat < header.seats; ++seat) {
        Slot& slot = header.slot[seat];
        const std::int64_t deadline = slot.deadline;
        if (deadline == free_deadline) {
            continue;
        }
        if (deadline <= now || slot.woken != 0) {
            return;  // somebody is awake
        }
        if (!driven && slot.drives != 0) {
            driven = state.seat_is_alive(seat);
            if (!driven) {
                release(state, seat);
                continue;
            }
        }
        earliest = std::min(earliest, deadline);
    }
    if (!driven || earliest >= free_deadline - 1) {
        return;
    }
    header.now_ns.store(earliest, std::memory_order_release);
    for (std::size_t seat = 0; seat < header.seats; ++seat) {
        Slot& slot = header.slot[seat];
        if (slot.deadline <= earliest) {
            futex_signal(slot.changes);
        }
    }
}

bool Participant::awake_again(std::int64_t deadline_ns, bool& reached) {
    reached = state_.now_ns() >= deadline_ns;
    if (slot_.woken.exchange(0) != 0) {
        reached = false;
    } else if (!reached) {
        return false;
    }
    slot_.deadline = 0;
    return true;
}

bool Participant::sleep_until(std::int64_t deadline_ns) {
    deadline_ns = std::clamp<std::int64_t>(deadline_ns, 0, free_deadline - 1);
    bool reached = false;
    {
        const State::Lock lock(state_);
        slot_.deadline = deadline_ns;
        advance(state_);
        if (awake_again(deadline_ns, reached)) {
            return reached;
        }
    }
    const MonotonicClock real;
    while (true) {
        const std::uint32_t seen = slot_.changes;
        if (state_.now_ns() < deadline_ns && slot_.woken == 0) {
            futex_wait(slot_.changes, seen, state_.real_clock() ? deadline_ns : real.now_ns() + patience_ns);
        }
        const bool idle = state_.now_ns() < deadline_ns && slot_.woken == 0;
        const State::Lock lock(state_);
        if (idle && !state_.real_clock()) {
            drop_dead(state_);
            advance(state_);
        }
        if (awake_again(deadline_ns, reached)) {
            return reached;
        }
    }
}

void Participant::wake() {
    slot_.woken = 1;
    futex_signal(slot_.changes);
}

}  // namespace joulemark::sim

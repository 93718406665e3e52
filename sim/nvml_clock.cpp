// SPDX-License-Identifier: Apache-2.0
//
// What the look-alike exports beside NVML: its clock.
#include "sim/nvml_context.h"
#include "sim/virtual_clock.h"

using namespace joulemark::sim;  // NOLINT: the functions below are C's, outside every namespace

JOULEMARK_SIM_EXPORT int joulemark_sim_clock_is_virtual() {
    const State* state = current_state();
    return state != nullptr && !state->real_clock() ? 1 : 0;
}

JOULEMARK_SIM_EXPORT std::int64_t joulemark_sim_now_ns() {
    const State* state = current_state();
    return state == nullptr ? 0 : state->now_ns();
}

JOULEMARK_SIM_EXPORT std::int64_t joulemark_sim_realtime_ns() {
    const State* state = current_state();
    return state == nullptr ? 0 : state->realtime_ns();
}

JOULEMARK_SIM_EXPORT void* joulemark_sim_join(int drives) {
    State* state = current_state();
    return state == nullptr ? nullptr : Participant::join(*state, drives != 0).release();
}

JOULEMARK_SIM_EXPORT int joulemark_sim_sleep(void* participant, std::int64_t deadline_ns) {
    return static_cast<Participant*>(participant)->sleep_until(deadline_ns) ? 1 : 0;
}

JOULEMARK_SIM_EXPORT void joulemark_sim_wake(void* participant) {
    static_cast<Participant*>(participant)->wake();
}

JOULEMARK_SIM_EXPORT void joulemark_sim_leave(void* participant) {
    delete static_cast<Participant*>(participant);
}

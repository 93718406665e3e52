// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "vendor/nvml.h"

namespace joulemark::controls {

/// One GPU behind NVML's table: 100 to 250 W, four clock steps, and a switch for permission.
struct FakeGpu {
    static inline unsigned limit_mw = 250'000;
    static inline unsigned locked_mhz = 0;
    static inline bool permitted = true;

    static nvml::Device make() {
        limit_mw = 250'000;
        locked_mhz = 0;
        permitted = true;
        static const nvml::api::Table table = [] {
            nvml::api::Table t;
            t.uuid = [](nvml::api::Device, char* text, unsigned size) {
                std::strncpy(text, "GPU-fake", size);
                return nvml::api::success;
            };
            t.power_limit = [](nvml::api::Device, unsigned* mw) {
                *mw = limit_mw;
                return nvml::api::success;
            };
            t.power_limit_range = [](nvml::api::Device, unsigned* low, unsigned* high) {
                *low = 100'000;
                *high = 250'000;
                return nvml::api::success;
            };
            t.set_power_limit = [](nvml::api::Device, unsigned mw) {
                if (permitted) {
                    limit_mw = mw;
                }
                return permitted ? nvml::api::success : nvml::api::error_no_permission;
            };
            t.set_locked_clocks = [](nvml::api::Device, unsigned, unsigned high) {
                locked_mhz = high;
                return nvml::api::success;
            };
            t.reset_locked_clocks = [](nvml::api::Device) {
                locked_mhz = 0;
                return nvml::api::success;
            };
            t.supported_memory_clocks = [](nvml::api::Device, unsigned* count, unsigned* clocks) {
                *count = 1;
                clocks[0] = 877;
                return nvml::api::success;
            };
            t.supported_graphics_clocks = [](nvml::api::Device, unsigned, unsigned* count, unsigned* clocks) {
                const unsigned steps[] = {1380, 735, 142, 135};
                std::copy(std::begin(steps), std::end(steps), clocks);
                *count = 4;
                return nvml::api::success;
            };
            return t;
        }();
        return {&table, nullptr, 0};
    }
};

}  // namespace joulemark::controls

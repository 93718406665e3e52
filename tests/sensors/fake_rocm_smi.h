// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace joulemark::sensors {

/// What the look-alike library answers; exported by it as `fake_rocm`.
struct FakeRocm {
    struct Gpu {
        std::uint64_t power_uw = 500'000'000;
        std::uint64_t counts = 1000;
        std::uint32_t busy = 90;
        int busy_status = 0;
    };
    std::uint32_t count = 2;
    Gpu gpus[4];
};

}  // namespace joulemark::sensors

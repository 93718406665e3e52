// SPDX-License-Identifier: Apache-2.0
#include "vendor/rocm_smi.h"

#include <cstdlib>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/format.h>

namespace joulemark::rocm {
namespace {

/// Calls an optional function: absent is an answer, not a crash.
template <typename Fn, typename... Args>
api::Status call(Fn function, Args... args) {
    return function == nullptr ? api::function_missing : function(args...);
}

template <typename T, typename Fn, typename... Args>
Reading<T> get(Fn function, Args... args) {
    Reading<T> reading;
    reading.status = call(function, args..., &reading.value);
    return reading;
}

template <typename T>
Reading<double> scaled(const Reading<T>& reading, double factor) {
    return {reading.status, static_cast<double>(reading.value) * factor};
}

constexpr double micro = 1e-6;

}  // namespace

Failure explain(api::Status status) {
    switch (status) {
        case api::success:
            return {"it works", ""};
        case api::not_supported:
            return {"this GPU does not support it", ""};
        case api::permission:
            return {"no permission", "join the groups video and render, or run as root"};
        case api::function_missing:
            return {"this ROCm SMI library does not have the function", "update ROCm"};
        default:
            return {fmt::format("ROCm SMI status {}", status), ""};
    }
}

Result<std::shared_ptr<Library>> Library::open() {
    std::shared_ptr<Library> library(new Library);
    const char* chosen = std::getenv("JOULEMARK_ROCM_SMI");
    const auto load_library = [&library](const char* path) {
        library->handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        return library->handle_ != nullptr;
    };
    const bool loaded = chosen != nullptr && *chosen != '\0'
                            ? load_library(chosen)
                            : load_library("librocm_smi64.so") || load_library("librocm_smi64.so.1") ||
                                  load_library("/opt/rocm/lib/librocm_smi64.so");
    if (!loaded) {
        return Failure{fmt::format("AMD's management library cannot be loaded ({})", dlerror()),
                       "install rocm-smi-lib"};
    }
    api::Table& table = library->table_;
    std::string missing;
    const auto load = [&](auto& member, const char* symbol) {
        member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(library->handle_, symbol));
        return member != nullptr;
    };
#define JOULEMARK_ROCM_LOAD_REQUIRED(member, symbol, ...) \
    if (!load(table.member, symbol)) missing = symbol;
#define JOULEMARK_ROCM_LOAD(member, symbol, ...) load(table.member, symbol);
    JOULEMARK_ROCM_REQUIRED(JOULEMARK_ROCM_LOAD_REQUIRED)
    JOULEMARK_ROCM_OPTIONAL(JOULEMARK_ROCM_LOAD)
#undef JOULEMARK_ROCM_LOAD
#undef JOULEMARK_ROCM_LOAD_REQUIRED
    if (!missing.empty()) {
        return Failure{fmt::format("AMD's management library lacks {}", missing), "update ROCm"};
    }
    if (const api::Status status = table.init(0); status != api::success) {
        Failure failure = explain(status);
        failure.reason = fmt::format("AMD's management library does not start: {}", failure.reason);
        return failure;
    }
    library->initialised_ = true;
    return library;
}

Library::~Library() {
    if (initialised_) {
        table_.shut_down();
    }
    if (handle_ != nullptr) {
        dlclose(handle_);
    }
}

std::uint32_t Library::devices() const {
    return get<std::uint32_t>(table_.device_count).value;
}

Reading<std::string> Library::name(std::uint32_t gpu) const {
    char text[128] = {};
    const api::Status status = call(table_.name, gpu, text, sizeof text - 1);
    return {status, text};
}

Reading<std::string> Library::unique_id(std::uint32_t gpu) const {
    const auto id = get<std::uint64_t>(table_.unique_id, gpu);
    return {id.status, fmt::format("GPU-{:016x}", id.value)};
}

Reading<std::string> Library::pci_bus_id(std::uint32_t gpu) const {
    const auto id = get<std::uint64_t>(table_.pci_id, gpu);
    return {id.status, fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id.value >> 32, (id.value >> 8) & 0xff,
                                   (id.value >> 3) & 0x1f, id.value & 0x7)};
}

Reading<double> Library::power_w(std::uint32_t gpu) const {
    Reading<std::uint64_t> microwatts = get<std::uint64_t>(table_.power_average, gpu, 0U);
    if (!microwatts && table_.power_any != nullptr) {
        int kind = 0;
        microwatts.status = table_.power_any(gpu, &microwatts.value, &kind);
    }
    return scaled(microwatts, micro);
}

Reading<Energy> Library::energy(std::uint32_t gpu) const {
    Reading<Energy> energy;
    float microjoules_per_count = 0;
    std::uint64_t time = 0;
    energy.status = call(table_.energy, gpu, &energy.value.counts, &microjoules_per_count, &time);
    energy.value.joules_per_count = static_cast<double>(microjoules_per_count) * micro;
    return energy;
}

Reading<double> Library::power_limit_w(std::uint32_t gpu) const {
    return scaled(get<std::uint64_t>(table_.power_cap, gpu, 0U), micro);
}

Reading<std::pair<double, double>> Library::power_limit_range_w(std::uint32_t gpu) const {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    const api::Status status = call(table_.power_cap_range, gpu, 0U, &high, &low);
    return {status, {static_cast<double>(low) * micro, static_cast<double>(high) * micro}};
}

Reading<std::uint64_t> Library::memory_total_bytes(std::uint32_t gpu) const {
    return get<std::uint64_t>(table_.memory_total, gpu, api::memory_vram);
}
Reading<double> Library::memory_used_bytes(std::uint32_t gpu) const {
    return scaled(get<std::uint64_t>(table_.memory_used, gpu, api::memory_vram), 1);
}
Reading<double> Library::memory_busy_pct(std::uint32_t gpu) const {
    return scaled(get<std::uint32_t>(table_.memory_busy, gpu), 1);
}
Reading<double> Library::busy_pct(std::uint32_t gpu) const {
    return scaled(get<std::uint32_t>(table_.busy, gpu), 1);
}

Reading<double> Library::temperature_c(std::uint32_t gpu) const {
    auto millidegrees =
        get<std::int64_t>(table_.temperature, gpu, api::temperature_junction, api::temperature_current);
    if (!millidegrees) {
        millidegrees =
            get<std::int64_t>(table_.temperature, gpu, api::temperature_edge, api::temperature_current);
    }
    return scaled(millidegrees, 1e-3);
}

}  // namespace joulemark::rocm

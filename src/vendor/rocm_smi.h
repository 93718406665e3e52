// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "vendor/rocm_smi_api.h"

namespace joulemark::rocm {

/// What a call gave: a value in SI units, or the library's status.
template <typename T>
struct Reading {
    api::Status status = api::function_missing;
    T value{};
    explicit operator bool() const { return status == api::success; }
    std::optional<T> optional() const { return *this ? std::optional<T>(value) : std::nullopt; }
};

Failure explain(api::Status status);

/// A count of the energy accumulator and what one count is worth.
struct Energy {
    std::uint64_t counts = 0;
    double joules_per_count = 0;
};

/// AMD's management library, opened at run time: `JOULEMARK_ROCM_SMI` if set, else librocm_smi64.so. Devices
/// are numbered from 0. Calls neither allocate nor throw (texts apart).
class Library {
  public:
    static Result<std::shared_ptr<Library>> open();
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    std::uint32_t devices() const;
    Reading<std::string> name(std::uint32_t gpu) const;
    Reading<std::string> unique_id(
        std::uint32_t gpu) const;  ///< "GPU-" and 16 hexadecimal digits, as HIP calls it
    Reading<std::string> pci_bus_id(std::uint32_t gpu) const;  ///< "0000:c1:00.0"
    Reading<double> power_w(
        std::uint32_t gpu) const;  ///< a short-time average, or the present one on newer chips
    Reading<Energy> energy(std::uint32_t gpu) const;
    Reading<double> power_limit_w(std::uint32_t gpu) const;
    Reading<std::pair<double, double>> power_limit_range_w(std::uint32_t gpu) const;
    Reading<std::uint64_t> memory_total_bytes(std::uint32_t gpu) const;
    Reading<double> memory_used_bytes(std::uint32_t gpu) const;
    Reading<double> memory_busy_pct(std::uint32_t gpu) const;
    Reading<double> busy_pct(std::uint32_t gpu) const;
    Reading<double> temperature_c(std::uint32_t gpu) const;  ///< of the junction, else of the edge

  private:
    Library() = default;
    void* handle_ = nullptr;
    bool initialised_ = false;
    api::Table table_;
};

}  // namespace joulemark::rocm

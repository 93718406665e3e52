// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "vendor/nvml_api.h"

namespace joulemark::nvml {

/// What a call gave: a value in SI units, or NVML's return code.
template <typename T>
struct Reading {
    api::Return status = api::error_function_not_found;
    T value{};
    explicit operator bool() const { return status == api::success; }
    std::optional<T> optional() const { return *this ? std::optional<T>(value) : std::nullopt; }
};

/// A return code as a reason and a remedy in plain words.
Failure explain(api::Return status);

/// One GPU. Copies are cheap; valid as long as its Library. Calls neither allocate nor throw (texts apart).
class Device {
  public:
    Device(const api::Table* table, api::Device handle, int index)
        : api_(table), handle_(handle), index_(index) {}

    int index() const { return index_; }

    Reading<std::string> name() const;
    Reading<std::string> uuid() const;
    Reading<std::string> pci_bus_id() const;  ///< "00000000:3b:00.0", lower case
    Reading<unsigned> minor_number() const;
    Reading<unsigned> architecture() const;
    Reading<bool> mig_enabled() const;
    Reading<std::vector<std::string>> mig_uuids() const;

    Reading<api::Memory> memory() const;
    Reading<double> power_w() const;          ///< a 1 s average on Ampere and newer (GA100 apart)
    Reading<double> power_instant_w() const;
    Reading<double> power_average_w() const;  ///< over 1 s; Ampere (GA100 apart) and newer
    Reading<double> memory_power_w() const;   ///< contained in the board's
    Reading<double> module_power_w() const;   ///< GPU, CPU and memory of a Grace-Hopper module
    Reading<std::uint64_t> energy_mj() const;  ///< since the driver was loaded; a slow call, 3-4 ms
    Reading<double> energy_j() const;         ///< the same in joules
    /// ECC errors of all memories since the driver was loaded; `type` is api::ecc_corrected or ecc_uncorrected.
    Reading<double> ecc_errors(int type) const;
    /// Processes with a compute context on this GPU, as far as this user may see them.
    Reading<unsigned> compute_processes() const;
    Reading<api::Utilization> utilization() const;
    Reading<double> sm_clock_mhz() const;
    Reading<double> memory_clock_mhz() const;
    Reading<double> sm_clock_max_mhz() const;
    Reading<double> temperature_c() const;
    Reading<std::uint64_t> throttle_reasons() const;  ///< mask of api::reason_*

    Reading<double> power_limit_w() const;           ///< as set
    Reading<double> power_limit_enforced_w() const;  ///< as in force, other limits considered
    Reading<double> power_limit_default_w() const;
    Reading<std::pair<double, double>> power_limit_range_w() const;
    api::Return set_power_limit_w(double watts) const;
    api::Return lock_sm_clock_mhz(unsigned minimum, unsigned maximum) const;
    api::Return unlock_sm_clock() const;
    Reading<std::vector<unsigned>> supported_sm_clocks_mhz() const;  ///< descending

    const api::Table& table() const { return *api_; }
    api::Device handle() const { return handle_; }

  private:
    Reading<double> field_w(unsigned int field, unsigned int scope = api::power_scope_gpu) const;
    const api::Table* api_;
    api::Device handle_;
    int index_;
};

/// NVIDIA's management library, opened at run time: `JOULEMARK_NVML` if set, else libnvidia-ml.so.1.
class Library {
  public:
    /// The library initialised, or why there is none (not installed, driver not loaded, no permission).
    static Result<std::shared_ptr<Library>> open();
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    /// Every GPU that answers; one that does not is reported in `failures` and costs only itself.
    struct Devices {
        std::vector<Device> devices;
        std::vector<std::pair<int, Failure>> failures;
    };
    Devices devices() const;

    std::string driver_version() const;
    const std::string& path() const { return path_; }

    /// Whether this is the look-alike with simulated GPUs. If they live in virtual time, `clock` is theirs.
    bool simulated() const { return table_.sim_clock_is_virtual != nullptr; }
    std::shared_ptr<Clock> clock() const;

  private:
    Library() = default;
    void* handle_ = nullptr;
    bool initialised_ = false;
    std::string path_;
    api::Table table_;
};

}  // namespace joulemark::nvml

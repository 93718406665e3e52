// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/mean.h"
#include "store/model.h"

namespace joulemark::store {

/// Absent means not measured.
using Value = std::optional<double>;

/// Samples that cover less of a window leave its energy to a bound.
inline constexpr double wanted_coverage_pct = 99;

inline void accumulate(Value& sum, const Value& part) {
    if (part) {
        sum = sum.value_or(0) + *part;
    }
}

inline Value ratio(const Value& numerator, const Value& denominator) {
    return numerator && denominator && *denominator > 0 ? Value(*numerator / *denominator) : std::nullopt;
}

/// Whether a source of run.json tells the energy of its device.
bool tells_energy(const nlohmann::json& source);

/// What a host's run.json says about its devices, as far as sums need it.
struct HostInventory {
    explicit HostInventory(const nlohmann::json& run_json);

    std::set<std::string> gpus;            ///< device ids
    std::set<std::string> energy_devices;  ///< devices with a source of energy or power
    bool module_scope = false;  ///< a GPU counter that contains the node's CPU and memory (Grace-Hopper)
};

/// The shape of the power of a window's GPUs, averaged over them: each profile is one GPU's own.
struct MeanProfile {
    double p5_w = 0, median_w = 0, p95_w = 0, sd_w = 0, fluctuation_hz = 0;
    Value at_limit_pct, idle_pct;
    std::size_t gpus = 0;
};

/// Devices over one window, or the same window of several hosts, added up so that each joule counts once:
/// a node's wall meter contains its parts and is kept apart, a module's counter contains CPU and memory.
class WindowSum {
  public:
    void add(const RegionRecord& window, const HostInventory& inventory);
    void add(const WindowSum& other);

    /// Energy of all measured components; absent when a component was measured on some of its devices only.
    Value energy_j() const { return partly_measured().empty() ? measured_j() : std::nullopt; }
    Value energy_bound_j() const {
        return partly_measured().empty() ? measured(&Part::bound_j) : std::nullopt;
    }
    /// Of the same components, what there is of them: no less was used.
    Value measured_j() const { return measured(&Part::energy_j); }
    /// Samples are missing, and the bound lets the truth be far off: over the whole time this energy is no
    /// rate. A short window's bound may be wide too, but its error scatters as its repeats do; that of a gap
    /// has one sign.
    bool uncertain() const;
    /// Each method over the devices that have both counter and integral, so that the three are comparable;
    /// where no device has both, over the devices that have it.
    struct SideBySide {
        Value counter_j, integrated_j, protocol_j;
        void add(const SideBySide& other);
    };
    /// Of one component, or of all but the node's wall meter.
    SideBySide side_by_side(std::string_view component = "") const;
    /// Sums per component, also of those that energy_j leaves out.
    std::map<std::string, double> by_component() const;
    /// Names of the components that energy_j adds up, and of those that were only partly measured.
    std::vector<std::string> contained() const;
    std::vector<std::string> partly_measured() const;
    std::set<std::string> methods() const;

    std::size_t gpus() const { return gpus_; }  ///< also those that were lost before their first sample
    std::size_t gpus_without_energy() const;
    Value gpu_covered_pct() const { return covered_.value(); }
    Value gpu_memory_util_pct() const { return memory_.value(); }
    Value gpu_memory_busy_pct() const { return memory_busy_.value(); }
    Value gpu_busy_pct() const { return busy_.value(); }
    Value sm_util_pct() const { return sm_.value(); }
    Value throttled_pct() const { return throttled_.value(); }
    Value sm_clock_mhz() const { return clock_.value(); }
    Value max_gpu_power_w() const { return max_gpu_power_; }
    bool simulated() const { return simulated_; }
    std::optional<MeanProfile> profile() const;
    /// Off the mean power of all samples, in per cent of it.
    Value decimated_1hz_pct() const;

  private:
    /// The devices of one component.
    struct Part {
        Value energy_j, bound_j;
        std::size_t lacking = 0;  ///< devices without energy
        bool gaps = false;        ///< in the samples behind energy_j
        std::set<std::string> methods;
        SideBySide both, any;
    };
    bool counts(const std::string& component) const;
    Value measured(Value Part::*value) const;

    std::map<std::string, Part, std::less<>> parts_;
    Value max_gpu_power_;
    /// Of GPUs that have a profile.
    struct Shape {
        Mean p5, median, p95, sd, fluctuation, at_limit, idle;
    };
    static constexpr auto shape_members = std::tuple(&Shape::p5, &Shape::median, &Shape::p95, &Shape::sd,
                                                     &Shape::fluctuation, &Shape::at_limit, &Shape::idle);
    Shape shape_;
    double sampled_w_ = 0, sampled_1hz_w_ = 0;  ///< of the devices that have both
    Mean covered_, memory_, memory_busy_, busy_, sm_, throttled_, clock_;  ///< over the GPUs
    std::size_t gpus_ = 0;
    bool module_scope_ = false, simulated_ = false;
};

}  // namespace joulemark::store

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/model.h"
#include "store/model.h"

namespace joulemark::analysis {

/// Whether a source of run.json tells the energy of its device.
bool tells_energy(const nlohmann::json& source);

/// What a host's run.json says about its devices, as far as sums need it.
struct HostInventory {
    explicit HostInventory(const nlohmann::json& run_json);

    std::set<std::string> gpus;            ///< device ids
    std::set<std::string> energy_devices;  ///< devices with a source of energy or power
    bool module_scope = false;  ///< a GPU counter that contains the node's CPU and memory (Grace-Hopper)
};

/// Devices over one window, or the same window of several hosts, added up so that each joule counts once:
/// a node's wall meter contains its parts and is kept apart, a module's counter contains CPU and memory.
class WindowSum {
  public:
    void add(const std::vector<store::DeviceMetrics>& devices, const HostInventory& inventory);
    void add(const WindowSum& other);

    /// Energy of all measured components; absent when a component was measured on some of its devices only.
    Value energy_j() const;
    Value energy_bound_j() const;
    /// Each method over the devices that have both counter and integral, so that the three are comparable;
    /// where no device has both, over the devices that have it.
    Value energy_counter_j() const { return both_.counter ? both_.counter : any_.counter; }
    Value energy_integrated_j() const { return both_.counter ? both_.integrated : any_.integrated; }
    Value energy_protocol_j() const { return both_.counter ? both_.protocol : any_.protocol; }
    /// Sums per component, also of those that energy_j leaves out.
    std::map<std::string, double> by_component() const;
    /// Names of the components that energy_j adds up, and whether one was only partly measured.
    std::vector<std::string> contained() const;
    std::vector<std::string> partly_measured() const;
    std::string method() const;

    Value gpu_memory_util_pct() const { return memory_.mean(); }
    Value gpu_memory_busy_pct() const { return memory_busy_.mean(); }
    Value gpu_busy_pct() const { return busy_.mean(); }
    Value sm_util_pct() const { return sm_.mean(); }
    Value throttled_pct() const { return throttled_.mean(); }
    Value sm_clock_mhz() const { return clock_.mean(); }
    Value max_gpu_power_w() const { return max_gpu_power_; }
    bool simulated() const { return simulated_; }
    std::optional<PowerProfile> profile() const;
    /// Off the mean power of all samples, in per cent of it.
    Value decimated_1hz_pct() const;

  private:
    /// Mean over devices.
    struct Average {
        double sum = 0;
        int n = 0;
        void add(const Value& value);
        void add(const Average& other) {
            sum += other.sum;
            n += other.n;
        }
        Value mean() const { return n > 0 ? Value(sum / n) : std::nullopt; }
    };
    struct SideBySide {
        Value counter, integrated, protocol;
    };
    /// The devices of one component.
    struct Part {
        Value energy_j, bound_j;
        int lacking = 0;  ///< devices without energy
        std::set<std::string> methods;
    };
    bool counts(const std::string& component) const;

    std::map<std::string, Part> parts_;
    SideBySide both_, any_;
    Value max_gpu_power_;
    /// Of GPUs that have a profile.
    struct Shape {
        Average p5, median, p95, sd, fluctuation, at_limit, idle;
    };
    static constexpr auto shape_members = std::tuple(&Shape::p5, &Shape::median, &Shape::p95, &Shape::sd,
                                                     &Shape::fluctuation, &Shape::at_limit, &Shape::idle);
    Shape shape_;
    double sampled_w_ = 0, sampled_1hz_w_ = 0;  ///< of the devices that have both
    Average memory_, memory_busy_, busy_, sm_, throttled_, clock_;
    bool module_scope_ = false, simulated_ = false;
};

}  // namespace joulemark::analysis

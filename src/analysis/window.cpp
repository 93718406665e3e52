// SPDX-License-Identifier: Apache-2.0
#include "analysis/window.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/json_access.h"

namespace joulemark::analysis {
namespace {

void accumulate(Value& sum, const Value& value) {
    if (value) {
        sum = sum.value_or(0) + *value;
    }
}

bool is_energy_metric(const std::string& metric) {
    return metric.ends_with("_energy_j") || metric.find("_power") != std::string::npos;
}

}  // namespace

HostInventory::HostInventory(const nlohmann::json& run_json) {
    for (const auto& device : child(run_json, "devices")) {
        if (text(device, "component") == "gpu") {
            gpus.insert(text(device, "device"));
        }
    }
    for (const auto& source : child(run_json, "sources")) {
        for (const auto& metric : child(source, "metrics")) {
            if (is_energy_metric(metric.get<std::string>()) && metric != "gpu_power_limit_w") {
                energy_devices.insert(text(source, "device"));
                module_scope = module_scope || text(source, "scope") == "gpu module";
            }
        }
    }
}

void WindowSum::Average::add(const Value& value) {
    if (value) {
        sum += *value;
        ++n;
    }
}

void WindowSum::add(const std::vector<store::DeviceMetrics>& devices, const HostInventory& inventory) {
    module_scope_ = module_scope_ || inventory.module_scope;
    std::set<std::string> seen;
    for (const store::DeviceMetrics& device : devices) {
        seen.insert(device.device);
        simulated_ = simulated_ || device.simulated;
        const bool gpu = device.component == "gpu";
        if (device.energy_j) {
            by_component_[device.component] += *device.energy_j;
            methods_[device.component].insert(device.energy_method);
            if (device.energy_bound_j) {
                bounds_[device.component] += *device.energy_bound_j;
            }
        } else if (gpu || inventory.energy_devices.contains(device.device)) {
            ++lacking_[device.component];
        }
        if (device.component != "node") {
            if (device.energy_counter_j && device.energy_integrated_j) {
                accumulate(both_.counter, device.energy_counter_j);
                accumulate(both_.integrated, device.energy_integrated_j);
                accumulate(both_.protocol, device.energy_protocol_j);
            }
            accumulate(any_.counter, device.energy_counter_j);
            accumulate(any_.integrated, device.energy_integrated_j);
            accumulate(any_.protocol, device.energy_protocol_j);
        }
        if (gpu) {
            memory_.add(device.gpu_memory_util_pct);
            memory_busy_.add(device.gpu_memory_busy_pct);
            busy_.add(device.gpu_busy_pct);
            sm_.add(device.sm_util_pct);
            throttled_.add(device.throttled_pct);
            clock_.add(device.sm_clock_mhz);
            if (device.max_power_w) {
                max_gpu_power_ = std::max(max_gpu_power_.value_or(0), *device.max_power_w);
            }
        }
    }
    for (const std::string& gpu : inventory.gpus) {
        lacking_["gpu"] += seen.contains(gpu) ? 0 : 1;  // lost before its first sample
    }
}

/// Whether the total adds this component, or another contains it.
bool WindowSum::counts(const std::string& component) const {
    if (component == "node") {
        return by_component_.size() == 1;  // the wall meter stands for all only where it is all there is
    }
    return component == "gpu" || !module_scope_;
}

std::vector<std::string> WindowSum::contained() const {
    std::vector<std::string> names;
    for (const auto& [component, energy] : by_component_) {
        if (counts(component)) {
            names.push_back(component);
        }
    }
    return names;
}

std::vector<std::string> WindowSum::partly_measured() const {
    std::vector<std::string> names;
    for (const auto& [component, count] : lacking_) {
        if (count > 0 && by_component_.contains(component)) {
            names.push_back(component);
        }
    }
    return names;
}

Value WindowSum::energy_j() const {
    Value total;
    for (const std::string& component : contained()) {
        const auto lacking = lacking_.find(component);
        if (lacking != lacking_.end() && lacking->second > 0) {
            return std::nullopt;
        }
        accumulate(total, by_component_.at(component));
    }
    return total;
}

Value WindowSum::energy_bound_j() const {
    Value total;
    for (const std::string& component : contained()) {
        if (const auto bound = bounds_.find(component); bound != bounds_.end()) {
            accumulate(total, bound->second);
        }
    }
    return total;
}

std::string WindowSum::method() const {
    std::set<std::string> all;
    for (const std::string& component : contained()) {
        all.insert(methods_.at(component).begin(), methods_.at(component).end());
    }
    return fmt::format("{}", fmt::join(all, " + "));
}

}  // namespace joulemark::analysis

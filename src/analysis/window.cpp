// SPDX-License-Identifier: Apache-2.0
#include "analysis/window.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/json_access.h"
#include "sensors/metric.h"

namespace joulemark::analysis {
namespace {

void accumulate(Value& sum, const Value& value) {
    if (value) {
        sum = sum.value_or(0) + *value;
    }
}

}  // namespace

bool tells_energy(const nlohmann::json& source) {
    return std::ranges::any_of(child(source, "metrics"), [](const nlohmann::json& name) {
        return sensors::tells_energy(name.get_ref<const std::string&>());
    });
}

HostInventory::HostInventory(const nlohmann::json& run_json) {
    for (const auto& device : child(run_json, "devices")) {
        if (text(device, "component") == "gpu") {
            gpus.insert(text(device, "device"));
        }
    }
    for (const auto& source : child(run_json, "sources")) {
        if (tells_energy(source)) {
            energy_devices.insert(text(source, "device"));
            module_scope = module_scope || text(source, "scope") == "gpu module";
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
    std::size_t gpus = 0;
    Part* part = nullptr;  // of the device before, mostly of this one too
    const std::string* component = nullptr;
    for (const store::DeviceMetrics& device : devices) {
        if (component == nullptr || *component != device.component) {
            part = &parts_[device.component];
            component = &device.component;
        }
        simulated_ = simulated_ || device.simulated;
        const bool gpu = device.component == "gpu";
        if (device.energy_j) {
            accumulate(part->energy_j, device.energy_j);
            accumulate(part->bound_j, device.energy_bound_j);
            part->methods.insert(device.energy_method);
        } else if (gpu || inventory.energy_devices.contains(device.device)) {
            ++part->lacking;
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
            ++gpus;
            memory_.add(device.gpu_memory_util_pct);
            memory_busy_.add(device.gpu_memory_busy_pct);
            busy_.add(device.gpu_busy_pct);
            sm_.add(device.sm_util_pct);
            throttled_.add(device.throttled_pct);
            clock_.add(device.sm_clock_mhz);
            max_gpu_power_ = std::max(max_gpu_power_, device.max_power_w);
            if (const auto& profile = device.profile) {
                shape_.p5.add(profile->p5_w);
                shape_.median.add(profile->median_w);
                shape_.p95.add(profile->p95_w);
                shape_.sd.add(profile->sd_w);
                shape_.fluctuation.add(profile->fluctuation_hz);
                shape_.at_limit.add(profile->at_limit_pct);
                shape_.idle.add(profile->idle_pct);
            }
        }
        if (device.component != "node" && device.mean_power_w && device.mean_power_1hz_w) {
            sampled_w_ += *device.mean_power_w;
            sampled_1hz_w_ += *device.mean_power_1hz_w;
        }
    }
    if (gpus < inventory.gpus.size()) {  // lost before their first sample
        parts_["gpu"].lacking += static_cast<int>(inventory.gpus.size() - gpus);
    }
}

void WindowSum::add(const WindowSum& other) {
    for (const auto& [name, theirs] : other.parts_) {
        Part& part = parts_[name];
        accumulate(part.energy_j, theirs.energy_j);
        accumulate(part.bound_j, theirs.bound_j);
        part.lacking += theirs.lacking;
        part.methods.insert(theirs.methods.begin(), theirs.methods.end());
    }
    for (const auto member : {&WindowSum::both_, &WindowSum::any_}) {
        accumulate((this->*member).counter, (other.*member).counter);
        accumulate((this->*member).integrated, (other.*member).integrated);
        accumulate((this->*member).protocol, (other.*member).protocol);
    }
    for (const auto member : {&WindowSum::memory_, &WindowSum::memory_busy_, &WindowSum::busy_,
                              &WindowSum::sm_, &WindowSum::throttled_, &WindowSum::clock_}) {
        (this->*member).add(other.*member);
    }
    std::apply([&](auto... member) { ((shape_.*member).add(other.shape_.*member), ...); }, shape_members);
    sampled_w_ += other.sampled_w_;
    sampled_1hz_w_ += other.sampled_1hz_w_;
    max_gpu_power_ = std::max(max_gpu_power_, other.max_gpu_power_);
    module_scope_ = module_scope_ || other.module_scope_;
    simulated_ = simulated_ || other.simulated_;
}

std::map<std::string, double> WindowSum::by_component() const {
    std::map<std::string, double> sums;
    for (const auto& [name, part] : parts_) {
        if (part.energy_j) {
            sums.emplace(name, *part.energy_j);
        }
    }
    return sums;
}

/// Whether the total adds this component, or another contains it.
bool WindowSum::counts(const std::string& component) const {
    if (component == "node") {  // the wall meter stands for all only where it is all there is
        return std::ranges::none_of(parts_, [](const auto& entry) {
            return entry.first != "node" && entry.second.energy_j.has_value();
        });
    }
    return component == "gpu" || !module_scope_;
}

std::vector<std::string> WindowSum::contained() const {
    std::vector<std::string> names;
    for (const auto& [name, part] : parts_) {
        if (part.energy_j && counts(name)) {
            names.push_back(name);
        }
    }
    return names;
}

std::vector<std::string> WindowSum::partly_measured() const {
    std::vector<std::string> names;
    for (const auto& [name, part] : parts_) {
        if (part.energy_j && part.lacking > 0 && counts(name)) {
            names.push_back(name);
        }
    }
    return names;
}

Value WindowSum::energy_j() const {
    Value total;
    for (const std::string& name : contained()) {
        const Part& part = parts_.at(name);
        if (part.lacking > 0) {
            return std::nullopt;
        }
        accumulate(total, part.energy_j);
    }
    return total;
}

Value WindowSum::energy_bound_j() const {
    if (!energy_j()) {
        return std::nullopt;
    }
    Value total;
    for (const std::string& name : contained()) {
        accumulate(total, parts_.at(name).bound_j);
    }
    return total;
}

std::optional<PowerProfile> WindowSum::profile() const {
    if (shape_.median.n == 0) {
        return std::nullopt;
    }
    return PowerProfile{.p5_w = *shape_.p5.mean(),
                        .median_w = *shape_.median.mean(),
                        .p95_w = *shape_.p95.mean(),
                        .sd_w = *shape_.sd.mean(),
                        .fluctuation_hz = *shape_.fluctuation.mean(),
                        .at_limit_pct = shape_.at_limit.mean(),
                        .idle_pct = shape_.idle.mean(),
                        .gpus = static_cast<std::size_t>(shape_.median.n)};
}

Value WindowSum::decimated_1hz_pct() const {
    return sampled_w_ > 0 ? Value(100 * (sampled_1hz_w_ / sampled_w_ - 1)) : std::nullopt;
}

std::string WindowSum::method() const {
    std::set<std::string> all;
    for (const std::string& name : contained()) {
        all.insert(parts_.at(name).methods.begin(), parts_.at(name).methods.end());
    }
    return fmt::format("{}", fmt::join(all, " + "));
}

}  // namespace joulemark::analysis

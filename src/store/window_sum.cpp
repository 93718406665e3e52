// SPDX-License-Identifier: Apache-2.0
#include "store/window_sum.h"

#include <algorithm>

#include "core/energy.h"
#include "sensors/metric.h"
#include "store/host_digest.h"

namespace joulemark::store {
namespace {

/// Of the energy, when samples are missing.
constexpr double tolerated_bound = 0.1;

}  // namespace

bool tells_energy(const nlohmann::json& source) {
    return std::ranges::any_of(json_array(source, "metrics"), [](const nlohmann::json& name) {
        return sensors::tells_energy(name.get_ref<const std::string&>());
    });
}

HostInventory::HostInventory(const nlohmann::json& run_json) {
    for (const auto& device : json_array(run_json, "devices")) {
        if (json_text(device, "component") == "gpu") {
            gpus.insert(json_text(device, "device"));
        }
    }
    for (const auto& source : json_array(run_json, "sources")) {
        if (tells_energy(source)) {
            energy_devices.insert(json_text(source, "device"));
            module_scope = module_scope || json_text(source, "scope") == "gpu module";
        }
    }
}

void WindowSum::SideBySide::add(const SideBySide& other) {
    accumulate(counter_j, other.counter_j);
    accumulate(integrated_j, other.integrated_j);
    accumulate(protocol_j, other.protocol_j);
}

void WindowSum::add(const RegionRecord& window, const HostInventory& inventory) {
    module_scope_ = module_scope_ || inventory.module_scope;
    std::size_t gpus = 0;
    Part* part = nullptr;  // of the device before, mostly of this one too
    const std::string* component = nullptr;
    const double duration_s = window.duration_s();
    for (const DeviceMetrics& device : window.devices) {
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
            part->gaps = part->gaps || 100 * device.covered_s < wanted_coverage_pct * duration_s;
        } else if (gpu || inventory.energy_devices.contains(device.device)) {
            ++part->lacking;
        }
        const SideBySide found{device.energy_counter_j, device.energy_integrated_j, device.energy_protocol_j};
        part->any.add(found);
        if (found.counter_j && found.integrated_j) {
            part->both.add(found);
        }
        if (gpu) {
            ++gpus;
            covered_.add(ratio(100 * device.covered_s, duration_s));
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
        parts_["gpu"].lacking += inventory.gpus.size() - gpus;
    }
    gpus_ += std::max(gpus, inventory.gpus.size());
}

void WindowSum::add(const WindowSum& other) {
    for (const auto& [name, theirs] : other.parts_) {
        Part& part = parts_[name];
        accumulate(part.energy_j, theirs.energy_j);
        accumulate(part.bound_j, theirs.bound_j);
        part.lacking += theirs.lacking;
        part.gaps = part.gaps || theirs.gaps;
        part.methods.insert(theirs.methods.begin(), theirs.methods.end());
        part.both.add(theirs.both);
        part.any.add(theirs.any);
    }
    for (const auto member :
         {&WindowSum::covered_, &WindowSum::memory_, &WindowSum::memory_busy_, &WindowSum::busy_,
          &WindowSum::sm_, &WindowSum::throttled_, &WindowSum::clock_}) {
        (this->*member).add(other.*member);
    }
    std::apply([&](auto... member) { ((shape_.*member).add(other.shape_.*member), ...); }, shape_members);
    sampled_w_ += other.sampled_w_;
    sampled_1hz_w_ += other.sampled_1hz_w_;
    max_gpu_power_ = std::max(max_gpu_power_, other.max_gpu_power_);
    gpus_ += other.gpus_;
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

bool WindowSum::counts(const std::string& component) const {
    const bool alone = std::ranges::none_of(
        parts_, [&](const auto& part) { return part.first != component && part.second.energy_j; });
    return counts_in_total(component, module_scope_, alone);
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

Value WindowSum::measured(Value Part::*value) const {
    Value sum;
    for (const std::string& name : contained()) {
        accumulate(sum, parts_.at(name).*value);
    }
    return sum;
}

bool WindowSum::uncertain() const {
    const Value energy = energy_j(), bound = energy_bound_j();
    return energy && bound && *bound > tolerated_bound * *energy &&
           std::ranges::any_of(contained(), [&](const std::string& name) { return parts_.at(name).gaps; });
}

WindowSum::SideBySide WindowSum::side_by_side(std::string_view component) const {
    SideBySide both, any;
    for (const auto& [name, part] : parts_) {
        if (component.empty() ? name != "node" : name == component) {
            both.add(part.both);
            any.add(part.any);
        }
    }
    return both.counter_j ? both : any;
}

std::set<std::string> WindowSum::methods() const {
    std::set<std::string> all;
    for (const std::string& name : contained()) {
        all.insert(parts_.at(name).methods.begin(), parts_.at(name).methods.end());
    }
    return all;
}

std::size_t WindowSum::gpus_without_energy() const {
    const auto gpus = parts_.find("gpu");
    return gpus == parts_.end() ? 0 : gpus->second.lacking;
}

std::optional<MeanProfile> WindowSum::profile() const {
    if (!shape_.median.value()) {
        return std::nullopt;
    }
    return MeanProfile{.p5_w = *shape_.p5.value(),
                       .median_w = *shape_.median.value(),
                       .p95_w = *shape_.p95.value(),
                       .sd_w = *shape_.sd.value(),
                       .fluctuation_hz = *shape_.fluctuation.value(),
                       .at_limit_pct = shape_.at_limit.value(),
                       .idle_pct = shape_.idle.value(),
                       .gpus = static_cast<std::size_t>(shape_.median.weight)};
}

Value WindowSum::decimated_1hz_pct() const {
    return sampled_w_ > 0 ? Value(100 * (sampled_1hz_w_ / sampled_w_ - 1)) : std::nullopt;
}

}  // namespace joulemark::store

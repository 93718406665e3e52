// SPDX-License-Identifier: Apache-2.0
#include "analysis/provenance.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/json_access.h"
#include "store/host_digest.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

/// Sets of one component's provenance, gathered over hosts and devices.
struct Component {
    std::set<std::string> devices, methods, scopes, sources, origins, notes;
    Value resolution_s, requested_hz, achieved_hz, accuracy_pct, bound_j, coverage_pct;
    std::set<std::string> reasons;  ///< why nothing was measured
};

void keep_greatest(Value& kept, const json& from, const char* key) {
    if (const auto found = from.find(key); found != from.end() && found->is_number()) {
        kept = std::max(kept.value_or(found->get<double>()), found->get<double>());
    }
}

void keep_least(Value& kept, const Value& value) {
    if (value) {
        kept = std::min(kept.value_or(*value), *value);
    }
}

using Inventory = std::map<std::string, std::string>;  // device -> component

Inventory component_by_device(const json& run_json) {
    Inventory components;
    for (const auto& entry : child(run_json, "devices")) {
        components[text(entry, "device")] = text(entry, "component");
    }
    return components;
}

void add_source(std::map<std::string, Component>& components, const store::HostRecord& host,
                const Inventory& inventory, const json& source) {
    const auto device = inventory.find(text(source, "device"));
    if (!store::tells_energy(source) || device == inventory.end()) {
        return;
    }
    Component& known = components[device->second];
    const std::string name = text(source, "source");
    known.devices.insert(fmt::format("{} {}", host.host, device->first));
    known.sources.insert(name);
    known.methods.insert(text(source, "method"));
    known.scopes.insert(text(source, "scope"));
    known.origins.insert(text(source, "origin"));
    known.notes.insert(text(source, "accuracy_note"));
    keep_greatest(known.resolution_s, source, "native_period_s");
    keep_greatest(known.accuracy_pct, source, "accuracy_pct");
    if (const auto period = source.find("period_s");
        period != source.end() && period->is_number() && *period > 0) {
        keep_least(known.requested_hz, 1 / period->get<double>());
    }
    if (host.end_json) {
        keep_least(known.achieved_hz, store::achieved_hz(*host.end_json, source));
    }
}

json array(const std::set<std::string>& values) {
    json list = json::array();
    for (const std::string& value : values) {
        if (!value.empty()) {
            list.push_back(value);
        }
    }
    return list;
}

void put(json& object, const char* key, const Value& value) {
    if (value) {
        object[key] = *value;
    }
}

json component_json(const Component& component) {
    json entry{{"devices", component.devices.size()}, {"source_methods", array(component.methods)},
               {"scope", array(component.scopes)},    {"sources", array(component.sources)},
               {"origin", array(component.origins)},  {"accuracy_notes", array(component.notes)}};
    put(entry, "resolution_s", component.resolution_s);
    put(entry, "requested_hz", component.requested_hz);
    put(entry, "achieved_hz", component.achieved_hz);
    put(entry, "sensor_accuracy_pct", component.accuracy_pct);
    put(entry, "bound_j", component.bound_j);
    put(entry, "coverage_pct", component.coverage_pct);
    return entry;
}

/// What no sensor of the usual set has covered. The wall meter contains all of it but the network's other
/// end and cooling.
std::vector<std::string> not_measured(const std::vector<std::string>& contains) {
    std::vector<std::string> lacks;
    const auto has = [&](const char* name) { return std::ranges::find(contains, name) != contains.end(); };
    if (!has("node")) {
        for (const char* component : {"gpu", "cpu", "dram"}) {
            if (!has(component)) {
                lacks.push_back(component);
            }
        }
    }
    lacks.push_back("network");
    if (!has("node")) {
        lacks.push_back("psu");
    }
    lacks.push_back("cooling");
    return lacks;
}

std::string display(const std::string& component) {
    static const std::map<std::string, std::string> names{
        {"gpu", "GPU"}, {"cpu", "CPU"}, {"dram", "DRAM"}, {"psu", "PSU"}, {"node", "node wall"}};
    const auto found = names.find(component);
    return found == names.end() ? component : found->second;
}

std::string epoch_sources(const store::RunRecord& record) {
    std::set<std::string> sources;
    for (const auto& host : record.hosts) {
        for (const auto& region : host.regions) {
            if (region.name == "epoch") {
                sources.insert(region.source);
            }
        }
    }
    return fmt::format("{}", fmt::join(sources, " + "));
}

/// The energy that another tool's table gives, of the components that it names.
json imported_energy(const json& given) {
    const json& components = child(given, "components");
    std::vector<std::string> contains;
    if (components.is_array()) {
        contains = components.get<std::vector<std::string>>();
    }
    json energy{{"window", "as given"}, {"method", "imported"}, {"contains", contains}};
    const std::string source = "imported from " + text(given, "file");
    if (contains.empty()) {
        energy["text"] = source + "; its components are not known";
    } else {
        energy["lacks"] = not_measured(contains);
        energy["text"] = fmt::format("{}: {}", source, contents_text(contains, energy["lacks"]));
    }
    return energy;
}

}  // namespace

std::string contents_text(const std::vector<std::string>& contains, const std::vector<std::string>& lacks) {
    const auto names = [](const std::vector<std::string>& components) {
        std::vector<std::string> shown;
        std::ranges::transform(components, std::back_inserter(shown), display);
        return shown;
    };
    return fmt::format("{}; not measured: {}", fmt::join(names(contains), " + "),
                       fmt::join(names(lacks), ", "));
}

json run_provenance(const store::RunRecord& record, const RunMetrics& metrics,
                    const store::WindowSum& command) {
    std::map<std::string, Component> components;
    json unavailable = json::array();
    json meters = json::array();
    for (const store::HostRecord& host : record.hosts) {
        if (const json& meter = host.end_json ? child(*host.end_json, "meter") : json();
            meter.is_object() && !meter.empty()) {
            meters.push_back(meter);
            meters.back()["host"] = host.host;
        }
        const Inventory inventory = component_by_device(host.run_json);
        for (const auto& source : child(host.run_json, "sources")) {
            add_source(components, host, inventory, source);
        }
        for (const auto& missing : child(host.run_json, "unavailable")) {
            if (std::ranges::find(unavailable, missing) == unavailable.end()) {
                unavailable.push_back(missing);
            }
        }
        for (const auto& region : host.regions) {
            if (region.name == "joulemark.command") {
                for (const auto& device : region.devices) {
                    if (device.energy_bound_j) {
                        Value& bound = components[device.component].bound_j;
                        bound = bound.value_or(0) + *device.energy_bound_j;
                    }
                }
            }
        }
    }
    bool estimated = false;
    json by_component = json::object();
    for (auto& [name, component] : components) {
        for (const Coverage& coverage : metrics.coverage) {
            if (coverage.component == name) {
                keep_least(component.coverage_pct, coverage.covered_pct);
            }
        }
        estimated = estimated || component.methods.contains("estimated");
        by_component[name] = component_json(component);
    }

    const auto contains = command.contained();
    auto lacks = not_measured(contains);
    json energy{{"window", "joulemark.command"}, {"contains", contains}, {"lacks", lacks}};
    if (metrics.imported) {
        energy = imported_energy(child(record.hosts.front().run_json, "imported"));
    } else if (contains.empty()) {
        energy["text"] = "no energy sensor: `joulemark show DIR RUN` lists why (Not measured)";
    } else {
        energy["method"] = fmt::format("{}", fmt::join(command.methods(), " + "));
        energy["text"] = contents_text(contains, lacks);
        put(energy, "bound_j", command.energy_bound_j());
    }
    if (const auto partly = command.partly_measured(); !partly.empty()) {
        energy["partly_measured"] = partly;
    }
    json provenance{{"energy_j", energy},
            {"components", by_component},
            {"epoch_time_s",
             {{"marked_by", metrics.imported ? "imported" : epoch_sources(record)},
              {"epochs", metrics.epochs},
              {"epochs_after_warmup", metrics.epochs_timed}}},
            {"unavailable", unavailable},
            {"meter", meters},
            {"simulated", metrics.simulated},
            {"estimated", estimated},
            {"imported", metrics.imported}};
    if (metrics.imported) {  // null where the file is damaged
        if (const json& given = child(record.hosts.front().run_json, "imported"); given.is_object()) {
            provenance["given"] = given;
        }
    }
    return provenance;
}

}  // namespace joulemark::analysis

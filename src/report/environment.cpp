// SPDX-License-Identifier: Apache-2.0
#include "report/environment.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace joulemark::report {
namespace {

using nlohmann::json;

/// The value at `key`, where there is one of the kind that `fallback` is; else `fallback`.
json member(const json& object, const char* key, json fallback) {
    if (object.is_object()) {
        if (const auto found = object.find(key); found != object.end() && found->type() == fallback.type()) {
            return *found;
        }
    }
    return fallback;
}

/// What makes two hosts the same machine: all but what names the single part.
json identity(const json& run_json) {
    json devices = json::array();
    for (json device : member(run_json, "devices", json::array())) {
        for (const char* key : {"uuid", "pci_bus_id", "index"}) {
            device.erase(key);
        }
        devices.push_back(std::move(device));
    }
    return {{"simulated", member(run_json, "simulated", false)},
            {"hardware", member(run_json, "hardware", json::object())},
            {"software", member(run_json, "software", json::object())},
            {"devices", std::move(devices)},
            {"sources", member(run_json, "sources", json::array())},
            {"unavailable", member(run_json, "unavailable", json::array())}};
}

struct Machine {
    json description;
    std::set<std::string> hosts;
    std::map<std::string, std::pair<double, int>> achieved_hz;  ///< sum and number, by source, or source and device
};

void add_rates(Machine& machine, const store::HostRecord& host) {
    if (!host.end_json) {
        return;
    }
    const json rates = member(member(*host.end_json, "meter", json::object()), "achieved_hz", json::object());
    for (const auto& [source, rate] : rates.items()) {
        if (rate.is_number()) {
            auto& [sum, number] = machine.achieved_hz[source];
            sum += rate.get<double>();
            ++number;
        }
    }
}

json finished(Machine machine) {
    for (json& source : machine.description["sources"]) {
        const std::string name = source.value("source", std::string());
        auto rate = machine.achieved_hz.find(name + '.' + source.value("device", std::string()));
        if (rate == machine.achieved_hz.end()) {
            rate = machine.achieved_hz.find(name);
        }
        if (rate != machine.achieved_hz.end()) {
            source["achieved_hz"] = rate->second.first / rate->second.second;
        }
    }
    machine.description["hosts"] = machine.hosts;
    return std::move(machine.description);
}

}  // namespace

json environment(const std::vector<store::RunRecord>& runs) {
    std::map<std::string, Machine> machines;
    std::vector<std::string> order;
    for (const store::RunRecord& run : runs) {
        for (const store::HostRecord& host : run.hosts) {
            json description = identity(host.run_json);
            const std::string key = description.dump(-1, ' ', false, json::error_handler_t::replace);
            const auto [machine, fresh] = machines.try_emplace(key);
            if (fresh) {
                machine->second.description = std::move(description);
                order.push_back(key);
            }
            machine->second.hosts.insert(host.host);
            add_rates(machine->second, host);
        }
    }
    json list = json::array();
    for (const std::string& key : order) {
        list.push_back(finished(std::move(machines.at(key))));
    }
    return {{"machines", std::move(list)}};
}

}  // namespace joulemark::report

// SPDX-License-Identifier: Apache-2.0
#include "analysis/factors.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "analysis/json_access.h"

namespace joulemark::analysis {
namespace {

constexpr std::array<std::string_view, 7> not_configuration{"seed",  "train_seed", "repeat", "position",
                                                            "order", "run",        "name"};

const nlohmann::json& first_run_json(const store::RunRecord& record) {
    static const nlohmann::json none = nlohmann::json::object();
    return record.hosts.empty() ? none : record.hosts.front().run_json;
}

void complete_batches(nlohmann::json& factors) {
    const auto gpus = number(factors, "gpus");
    const auto local = number(factors, "local_batch");
    const auto global = number(factors, "global_batch");
    const double accumulation = number(factors, "accumulation").value_or(1);
    if (!gpus || *gpus <= 0) {
        return;
    }
    if (local && !global) {
        factors["global_batch"] = *local * *gpus * accumulation;
    } else if (global && !local) {
        factors["local_batch"] = *global / (*gpus * accumulation);
    }
}

/// Names of the GPUs, or of the CPU where there is none.
std::string hardware_name(const store::RunRecord& record) {
    std::set<std::string> names;
    for (const store::HostRecord& host : record.hosts) {
        for (const auto& device : child(host.run_json, "devices")) {
            if (text(device, "component") == "gpu") {
                names.insert(text(device, "name"));
            }
        }
    }
    if (names.empty() && first_run_json(record).contains("hardware")) {
        names.insert(text(first_run_json(record)["hardware"], "cpu_model"));
    }
    names.erase("");
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "" : " + ") + name;
    }
    return text;
}

/// What was run, for runs of no study: their own name for it, else the command.
std::string workload_name(const nlohmann::json& run_json) {
    if (const std::string name = text(run_json, "name"); !name.empty()) {
        return name;
    }
    std::string command;
    for (const auto& word : child(run_json, "command")) {
        command += (command.empty() ? "" : " ") + word.get<std::string>();
    }
    return command;
}

}  // namespace

bool stated(const store::RunRecord& record, std::string_view name) {
    const nlohmann::json& run_json = first_run_json(record);
    return run_json.contains("factors") && run_json["factors"].contains(std::string(name));
}

nlohmann::json configuration_factors(const store::RunRecord& record) {
    nlohmann::json factors = record.factors.is_object() ? record.factors : nlohmann::json::object();
    for (const std::string_view name : not_configuration) {
        factors.erase(std::string(name));
    }
    const nlohmann::json& run_json = first_run_json(record);
    std::size_t gpus = 0;
    for (const store::HostRecord& host : record.hosts) {
        for (const auto& device : child(host.run_json, "devices")) {
            gpus += text(device, "component") == "gpu" ? 1 : 0;
        }
    }
    if (gpus > 0) {
        factors.emplace("gpus", gpus);
    }
    if (const std::string hardware = hardware_name(record); !hardware.empty()) {
        factors.emplace("hardware", hardware);
    }
    if (!run_json.contains("imported")) {
        if (const std::string workload = workload_name(run_json); !workload.empty()) {
            factors.emplace("workload", workload);
        }
    }
    complete_batches(factors);
    return factors;
}

}  // namespace joulemark::analysis

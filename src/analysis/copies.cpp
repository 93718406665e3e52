// SPDX-License-Identifier: Apache-2.0
#include "analysis/copies.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "analysis/json_access.h"

namespace joulemark::analysis {

std::string origin_of(const store::HostRecord& host) {
    const nlohmann::json& start = child(host.run_json, "start_ns");
    const std::string run = text(host.run_json, "run");
    if (run.empty() || !start.is_number_integer()) {
        return "";
    }
    // Simulated clocks all start at the same instant: there only the whole record tells runs apart.
    return fmt::format(
        "{}\n{}\n{}\n{}\n{}", run, text(host.run_json, "host"), text(host.run_json, "boot_id"),
        start.get<std::int64_t>(),
        child(host.run_json, "simulated") == true ? std::hash<nlohmann::json>{}(host.run_json) : 0);
}

std::optional<store::RunRecord> without_copied_hosts(const store::RunRecord& record) {
    if (record.hosts.size() < 2) {
        return std::nullopt;
    }
    std::set<std::string> seen;
    const auto is_copy = [&](const store::HostRecord& host) {
        const std::string origin = origin_of(host);
        return !origin.empty() && !seen.insert(origin).second;
    };
    if (std::ranges::none_of(record.hosts, is_copy)) {
        return std::nullopt;
    }
    store::RunRecord single = record;
    // The folder that still has its host's name first.
    std::ranges::stable_partition(
        single.hosts, [](const store::HostRecord& host) { return text(host.run_json, "host") == host.host; });
    seen.clear();
    std::erase_if(single.hosts, is_copy);
    std::ranges::sort(single.hosts, {}, &store::HostRecord::host);
    std::erase_if(single.expected_hosts, [&](const std::string& name) {
        const auto has_name = [&](const store::HostRecord& host) { return host.host == name; };
        return std::ranges::any_of(record.hosts, has_name) && std::ranges::none_of(single.hosts, has_name);
    });
    return single;
}

void mark_copied_runs(std::vector<RunMetrics>& runs) {
    std::set<std::string> known;
    for (const bool originals : {true, false}) {
        for (RunMetrics& run : runs) {
            if (run.original != originals) {
                continue;
            }
            const bool copied = std::ranges::any_of(
                run.origins, [&](const std::string& origin) { return known.contains(origin); });
            if (copied) {
                run.status = "copy";
            }
            known.insert(run.origins.begin(), run.origins.end());
        }
    }
}

}  // namespace joulemark::analysis

// SPDX-License-Identifier: Apache-2.0
#include "store/copies.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "store/host_digest.h"

namespace joulemark::store {

std::string origin_of(const HostRecord& host) {
    const std::string run = json_text(host.run_json, "run");
    const auto start = host.run_json.find("start_ns");
    if (run.empty() || start == host.run_json.end() || !start->is_number_integer()) {
        return "";
    }
    // Simulated clocks all start at the same instant: there only the whole record tells runs apart.
    return fmt::format(
        "{}\n{}\n{}\n{}\n{}", run, json_text(host.run_json, "host"), json_text(host.run_json, "boot_id"),
        start->get<std::int64_t>(),
        json_flag(host.run_json, "simulated") ? std::hash<nlohmann::json>{}(host.run_json) : 0);
}

void drop_copied_hosts(RunRecord& record) {
    std::set<std::string> names, seen;
    for (const HostRecord& host : record.hosts) {
        names.insert(host.host);
    }
    // The folder that still has its host's name first.
    std::ranges::stable_partition(
        record.hosts, [](const HostRecord& host) { return json_text(host.run_json, "host") == host.host; });
    const auto copies = std::erase_if(record.hosts, [&](const HostRecord& host) {
        const std::string origin = origin_of(host);
        return !origin.empty() && !seen.insert(origin).second;
    });
    std::ranges::sort(record.hosts, {}, &HostRecord::host);
    if (copies == 0) {
        return;
    }
    record.hosts.front().warnings.push_back(
        {"copied_host", "a host's folder is there twice in this run: it counts once"});
    for (const HostRecord& host : record.hosts) {
        names.erase(host.host);
    }
    std::erase_if(record.expected_hosts, [&](const std::string& name) { return names.contains(name); });
}

}  // namespace joulemark::store

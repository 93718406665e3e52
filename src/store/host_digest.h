// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/model.h"

namespace joulemark::store {

/// All that the database keeps of one host's folder.
struct HostDigest {
    HostRecord record;  ///< `run_json` is an empty object where the file is missing
    nlohmann::json config = nlohmann::json::object();
    std::vector<Series> series;
};

/// Reads a host's folder in one pass over each file; memory does not grow with the number of samples. Run
/// and host are the names of the folders. Never throws for what is in the folder.
HostDigest digest_host(const std::filesystem::path& folder, const std::string& run, const std::string& host);

/// Typed access to JSON that others wrote: nothing where the key is missing or of another type.
std::optional<double> json_number(const nlohmann::json& object, const char* key);
std::string json_text(const nlohmann::json& object, const char* key);
bool json_flag(const nlohmann::json& object, const char* key);
/// An empty array where there is none.
const nlohmann::json& json_array(const nlohmann::json& object, const char* key);

/// The rate at which a source of run.json was read, from the host's end.json; by source and device, or by the
/// source alone where a file says no more.
std::optional<double> achieved_hz(const nlohmann::json& end_json, const nlohmann::json& source);

}  // namespace joulemark::store

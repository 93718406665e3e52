// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "store/database.h"
#include "store/host_digest.h"

namespace joulemark::store {

/// Writes digests as rows. Belongs inside a transaction.
class HostWriter {
  public:
    explicit HostWriter(Database& database);

    /// Replaces whatever is stored of this host.
    void write(const std::string& run, const HostDigest& digest, const std::string& fingerprint);
    void remove(const std::string& run, const std::string& host);
    /// The fingerprint stored for this host, "" when there is none.
    std::string fingerprint(const std::string& run, const std::string& host);
    /// Derives a run's row from its hosts, in the order of their names, so that it does not matter which
    /// came first; a run without hosts goes.
    void refresh_run(const std::string& run);

  private:
    std::int64_t run_id(const std::string& run);
    void write_identity(std::int64_t host_id, const HostDigest& digest);
    void write_regions(std::int64_t host_id, const HostRecord& record);
    void write_series(std::int64_t host_id, const HostDigest& digest);

    Database& database_;
    Statement insert_region_, insert_region_device_, insert_series_, insert_bin_;
};

}  // namespace joulemark::store

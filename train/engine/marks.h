// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/files.h"

namespace joulemark::train {

/// A quality metric with the direction that is better.
struct Quality {
    std::string name;
    double value = 0;
    std::string direction = "lower";
};

/// What belongs to a region and is known at its end: samples and tokens of this rank, which the meter adds up
/// over ranks. Loss and quality stay absent where there is none.
struct RegionCounts {
    std::int64_t samples = 0;
    std::int64_t updates = 0;
    std::int64_t tokens = 0;
    std::optional<double> loss;
    std::optional<Quality> quality;
};

/// Tells the meter what this rank does: one datagram per message to the socket in JOULEMARK_SOCKET
/// (docs/schema.md, "Marking protocol"). Without that variable, or when the meter is gone, nothing happens.
class Marks {
  public:
    explicit Marks(int rank);

    void config(const nlohmann::json& data) const;
    void note(const nlohmann::json& data) const;
    /// Edges carry the instant at which they are true, taken by the caller with now_ns().
    void begin(std::string_view region, std::int64_t index, std::int64_t time_ns) const;
    void end(std::string_view region, std::int64_t index, std::int64_t time_ns,
             const RegionCounts& counts) const;

    /// CLOCK_MONOTONIC.
    static std::int64_t now_ns();

  private:
    void send(nlohmann::json message) const;
    int rank_;
    files::Descriptor socket_;
};

}  // namespace joulemark::train

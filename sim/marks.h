// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/files.h"

namespace joulemark::sim {

/// Sends marks to the socket named in JOULEMARK_SOCKET (docs/schema.md, "Marking protocol"); does nothing
/// without.
class Marks {
  public:
    /// With `wait`, send() returns only when the receiver has taken the mark, so that the simulated clock
    /// stands still until then: the receiver that holds the clock before it takes marks samples at the very
    /// edge.
    explicit Marks(bool wait);
    void send(const nlohmann::json& mark);

  private:
    files::Descriptor socket_;
    bool wait_;
};

}  // namespace joulemark::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controls/journal.h"
#include "vendor/nvml.h"

namespace joulemark::controls {

struct Request {
    std::optional<double> power_cap_w;
    std::optional<double> sm_clock_mhz;
    bool empty() const { return !power_cap_w && !sm_clock_mhz; }
};

/// A GPU to set: only those the job may use.
struct Target {
    std::string device;  ///< "gpu0"
    std::string uuid;
};

/// GPU settings that hold as long as this object: journalled, set and read back by `apply`, put back by the
/// destructor, and by a guard process if this one is killed.
class Controls {
  public:
    /// Throws bad_input when a value is out of a GPU's range, environment_error when it cannot be set (no
    /// permission, no such GPU, another run holds the GPU); then nothing stays changed.
    static Controls apply(const Request& request, const std::vector<Target>& targets);

    Controls(Controls&&) noexcept;
    Controls& operator=(Controls&&) = delete;
    ~Controls();

    /// Puts everything back now. A sentence for each setting that is not as it was before; "" when all are.
    std::string restore();

    /// `controls` of run.json: {power_cap_w: {gpu0: {requested, enforced, previous}}}.
    nlohmann::json describe() const;

  private:
    class Guard;
    Controls();
    std::shared_ptr<nvml::Library> library_;
    std::vector<nvml::Device> gpus_;
    std::vector<files::Descriptor> locks_;
    Journal journal_;
    std::unique_ptr<Guard> guard_;
};

/// What `joulemark restore` found and did.
struct Restored {
    std::vector<Outcome> outcomes;
    std::vector<std::string> notes;  ///< journals left alone, and why
};

/// Undoes every journal of a process that is gone.
Restored restore_all();

}  // namespace joulemark::controls

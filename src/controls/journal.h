// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "controls/control.h"
#include "core/files.h"

namespace joulemark::controls {

/// One setting changed on one GPU.
struct Change {
    std::string device;  ///< "gpu0", for messages
    std::string uuid;    ///< identifies the GPU whatever the order of indices
    Kind kind = Kind::power_cap;
    double requested = 0;
    double enforced = 0;             ///< what was set; read back where NVML can tell
    std::optional<double> previous;  ///< absent: a clock that was not locked (NVML cannot tell)
};

/// What was changed, on disk before it is changed, so that any process can undo it: the guard after a kill -9,
/// `joulemark restore` after the guard was killed too. One file per metered run.
struct Journal {
    std::filesystem::path file;
    std::string boot_id;  ///< settings do not survive a reboot: a journal of another boot is void
    std::vector<Change> changes;

    void write() const;
    void remove() const;
    /// Nothing when the file is not a journal.
    static std::optional<Journal> read(const std::filesystem::path& file);
};

/// Node-local folder of journals and locks: $JOULEMARK_CONTROL_DIR, else /run/joulemark for root, else
/// /tmp/joulemark-<uid>. Created when missing.
std::filesystem::path control_directory();
std::string boot_id();

/// Kernel lock on one GPU's settings; ends with the last process that holds it, so none goes stale.
std::optional<files::Descriptor> lock_gpu(const std::string& uuid);

/// What became of one change.
struct Outcome {
    Change change;
    enum class State { restored, changed_by_others, failed } state;
    std::string text;  ///< a sentence for people
};

/// Undoes the changes, last first, each on its own: one failure stops no other. A value that is no longer the one
/// set is left alone.
std::vector<Outcome> undo(const std::vector<Change>& changes, const std::vector<nvml::Device>& gpus);

}  // namespace joulemark::controls

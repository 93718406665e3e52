// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "cli/command.h"

namespace joulemark::cli {

/// The commands, in the order a study goes: one function each, in the file of its name.
int doctor_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int sweep_command(const Arguments& arguments);
int analyze_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int show_command(const Arguments& arguments);
int import_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int restore_command(const Arguments& arguments);

inline constexpr std::array commands{
    Command{"doctor", "what can be measured and controlled here, and why not the rest", doctor_command},
    Command{"run", "meters any command", run_command},
    Command{"train", "runs joulemark-train: the built-in workloads", train_command},
    Command{"sweep", "makes the runs of a study file, and goes on where it stopped", sweep_command},
    Command{"analyze", "metrics, laws and warnings of all runs", analyze_command},
    Command{"report", "one self-contained HTML file", report_command},
    Command{"show", "runs, or one run, in the terminal", show_command},
    Command{"import", "logs and tables of other tools, made into runs", import_command},
    Command{"export", "time series, epochs and runs in open formats", export_command},
    Command{"restore", "puts back GPU settings that a killed run left changed", restore_command},
};

}  // namespace joulemark::cli

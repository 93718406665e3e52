// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"

namespace joulemark::train {

// Networks that learn one property of molecules: mean squared error of the normalised property, mean absolute
// error in its unit. All take the settings target (0 to 11, data/qm9.h) and validation (molecules held out of
// a folder).

/// Settings: hidden, filters, interactions, gaussians, cutoff.
std::unique_ptr<Workload> make_schnet(const Options& options, HyperParameters& settings,
                                      c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
/// Settings: hidden, blocks, bilinear, spherical, radial, cutoff.
std::unique_ptr<Workload> make_dimenet(const Options& options, HyperParameters& settings,
                                       c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
/// Settings: hidden, layers, towers, gaussians, cutoff. Batch norm is never synchronised: throws bad_input
/// when asked.
std::unique_ptr<Workload> make_pna(const Options& options, HyperParameters& settings,
                                   c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
/// Settings: dim, steps, set2set_steps, edge_hidden.
std::unique_ptr<Workload> make_nnconv(const Options& options, HyperParameters& settings,
                                      c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train

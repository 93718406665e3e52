// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"

namespace joulemark::train {

/// A model of the list: where it is from, how large it is, what it learns from, what it is trained with by
/// default.
struct Model {
    std::string name;
    std::string source;
    std::int64_t parameters = 0;  ///< with its defaults
    std::string data;
    Defaults defaults;
    std::vector<Use> uses = {};
    /// Makes data sets and module (in this order, since data decide the number of classes) on the CPU.
    /// `sync_group` is null unless batch norm is to be synchronised. Throws bad_input: data folder, unknown
    /// setting.
    std::unique_ptr<Workload> (*make)(const Options&, HyperParameters&,
                                      c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
};

/// Every model there is; a new one is a row here and a file in models/.
std::span<const Model> models();
/// The part of them that options are read by.
std::vector<KnownModel> known_models();
const Model& find_model(const std::string& name);

}  // namespace joulemark::train

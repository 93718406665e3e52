// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace joulemark::train {

/// NCCL among the ranks that share `store`, each on its current GPU. Throws environment_error in a build
/// without NCCL (no_nccl.cpp instead of nccl.cpp).
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int size);

}  // namespace joulemark::train

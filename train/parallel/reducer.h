// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/torch.h>

namespace joulemark::train {

/// c10d's reducer, whose constructor differs between PyTorch versions: this file is the only one that knows.
/// Parameters are gathered in buckets of `bucket_mib` (the first, which backward fills last, 1 MiB at most)
/// in the reverse of their order, each all-reduced as soon as backward has filled it. Every rank must compute
/// a gradient for every parameter in every step.
std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<torch::Tensor>& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            double bucket_mib);

/// Makes `reducer` add gradients up instead of averaging them: for the test that must notice.
void sum_instead_of_mean(c10d::Reducer& reducer, const c10::intrusive_ptr<c10d::ProcessGroup>& group);

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "parallel/nccl.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace joulemark::train {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int size) {
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size,
                                                       c10d::ProcessGroupNCCL::Options::create());
}

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "parallel/nccl.h"

namespace joulemark::train {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&, int, int size) {
    throw environment_error(
        "this joulemark-train is built without NCCL, so {} ranks cannot train on GPUs: build with the preset "
        "'gpu' and a CUDA wheel of PyTorch",
        size);
}

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <set>

#include "engine/safetensors.h"

namespace joulemark::train {

void load_weights(Workload& workload, const std::filesystem::path& path) {
    std::map<std::string, torch::Tensor> given;
    for (auto& [name, tensor] : read_safetensors(path).tensors) {
        if (const std::string own = workload.weight_name(name); !own.empty()) {
            given[own] = tensor;
        }
    }
    std::set<std::string> buffers;
    for (const auto& entry : workload.module().named_buffers()) {
        buffers.insert(entry.key());
    }
    NamedTensors wanted = state_of(workload.module());
    std::erase_if(wanted, [&](const auto& entry) {
        return buffers.contains(entry.first) && !given.contains(entry.first);
    });
    copy_state(wanted, given, path.string());
}

}  // namespace joulemark::train

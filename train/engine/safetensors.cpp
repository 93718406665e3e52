// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::train {
namespace {

const char* type_name(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return "F32";
        case at::kDouble:
            return "F64";
        case at::kBFloat16:
            return "BF16";
        case at::kHalf:
            return "F16";
        case at::kLong:
            return "I64";
        case at::kInt:
            return "I32";
        case at::kByte:
            return "U8";
        default:
            throw environment_error("safetensors cannot hold {} tensors here", c10::toString(type));
    }
}

}  // namespace

NamedTensors state_of(const torch::nn::Module& module) {
    NamedTensors state;
    for (const auto& entry : module.named_parameters()) {
        state.emplace_back(entry.key(), entry.value());
    }
    for (const auto& entry : module.named_buffers()) {
        state.emplace_back(entry.key(), entry.value());
    }
    return state;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
        const torch::Tensor dense = tensor.detach().to(torch::kCPU).contiguous();
        const std::size_t begin = data.size();
        data.append(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
        header[name] = {{"dtype", type_name(dense.scalar_type())},
                        {"shape", dense.sizes().vec()},
                        {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
    const std::uint64_t length = text.size();
    std::string content(sizeof length, '\0');
    std::memcpy(content.data(), &length, sizeof length);
    files::write_atomically(path, content + text + data);
}

}  // namespace joulemark::train

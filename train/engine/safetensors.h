// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace joulemark::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// Parameters and buffers of a module under their state-dict names, in the order of registration.
NamedTensors state_of(const torch::nn::Module& module);

/// Writes the safetensors format: 8 bytes of header length (little endian), a JSON header, the tensors'
/// bytes. Throws environment_error naming the path when it cannot be written.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace joulemark::train

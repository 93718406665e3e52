// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace joulemark::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
using Metadata = std::map<std::string, std::string>;

/// Parameters and buffers of a module under their state-dict names, in the order of registration.
NamedTensors state_of(const torch::nn::Module& module);
/// The parameters that are trained: a module may hold others only for its published state's sake.
NamedTensors trained_parameters(const torch::nn::Module& module);

/// Writes the safetensors format: 8 bytes of header length (little endian), a JSON header with `metadata`
/// under `__metadata__`, the tensors' bytes; to a temporary name, then renamed. Throws environment_error
/// naming the path when it cannot be written.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});

struct SafeTensors {
    std::map<std::string, torch::Tensor> tensors;  ///< on the CPU
    Metadata metadata;
};

/// Throws bad_input naming the file: not there, not of this format, cut, or with a type that is not known
/// here.
SafeTensors read_safetensors(const std::filesystem::path& path);

/// Copies `given` into `wanted`, converting types. Throws bad_input that begins with `source` and names the
/// tensors that are missing, left over, or of another shape (the first few of each) and changes nothing then.
void copy_state(const NamedTensors& wanted, const std::map<std::string, torch::Tensor>& given,
                const std::string& source);

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "engine/hyper_parameters.h"

namespace joulemark::train::parity {

using Inputs = std::map<std::string, torch::Tensor>;

/// A model as a fixture sees it: no data set, no autocast.
class ParityModel {
  public:
    virtual ~ParityModel() = default;
    virtual torch::nn::Module& module() = 0;
    /// The scalar that the reference differentiated, from the fixture's inputs by name; floating ones are in
    /// the precision that is checked.
    virtual torch::Tensor loss(const Inputs& inputs) = 0;
};

// One function per model, in the file of its domain; main.cpp's table names them.
std::unique_ptr<ParityModel> make_bert(HyperParameters& settings);
std::unique_ptr<ParityModel> make_distilbert(HyperParameters& settings);
std::unique_ptr<ParityModel> make_resnet50(HyperParameters& settings);
std::unique_ptr<ParityModel> make_vgg16(HyperParameters& settings);
std::unique_ptr<ParityModel> make_inception_v3(HyperParameters& settings);
std::unique_ptr<ParityModel> make_unet(HyperParameters& settings);
std::unique_ptr<ParityModel> make_schnet(HyperParameters& settings);
std::unique_ptr<ParityModel> make_dimenet(HyperParameters& settings);
std::unique_ptr<ParityModel> make_pna(HyperParameters& settings);
std::unique_ptr<ParityModel> make_nnconv(HyperParameters& settings);
std::unique_ptr<ParityModel> make_fourcastnet(HyperParameters& settings);

}  // namespace joulemark::train::parity

// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gtest/gtest.h>

#include "engine/flops.h"
#include "engine/registry.h"
#include "engine/safetensors.h"
#include "models/image_workloads.h"
#include "models/nowcasting.h"

namespace joulemark::train {
namespace {

using Shapes = std::map<std::string, std::string>;

Shapes shapes_of(const torch::nn::Module& module) {
    Shapes shapes;
    for (const auto& [name, tensor] : state_of(module)) {
        std::string text;
        for (const std::int64_t size : tensor.sizes()) {
            text += (text.empty() ? "" : "x") + std::to_string(size);
        }
        shapes[name] = text.empty() ? "scalar" : text;
    }
    return shapes;
}

/// Lines "name shape" of torchvision's state dict.
Shapes torchvision_shapes(const std::string& model) {
    std::ifstream file(std::string(JOULEMARK_FIXTURES) + "/train/" + model + "_state.txt");
    Shapes shapes;
    std::string name;
    std::string shape;
    while (file >> name >> shape) {
        shapes[name] = shape;
    }
    return shapes;
}

std::int64_t parameters_of(const torch::nn::Module& module) {
    std::int64_t parameters = 0;
    for (const auto& parameter : module.parameters()) {
        parameters += parameter.numel();
    }
    return parameters;
}

// The operations below are those that PyTorch's FlopCounterMode counts for the reference implementations.

TEST(Vgg16, HasTorchvisionsNamesParametersAndOperations) {
    Vgg network((VggConfig()));
    EXPECT_EQ(shapes_of(*network), torchvision_shapes("vgg16"));
    EXPECT_EQ(parameters_of(*network), 138'357'544);
    EXPECT_EQ(find_model("vgg16").parameters, 138'357'544);
    const auto forward = [&] { network(torch::empty({1, 3, 224, 224}, torch::kMeta)); };
    EXPECT_DOUBLE_EQ(forward_flops(*network, forward), 30'940'528'640.0);
}

TEST(InceptionV3, HasTorchvisionsNamesParametersAndOperations) {
    Inception network((InceptionConfig()));
    EXPECT_EQ(shapes_of(*network), torchvision_shapes("inception_v3"));
    EXPECT_EQ(parameters_of(*network), 27'161'264);
    EXPECT_EQ(find_model("inception_v3").parameters, 27'161'264);
    const auto forward = [&] { network->forward(torch::empty({1, 3, 299, 299}, torch::kMeta), true); };
    EXPECT_DOUBLE_EQ(forward_flops(*network, forward), 11'437'798'592.0);
}

TEST(InceptionV3, UsesItsHeadInTrainingOnly) {
    const torch::NoGradGuard no_grad;
    Inception network(InceptionConfig{.narrow = 32, .classes = 3});
    const torch::Tensor images = torch::randn({2, 3, 299, 299});
    EXPECT_EQ(network->forward(images).auxiliary.sizes(), (std::vector<std::int64_t>{2, 3}));
    network->eval();
    EXPECT_FALSE(network->forward(images).auxiliary.defined());
    Inception headless(InceptionConfig{.narrow = 32, .aux_logits = false, .classes = 3});
    EXPECT_FALSE(headless->forward(torch::randn({2, 3, 75, 75})).auxiliary.defined());
}

TEST(UNet, HasTheReferencesParametersAndOperations) {
    UNet network((UNetConfig()));
    EXPECT_EQ(parameters_of(*network), find_model("unet").parameters);
    const auto forward = [&] { network(torch::empty({1, 13, 384, 384}, torch::kMeta)); };
    EXPECT_DOUBLE_EQ(forward_flops(*network, forward), 55'273'586'688.0);
}

TEST(UNet, LearnsTheDriftOfStorms) {
    Options options;
    options.model = "unet";
    options.image_size = 32;
    options.samples = 64;
    HyperParameters settings({"width=8", "depth=2", "inputs=4", "outputs=2"});
    torch::manual_seed(1);
    const auto workload = make_unet(options, settings, nullptr);
    const Dataset& data = workload->training_data();
    std::vector<Sample> samples;
    for (std::uint32_t i = 0; i < data.size(); ++i) {
        samples.push_back(*data.load(i, 0));
    }
    const Batch all = data.collate(samples, false);
    // The best constant forecast is the mean; its error the variance, in the scaling of the loss.
    const torch::Tensor wanted = all.inputs[0].slice(3, 4).to(torch::kFloat32) / 47.54;
    const double constant = wanted.var(/*unbiased=*/false).item<double>();
    torch::optim::Adam adam(workload->module().parameters(), torch::optim::AdamOptions(3e-3));
    double loss = 0;
    for (int step = 0; step < 40; ++step) {
        adam.zero_grad();
        const Outcome outcome = workload->forward(all);
        outcome.loss.backward();
        adam.step();
        loss = outcome.loss.item<double>();
    }
    EXPECT_LT(loss, constant / 2);
}

TEST(ForwardFlops, LeavesTheModuleAsItWas) {
    ResNet network(ResNetConfig{.blocks = {1, 1, 1, 1}, .width = 8, .classes = 5});
    NamedTensors before;
    for (const auto& [name, tensor] : state_of(*network)) {
        before.emplace_back(name, tensor.detach().clone());
    }
    EXPECT_GT(forward_flops(*network, [&] { network(torch::empty({1, 3, 32, 32}, torch::kMeta)); }), 0);
    EXPECT_TRUE(network->is_training());
    const NamedTensors after = state_of(*network);
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
        EXPECT_TRUE(after[i].second.equal(before[i].second)) << after[i].first;
    }
    network(torch::randn({2, 3, 32, 32})).sum().backward();
    EXPECT_TRUE(network->parameters().front().grad().defined());
}

TEST(ForwardFlops, OfResNet50AreTheReferences) {
    ResNet network((ResNetConfig()));
    const auto forward = [&] { network(torch::empty({1, 3, 224, 224}, torch::kMeta)); };
    EXPECT_DOUBLE_EQ(forward_flops(*network, forward), 8'178'368'512.0);
}

}  // namespace
}  // namespace joulemark::train

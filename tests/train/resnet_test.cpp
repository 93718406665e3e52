// SPDX-License-Identifier: Apache-2.0
#include "models/resnet.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/registry.h"
#include "engine/safetensors.h"

namespace joulemark::train {
namespace {

std::string shape_text(const torch::Tensor& tensor) {
    std::string text;
    for (const std::int64_t size : tensor.sizes()) {
        text += (text.empty() ? "" : "x") + std::to_string(size);
    }
    return text.empty() ? "scalar" : text;
}

TEST(ResNet, HasTorchvisionsNamesAndShapes) {
    // Lines "name shape" in state-dict order, from torchvision's resnet50.
    std::ifstream file(std::string(JOULEMARK_FIXTURES) + "/train/resnet50_state.txt");
    std::map<std::string, std::string> expected;
    std::string name;
    std::string shape;
    while (file >> name >> shape) {
        expected[name] = shape;
    }
    ASSERT_EQ(expected.size(), 320U);
    const ResNet network((ResNetConfig()));
    std::map<std::string, std::string> actual;
    for (const auto& [key, tensor] : state_of(*network)) {
        actual[key] = shape_text(tensor);
    }
    EXPECT_EQ(actual, expected);
}

TEST(ResNet, HasTheRegistrysNumberOfParameters) {
    const ResNet network((ResNetConfig()));
    std::int64_t parameters = 0;
    for (const auto& parameter : network->parameters()) {
        parameters += parameter.numel();
    }
    EXPECT_EQ(parameters, 25'557'032);
    EXPECT_EQ(parameters, find_model("resnet50").parameters);
    EXPECT_EQ(network->parameters().size(), 161U);
}

TEST(ResNet, StartsFromTorchvisionsDistributions) {
    torch::manual_seed(0);
    const ResNet network((ResNetConfig()));
    const auto state = network->named_parameters();
    // Kaiming normal over fan-out: variance 2 / (out channels x kernel area).
    EXPECT_NEAR(state["conv1.weight"].std().item<double>(), std::sqrt(2.0 / (64 * 49)), 5e-4);
    EXPECT_NEAR(state["layer3.2.conv2.weight"].std().item<double>(), std::sqrt(2.0 / (256 * 9)), 1e-4);
    EXPECT_TRUE(state["layer1.0.bn3.weight"].eq(1).all().item<bool>());
    EXPECT_LE(state["fc.weight"].abs().max().item<double>(), 1 / std::sqrt(2048.0));
    const ResNet zero(ResNetConfig{.zero_init_residual = true});
    EXPECT_TRUE(zero->named_parameters()["layer1.0.bn3.weight"].eq(0).all().item<bool>());
    EXPECT_TRUE(zero->named_parameters()["layer1.0.bn2.weight"].eq(1).all().item<bool>());
}

TEST(ResNet, GivesLogitsForAnyImageSizeAndLearnsOneBatchByHeart) {
    torch::manual_seed(0);
    ResNet network(ResNetConfig{.blocks = {1, 1, 1, 1}, .width = 8, .classes = 5});
    const torch::Tensor images = torch::randn({8, 3, 40, 56});
    EXPECT_EQ(network(images).sizes(), (std::vector<std::int64_t>{8, 5}));
    const torch::Tensor labels = torch::arange(8) % 5;
    torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    double loss = 0;
    for (int step = 0; step < 30; ++step) {
        optimizer.zero_grad();
        const torch::Tensor value = torch::cross_entropy_loss(network(images), labels);
        value.backward();
        optimizer.step();
        loss = value.item<double>();
    }
    EXPECT_LT(loss, 0.3);  // ln 5 = 1.6 to begin with
}

}  // namespace
}  // namespace joulemark::train

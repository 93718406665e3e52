// SPDX-License-Identifier: Apache-2.0
#include "engine/optimizer.h"

#include <limits>

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(Sgd, AgreesWithTorchsOwn) {
    torch::manual_seed(1);
    torch::Tensor ours = torch::randn({5, 3}, torch::requires_grad());
    torch::Tensor theirs = ours.detach().clone().requires_grad_();
    Sgd sgd({ours}, 0.9, 1e-2);
    torch::optim::SGD reference({theirs}, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-2));
    for (int step = 0; step < 5; ++step) {
        const torch::Tensor target = torch::randn({5, 3});
        (ours - target).square().sum().backward();
        sgd.step(0.1, nullptr);
        sgd.clear_gradients();
        reference.zero_grad();
        (theirs - target).square().sum().backward();
        reference.step();
        ASSERT_TRUE(torch::allclose(ours, theirs, 1e-6, 1e-7)) << step;
    }
}

TEST(LossScaler, LeavesOutAnOverflowingUpdateAndHalvesTheScale) {
    torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
    const torch::Tensor before = parameter.detach().clone();
    Sgd sgd({parameter}, 0, 0);
    LossScaler scaler(torch::kCPU);
    const double scale = scaler.scaled(torch::ones({})).item<double>();

    parameter.mutable_grad() = torch::tensor({1.0F, std::numeric_limits<float>::infinity()});
    sgd.step(1.0, &scaler);
    EXPECT_TRUE(parameter.equal(before));
    EXPECT_EQ(scaler.skipped().item<double>(), 1);
    EXPECT_EQ(scaler.scaled(torch::ones({})).item<double>(), scale / 2);

    sgd.clear_gradients();
    scaler.scaled(parameter.sum()).sum().backward();
    sgd.step(0.25, &scaler);
    EXPECT_TRUE(torch::allclose(parameter, before - 0.25));
    EXPECT_EQ(scaler.skipped().item<double>(), 1);
}

}  // namespace
}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "engine/optimizer.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

using MakeReference = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

/// Twenty updates of ours and of torch.optim's, from the same weights and gradients.
void agree(OptimizerSettings settings, const MakeReference& make_reference) {
    torch::manual_seed(1);
    const auto like = torch::TensorOptions(torch::kFloat64).requires_grad(true);
    const std::vector<torch::Tensor> ours = {torch::randn({5, 3}, like), torch::randn({7}, like)};
    std::vector<torch::Tensor> theirs;
    for (const torch::Tensor& tensor : ours) {
        theirs.push_back(tensor.detach().clone().requires_grad_());
    }
    const auto optimizer = make_optimizer(settings, ours);
    const auto reference = make_reference(theirs);
    for (int step = 0; step < 20; ++step) {
        const torch::Tensor target = torch::randn({5, 3}, torch::kFloat64);
        const auto loss = [&](const std::vector<torch::Tensor>& x) {
            return (x[0] - target).square().sum() + x[1].pow(4).sum();
        };
        loss(ours).backward();
        optimizer->step(0.01, nullptr);
        optimizer->clear_gradients();
        reference->zero_grad();
        loss(theirs).backward();
        if (settings.clip_norm) {
            torch::nn::utils::clip_grad_norm_(theirs, *settings.clip_norm);
        }
        reference->step();
        for (std::size_t i = 0; i < ours.size(); ++i) {
            ASSERT_TRUE(torch::allclose(ours[i], theirs[i], 1e-10, 1e-12)) << step << ' ' << i;
        }
    }
}

template <typename Reference, typename Options>
MakeReference reference_of(const Options& options) {
    return [options](std::vector<torch::Tensor> parameters) {
        return std::make_unique<Reference>(std::move(parameters), options);
    };
}

const auto sgd = reference_of<torch::optim::SGD>(torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(1e-2));

TEST(Optimizer, SgdAgreesWithTorchs) {
    agree({.kind = OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 1e-2}, sgd);
    agree({.kind = OptimizerKind::sgd}, reference_of<torch::optim::SGD>(torch::optim::SGDOptions(0.01)));
}

TEST(Optimizer, AdamAgreesWithTorchs) {
    agree({.kind = OptimizerKind::adam, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 1e-2},
          reference_of<torch::optim::Adam>(
              torch::optim::AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(1e-2)));
}

TEST(Optimizer, AdamWAgreesWithTorchs) {
    agree({.kind = OptimizerKind::adamw, .beta2 = 0.98, .weight_decay = 0.1},
          reference_of<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01).betas({0.9, 0.98}).weight_decay(0.1)));
}

TEST(Optimizer, ClipsTheCommonNormAsTorchDoes) {
    // 1 is below and 100 above the gradients' norm.
    for (const double limit : {1.0, 100.0}) {
        agree({.kind = OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 1e-2, .clip_norm = limit}, sgd);
    }
}

TEST(LossScaler, LeavesOutAnOverflowingUpdateAndHalvesTheScale) {
    for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
        torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
        const torch::Tensor before = parameter.detach().clone();
        const auto optimizer = make_optimizer({.kind = kind, .clip_norm = 10}, {parameter});
        LossScaler scaler(torch::kCPU);
        const double scale = scaler.scaled(torch::ones({})).item<double>();

        parameter.mutable_grad() = torch::tensor({1.0F, std::numeric_limits<float>::infinity()});
        optimizer->step(1.0, &scaler);
        EXPECT_TRUE(parameter.equal(before));
        EXPECT_EQ(scaler.skipped().item<double>(), 1);
        EXPECT_EQ(scaler.scaled(torch::ones({})).item<double>(), scale / 2);

        // The first update that counts moves SGD by lr x gradient, and Adam by lr.
        optimizer->clear_gradients();
        scaler.scaled(parameter.sum()).sum().backward();
        optimizer->step(0.25, &scaler);
        EXPECT_TRUE(torch::allclose(parameter, before - 0.25)) << parameter;
        EXPECT_EQ(scaler.skipped().item<double>(), 1);
    }
}

}  // namespace
}  // namespace joulemark::train

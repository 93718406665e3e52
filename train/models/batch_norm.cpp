// SPDX-License-Identifier: Apache-2.0
#include "models/batch_norm.h"

#include <utility>
#include <vector>

namespace joulemark::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

constexpr double momentum = 0.1;

void all_reduce_sum(const Group& group, const Tensor& tensor) {
    std::vector<Tensor> tensors = {tensor};
    group->allreduce(tensors)->wait();
}

/// [C] as [1, C, 1, 1].
Tensor per_channel(const Tensor& values) {
    return values.view({1, -1, 1, 1});
}

/// Sums over N, H, W: [N, C, H, W] to [C].
Tensor channel_sum(const Tensor& x) {
    return x.sum({0, 2, 3});
}

/// With n samples and pixels of all ranks, m their mean, s = 1 / sqrt(variance + epsilon), x^ = (x - m) s:
///   y  = w x^ + b
///   dx = w s (dy - sum(dy)/n - x^ sum(dy x^)/n),   the sums over all ranks
///   dw = sum(dy x^),  db = sum(dy),                over this rank: the reducer adds them up as any gradient
struct SyncBatchNorm : public torch::autograd::Function<SyncBatchNorm> {
    /// Also returns the mean, the biased variance, and n, for the running statistics.
    static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                                 const Tensor& bias, const Group& group, double epsilon) {
        // Each rank's variance is computed about its own mean, and the sums are joined in fp64: the
        // difference of two large sums would cost fp32 the digits that the comparison with one rank needs.
        const Tensor wide = x.to(torch::kFloat32);
        const double local_count = static_cast<double>(x.numel() / x.size(1));
        const auto [local_var, local_mean] = at::var_mean(wide, at::IntArrayRef{0, 2, 3}, /*unbiased=*/false);
        const Tensor m = local_mean.to(torch::kFloat64);
        const Tensor squares = local_var.to(torch::kFloat64) + m * m;
        const Tensor count = torch::full({1}, local_count, m.options());
        const Tensor sums = torch::cat({m * local_count, squares * local_count, count});
        all_reduce_sum(group, sums);
        const auto channels = x.size(1);
        const Tensor n = sums[2 * channels];
        const Tensor mean = sums.slice(0, 0, channels) / n;
        const Tensor var = (sums.slice(0, channels, 2 * channels) / n - mean * mean).clamp_min(0);
        const Tensor inverse_sd = (var + epsilon).rsqrt().to(torch::kFloat32);
        const Tensor mean32 = mean.to(torch::kFloat32);

        const Tensor y = (wide - per_channel(mean32)) * per_channel(inverse_sd * weight) + per_channel(bias);
        context->save_for_backward({x, weight, mean32, inverse_sd, n});
        context->saved_data["group"] = group;
        const variable_list statistics = {mean32, var.to(torch::kFloat32), n.to(torch::kFloat32)};
        context->mark_non_differentiable(statistics);
        return {y.to(x.scalar_type()), statistics[0], statistics[1], statistics[2]};
    }

    static variable_list backward(AutogradContext* context, variable_list gradients) {
        const auto saved = context->get_saved_variables();
        const Tensor& x = saved[0];
        const Tensor& weight = saved[1];
        const Tensor& mean = saved[2];
        const Tensor& inverse_sd = saved[3];
        const Tensor& n = saved[4];
        const Tensor dy = gradients[0].to(torch::kFloat32);
        const Tensor normalised = (x.to(torch::kFloat32) - per_channel(mean)) * per_channel(inverse_sd);
        const Tensor db = channel_sum(dy);
        const Tensor dw = channel_sum(dy * normalised);
        const Tensor sums = torch::stack({db, dw}).to(torch::kFloat64);
        all_reduce_sum(context->saved_data["group"].toCustomClass<c10d::ProcessGroup>(), sums);
        const Tensor means = (sums / n).to(torch::kFloat32);
        const Tensor dx = (dy - per_channel(means[0]) - normalised * per_channel(means[1])) *
                          per_channel(weight * inverse_sd);
        return {dx.to(x.scalar_type()), dw, db, Tensor(), Tensor()};
    }
};

}  // namespace

BatchNorm2dImpl::BatchNorm2dImpl(std::int64_t channels, Group group, double epsilon)
    : group_(std::move(group)), epsilon_(epsilon) {
    weight = register_parameter("weight", torch::ones({channels}));
    bias = register_parameter("bias", torch::zeros({channels}));
    running_mean = register_buffer("running_mean", torch::zeros({channels}));
    running_var = register_buffer("running_var", torch::ones({channels}));
    num_batches_tracked = register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
}

Tensor BatchNorm2dImpl::forward(const Tensor& x) {
    if (is_training()) {
        num_batches_tracked.add_(1);
    }
    if (!is_training() || !group_) {
        return torch::batch_norm(x, weight, bias, running_mean, running_var, is_training(), momentum,
                                 epsilon_,
                                 /*cudnn=*/true);
    }
    const auto outputs = SyncBatchNorm::apply(x, weight, bias, group_, epsilon_);
    const torch::NoGradGuard no_grad;
    const Tensor& n = outputs[3];
    running_mean.lerp_(outputs[1], momentum);
    running_var.lerp_(outputs[2] * (n / (n - 1)), momentum);
    return outputs[0];
}

}  // namespace joulemark::train

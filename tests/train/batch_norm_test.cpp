// SPDX-License-Identifier: Apache-2.0
#include "models/batch_norm.h"

#include <barrier>
#include <thread>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace joulemark::train {
namespace {

/// Two ranks as two threads of the test: an all-reduce adds up what both brought.
struct Meeting {
    std::barrier<> barrier{2};
    std::array<std::vector<at::Tensor>, 2> brought;
};

class ThreadBackend final : public c10d::Backend {
  public:
    ThreadBackend(int rank, Meeting& meeting) : Backend(rank, 2), meeting_(meeting) {}
    const std::string getBackendName() const override { return "threads"; }
    c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                             const c10d::AllreduceOptions&) override {
        auto& mine = meeting_.brought[static_cast<std::size_t>(rank_)];
        mine.clear();
        for (const at::Tensor& tensor : tensors) {
            mine.push_back(tensor.clone());
        }
        meeting_.barrier.arrive_and_wait();
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            tensors[i].copy_(meeting_.brought[0][i] + meeting_.brought[1][i]);
        }
        meeting_.barrier.arrive_and_wait();
        auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
        future->markCompleted(c10::IValue(tensors));
        return c10d::Work::create_from_future(future);
    }

  private:
    Meeting& meeting_;
};

c10::intrusive_ptr<c10d::ProcessGroup> group_of(int rank, Meeting& meeting) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(rank, 2);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::make_intrusive<ThreadBackend>(rank, meeting));
    return group;
}

struct Results {
    torch::Tensor y, dx, dw, db, running_mean, running_var;
};

Results pass(BatchNorm2d norm, const torch::Tensor& input, const torch::Tensor& slope) {
    {
        const torch::NoGradGuard no_grad;
        norm->weight.copy_(torch::tensor({0.5, 2.0, -1.0}));
        norm->bias.copy_(torch::tensor({0.1, 0.2, 0.3}));
    }
    torch::Tensor x = input.detach().clone().requires_grad_();
    const torch::Tensor y = norm(x);
    (y * slope).sum().backward();
    return {y.detach(),        x.grad(),           norm->weight.grad(),
            norm->bias.grad(), norm->running_mean, norm->running_var};
}

TEST(SyncBatchNorm, TwoRanksWithUnequalPartsComputeWhatOneDoes) {
    torch::manual_seed(3);
    // Far from zero, so that a careless sum of squares would lose its digits.
    const torch::Tensor x = torch::randn({7, 3, 5, 4}) * 2 + 100;
    const torch::Tensor slope = torch::randn({7, 3, 5, 4});
    const Results whole = pass(BatchNorm2d(3, nullptr), x, slope);

    Meeting meeting;
    std::array<Results, 2> parts;
    const auto run = [&](int rank) {
        const auto begin = rank == 0 ? 0 : 3;
        const auto end = rank == 0 ? 3 : 7;
        parts[static_cast<std::size_t>(rank)] =
            pass(BatchNorm2d(3, group_of(rank, meeting)), x.slice(0, begin, end), slope.slice(0, begin, end));
    };
    std::thread other(run, 1);
    run(0);
    other.join();

    const auto close = [](const torch::Tensor& a, const torch::Tensor& b) {
        return torch::allclose(a, b, 1e-4, 1e-5);
    };
    EXPECT_TRUE(close(torch::cat({parts[0].y, parts[1].y}), whole.y));
    EXPECT_TRUE(close(torch::cat({parts[0].dx, parts[1].dx}), whole.dx));
    EXPECT_TRUE(close(parts[0].dw + parts[1].dw, whole.dw));
    EXPECT_TRUE(close(parts[0].db + parts[1].db, whole.db));
    EXPECT_TRUE(close(parts[0].running_mean, whole.running_mean));
    EXPECT_TRUE(close(parts[1].running_var, whole.running_var));
    EXPECT_FALSE(close(pass(BatchNorm2d(3, nullptr), x.slice(0, 0, 3), slope.slice(0, 0, 3)).y,
                       whole.y.slice(0, 0, 3)));
}

TEST(BatchNorm, UsesRunningStatisticsInEvaluation) {
    BatchNorm2d norm(2, nullptr);
    const torch::Tensor x = torch::randn({4, 2, 3, 3});
    norm(x);
    norm->eval();
    const torch::Tensor mean = norm->running_mean.clone();
    EXPECT_TRUE(torch::allclose(
        norm(x), (x - mean.view({1, 2, 1, 1})) / (norm->running_var.view({1, 2, 1, 1}) + 1e-5).sqrt(), 1e-4,
        1e-5));
    EXPECT_TRUE(mean.equal(norm->running_mean));
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "parallel/reducer.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace joulemark::train {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Buckets = std::vector<std::vector<std::size_t>>;
using Names = std::unordered_map<std::size_t, std::string>;

/// With the arguments that every version takes, and those that 2.13 appended. A template, so that the branch
/// which the installed version lacks is not compiled.
template <typename Reducer = c10d::Reducer>
std::shared_ptr<Reducer> construct(const std::vector<torch::Tensor>& parameters, Buckets buckets,
                                   const Group& group, std::int64_t cap) {
    const std::vector<bool> sparse(parameters.size(), false);
    constexpr bool find_unused = false;
    constexpr bool gradient_as_bucket_view = true;
    constexpr bool skip_unused = false;
    constexpr bool python = false;
    const std::int64_t first_cap = c10d::kDefaultFirstBucketBytes;
    if constexpr (std::is_constructible_v<Reducer, std::vector<at::Tensor>, Buckets, Group, std::vector<bool>,
                                          std::int64_t, bool, bool, Names, std::int64_t, bool, bool,
                                          std::vector<std::int64_t>>) {
        return std::make_shared<Reducer>(parameters, std::move(buckets), group, sparse, cap, find_unused,
                                         gradient_as_bucket_view, Names(), first_cap, skip_unused, python,
                                         std::vector<std::int64_t>());
    } else {
        return std::make_shared<Reducer>(parameters, std::move(buckets), group, sparse, cap, find_unused,
                                         gradient_as_bucket_view, Names(), first_cap, skip_unused, python);
    }
}

class SumHook final : public c10d::CppCommHookInterface<Group> {
  public:
    using CppCommHookInterface::CppCommHookInterface;
    c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
        std::vector<at::Tensor> tensors = {bucket.getBufferRef()};
        return state_->allreduce(tensors)->getFuture();
    }
};

}  // namespace

std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<torch::Tensor>& parameters, const Group& group,
                                            double bucket_mib) {
    const auto cap = static_cast<std::int64_t>(bucket_mib * (1 << 20));
    const auto first_cap = std::min<std::int64_t>(c10d::kDefaultFirstBucketBytes, cap);
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        parameters, {static_cast<std::size_t>(first_cap), static_cast<std::size_t>(cap)});
    // Backward reaches the last parameters first.
    std::ranges::reverse(buckets);
    return construct(parameters, std::move(buckets), group, cap);
}

void sum_instead_of_mean(c10d::Reducer& reducer, const Group& group) {
    reducer.register_comm_hook(std::make_unique<SumHook>(group));
}

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace joulemark::train {

/// 0..size-1 in an order that depends on seed and epoch only, so that every rank can compute it alone.
std::vector<std::uint32_t> permutation(std::uint32_t size, std::uint64_t seed, std::uint64_t epoch);

/// How the samples of one epoch fall to ranks. Step s of the whole job takes positions s*G .. (s+1)*G-1 of
/// the permutation (G = ranks x local batch x accumulate), its backward pass p the p-th part of these, and rank
/// r the r-th part of that: a job of 2 ranks, or of 2 passes, with half the local batch sees the same samples in
/// the same step as one of 1.
struct Shard {
    int rank = 0;
    int ranks = 1;
    std::int64_t local_batch = 1;
    std::int64_t accumulate = 1;

    std::int64_t global_batch() const { return ranks * local_batch * accumulate; }
    /// Full steps only, so that every update averages over the same number of samples and ranks stay in step.
    std::int64_t steps(std::int64_t samples) const { return samples / global_batch(); }
    /// This rank's part of backward pass `pass`, counted over the epoch: step x accumulate + its number.
    std::span<const std::uint32_t> part(std::span<const std::uint32_t> order, std::int64_t pass) const {
        return order.subspan(static_cast<std::size_t>((pass * ranks + rank) * local_batch),
                             static_cast<std::size_t>(local_batch));
    }
};

/// This rank's samples of an evaluation: each of 0..size-1 belongs to exactly one rank; ranks may get one
/// more or less.
std::vector<std::uint32_t> evaluation_part(std::uint32_t size, int rank, int ranks);

}  // namespace joulemark::train

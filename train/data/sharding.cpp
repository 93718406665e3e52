// SPDX-License-Identifier: Apache-2.0
#include "data/sharding.h"

#include <numeric>
#include <utility>

#include "data/random.h"

namespace joulemark::train {

std::vector<std::uint32_t> permutation(std::uint32_t size, std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::uint32_t> order(size);
    std::iota(order.begin(), order.end(), 0U);
    KeyedRandom random{seed, epoch};
    for (std::uint32_t i = size; i > 1; --i) {
        std::swap(order[i - 1], order[random.below(i)]);
    }
    return order;
}

std::vector<std::uint32_t> evaluation_part(std::uint32_t size, int rank, int ranks) {
    std::vector<std::uint32_t> part;
    for (auto i = static_cast<std::uint32_t>(rank); i < size; i += static_cast<std::uint32_t>(ranks)) {
        part.push_back(i);
    }
    return part;
}

}  // namespace joulemark::train

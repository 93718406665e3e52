// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace joulemark::store {

/// A weighted mean of the parts that are there.
struct Mean {
    double sum = 0, weight = 0;
    void add(std::optional<double> value, double with = 1) {
        if (value) {
            sum += *value * with;
            weight += with;
        }
    }
    void add(const Mean& other) {
        sum += other.sum;
        weight += other.weight;
    }
    std::optional<double> value() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

}  // namespace joulemark::store

// SPDX-License-Identifier: Apache-2.0
#include "models/bessel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace joulemark::train {
namespace {

double spherical_bessel_of(std::int64_t order, double x) {
    std::vector<double> values(static_cast<std::size_t>(order + 1));
    spherical_bessel(x, order + 1, values.data());
    return values.back();
}

/// The zero of j_order between two points of different sign.
double bisect(std::int64_t order, double low, double high) {
    const bool rising = spherical_bessel_of(order, low) < 0;
    for (;;) {
        const double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) {
            return middle;  // neighbouring numbers
        }
        const bool below = spherical_bessel_of(order, middle) < 0;
        (below == rising ? low : high) = middle;
    }
}

}  // namespace

void spherical_bessel(double x, std::int64_t count, double* out) {
    // Going up loses about (l / x)^l of the precision; molecules' distances keep x above 1 for the orders in
    // use.
    const double sine = std::sin(x) / x;
    const double inverse = 1 / x;
    out[0] = sine;
    if (count > 1) {
        out[1] = (sine - std::cos(x)) * inverse;
    }
    for (std::int64_t l = 2; l < count; ++l) {
        out[l] = static_cast<double>(2 * l - 1) * inverse * out[l - 1] - out[l - 2];
    }
}

std::vector<double> spherical_bessel_zeros(std::int64_t orders, std::int64_t zeros) {
    // The zeros of j_l lie one each between neighbouring zeros of j_{l-1}; those of j_0 are the multiples of
    // pi.
    std::vector<double> row;
    for (std::int64_t n = 1; n < zeros + orders; ++n) {
        row.push_back(static_cast<double>(n) * std::numbers::pi);
    }
    std::vector<double> all;
    for (std::int64_t order = 0; order < orders; ++order) {
        if (order > 0) {
            for (std::size_t n = 0; n + 1 < row.size(); ++n) {
                row[n] = bisect(order, row[n], row[n + 1]);
            }
            row.pop_back();
        }
        all.insert(all.end(), row.begin(), row.begin() + zeros);
    }
    return all;
}

SphericalBasis::SphericalBasis(std::int64_t orders, std::int64_t zeros)
    : orders_(orders), zeros_(zeros), roots_(spherical_bessel_zeros(orders, zeros)) {
    for (std::int64_t l = 0; l < orders; ++l) {
        for (std::int64_t n = 0; n < zeros; ++n) {
            const double root = roots_[static_cast<std::size_t>(l * zeros + n)];
            inverse_norms_.push_back(std::numbers::sqrt2 / std::abs(spherical_bessel_of(l + 1, root)));
        }
        // Legendre's (l + 1) P_(l+1) = (2 l + 1) x P_l - l P_(l-1), each P times its Y's factor.
        const auto n = static_cast<double>(l);
        const double odd = 2 * n + 1;
        const double second = l == 0 ? 0 : n / (n + 1) * std::sqrt((odd + 2) / (odd - 2));
        recurrence_.emplace_back(odd / (n + 1) * std::sqrt((odd + 2) / odd), second);
    }
}

void SphericalBasis::radial(double x, double* out) const {
    std::vector<double> values(static_cast<std::size_t>(orders_));
    std::size_t at = 0;
    for (std::int64_t l = 0; l < orders_; ++l) {
        for (std::int64_t n = 0; n < zeros_; ++n, ++at) {
            spherical_bessel(roots_[at] * x, l + 1, values.data());
            out[at] = values[static_cast<std::size_t>(l)] * inverse_norms_[at];
        }
    }
}

void SphericalBasis::angular(double cosine, double* out) const {
    double before = 0;
    double value = 0.5 * std::numbers::inv_sqrtpi;
    for (const auto& [first, second] : recurrence_) {
        *out++ = value;
        const double next = first * cosine * value - second * before;
        before = value;
        value = next;
    }
}

double smooth_inverse(double x) {
    // p = 6: the sixth power's polynomial with three conditions at 1.
    constexpr double a = -28;
    constexpr double b = 48;
    constexpr double c = -21;
    const double power = x * x * x * x * x;
    return x < 1 ? 1 / x + power * (a + x * (b + x * c)) : 0;
}

}  // namespace joulemark::train

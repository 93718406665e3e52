// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace joulemark::train {

/// Spherical Bessel functions j_0(x) .. j_{count-1}(x) for x > 0, into `out`.
void spherical_bessel(double x, std::int64_t count, double* out);

/// The first `zeros` positive zeros of j_0 .. j_{orders-1}, order by order, to double precision.
std::vector<double> spherical_bessel_zeros(std::int64_t orders, std::int64_t zeros);

/// DimeNet's radial and angular parts of a wave on the ball of radius 1 (Klicpera et al. 2020): orthonormal
/// j_l(z_ln x), and Y_l0(angle), smoothed to zero at x = 1.
class SphericalBasis {
  public:
    SphericalBasis(std::int64_t orders, std::int64_t zeros);

    std::int64_t orders() const { return orders_; }
    std::int64_t zeros() const { return zeros_; }
    /// j_l(z_ln x) over its norm, at l * zeros + n of `out`.
    void radial(double x, double* out) const;
    /// Y_l0 = sqrt((2 l + 1) / 4 pi) P_l(cosine), at l of `out`.
    void angular(double cosine, double* out) const;

  private:
    std::int64_t orders_, zeros_;
    std::vector<double> roots_;
    std::vector<double> inverse_norms_;
    /// Y_(l+1)0 = first cosine Y_l0 - second Y_(l-1)0, at l.
    std::vector<std::pair<double, double>> recurrence_;
};

/// 1/x with a polynomial that takes value, slope and curvature to zero at 1; zero from there on.
double smooth_inverse(double x);

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "models/bessel.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(Bessel, FunctionsAreTheStandardLibrarys) {
    for (const double x : {1.0, 1.9, 4.5, 10.4, 27.0}) {
        std::vector<double> values(7);
        spherical_bessel(x, 7, values.data());
        for (unsigned order = 0; order < 7; ++order) {
            EXPECT_NEAR(values[order], std::sph_bessel(order, x), 1e-11) << "j_" << order << "(" << x << ")";
        }
    }
}

TEST(Bessel, ZerosAreZerosAndNoneIsLeftOut) {
    const std::vector<double> zeros = spherical_bessel_zeros(7, 6);
    ASSERT_EQ(zeros.size(), 42U);
    EXPECT_DOUBLE_EQ(zeros[0], std::numbers::pi);
    EXPECT_NEAR(zeros[6], 4.493409457909064, 1e-14);  // tan x = x
    for (unsigned order = 0; order < 7; ++order) {
        int changes = 0;
        const double last = zeros[order * 6 + 5];
        for (double x = 0.5; x < last + 0.01; x += 0.01) {
            changes += std::sph_bessel(order, x) * std::sph_bessel(order, x + 0.01) < 0 ? 1 : 0;
        }
        EXPECT_EQ(changes, 6) << "j_" << order;
        for (unsigned n = 0; n < 6; ++n) {
            EXPECT_NEAR(std::sph_bessel(order, zeros[order * 6 + n]), 0, 1e-13);
        }
    }
}

TEST(SphericalBasis, IsOrthonormalOnTheBall) {
    constexpr int orders = 4;
    constexpr int count = 3;
    const SphericalBasis basis(orders, count);
    constexpr int steps = 20000;
    std::vector<double> gram(orders * count * count, 0);
    std::vector<double> radial(orders * count);
    for (int i = 0; i < steps; ++i) {
        const double x = (i + 0.5) / steps;
        basis.radial(x, radial.data());
        for (int l = 0; l < orders; ++l) {
            for (int a = 0; a < count; ++a) {
                for (int b = 0; b < count; ++b) {
                    const double product = radial[static_cast<std::size_t>(l * count + a)] *
                                           radial[static_cast<std::size_t>(l * count + b)];
                    gram[static_cast<std::size_t>((l * count + a) * count + b)] += product * x * x / steps;
                }
            }
        }
    }
    for (int i = 0; i < orders * count * count; ++i) {
        const bool same = i / count % count == i % count;
        EXPECT_NEAR(gram[static_cast<std::size_t>(i)], same ? 1 : 0, 1e-5);
    }
}

TEST(SphericalBasis, AngularPartsAreTheStandardLibrarys) {
    const SphericalBasis basis(7, 1);
    std::vector<double> values(7);
    for (const double angle : {0.0, 0.4, 1.2, 3.0}) {
        basis.angular(std::cos(angle), values.data());
        for (unsigned l = 0; l < 7; ++l) {
            EXPECT_NEAR(values[l], std::sph_legendre(l, 0, angle), 1e-12);
        }
    }
}

TEST(SmoothInverse, EndsFlat) {
    EXPECT_NEAR(smooth_inverse(0.01), 100, 1e-5);
    EXPECT_EQ(smooth_inverse(1), 0);
    EXPECT_EQ(smooth_inverse(1.5), 0);
    EXPECT_NEAR(smooth_inverse(1 - 1e-4), 0, 1e-9);  // value, slope and curvature are 0
}

}  // namespace
}  // namespace joulemark::train

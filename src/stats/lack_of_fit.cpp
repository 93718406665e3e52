// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stats/distributions.h"
#include "stats/law.h"

namespace joulemark::stats {
namespace {

/// A law is an idealisation: what departs less is borne, however sure it is.
constexpr double tolerated_departure = 0.02;
constexpr double significance = 0.05;

bool by_chance(const std::optional<double>& p) {
    return p.value_or(1) >= significance;
}

}  // namespace

LackOfFit lack_of_fit(const LevelMeans& means, const Eigen::VectorXd& log_residuals, int parameters) {
    LackOfFit lack;
    for (Eigen::Index i = 0; i < log_residuals.size(); ++i) {
        const double departure = std::expm1(-log_residuals[i]);
        if (std::abs(departure) >= std::abs(lack.departure)) {
            lack.departure = departure;
            lack.at = means.x[i];
        }
    }
    const auto df = static_cast<double>(means.size() - parameters);
    if (df > 0 && means.within_df > 0) {
        const double squares = means.repeats.dot(log_residuals.cwiseAbs2());
        const double pure = means.within_variance;
        lack.repeats_p = pure > 0 ? f_upper(squares / df / pure, df, means.within_df) : squares > 0 ? 0 : 1;
    }
    return lack;
}

bool LackOfFit::significant() const {
    return std::abs(departure) > tolerated_departure && !(by_chance(repeats_p) && by_chance(curvature_p));
}

std::string LackOfFit::text() const {
    return fmt::format("gives {:.1f} % {} than was measured at {:g}, {}", 100 * std::abs(departure),
                       departure > 0 ? "more" : "less", at,
                       by_chance(repeats_p)
                           ? fmt::format("and its residuals bend (p = {:.2g})", curvature_p.value_or(1))
                           : fmt::format("which the scatter of repeats does not explain (p = {:.2g})", *repeats_p));
}

}  // namespace joulemark::stats

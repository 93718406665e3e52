// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace joulemark::stats {

/// Quantile of Student's t with `df` > 0 degrees of freedom (not necessarily whole), 0 < p < 1.
double t_quantile(double p, double df);
/// The factor of a two-sided 95 % interval: t_quantile(0.975, df).
double t95(double df);
/// Probability of |T| >= |t|.
double t_two_sided(double t, double df);
/// Probability of F >= f.
double f_upper(double f, double df1, double df2);
/// Probability of chi-squared >= x.
double chi_squared_upper(double x, double df);

}  // namespace joulemark::stats

// SPDX-License-Identifier: Apache-2.0
#include "stats/distributions.h"

#include <cmath>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace joulemark::stats {

double t_quantile(double p, double df) {
    return quantile(boost::math::students_t(df), p);
}

double t95(double df) {
    return t_quantile(0.975, df);
}

double t_two_sided(double t, double df) {
    return 2 * cdf(complement(boost::math::students_t(df), std::abs(t)));
}

double f_upper(double f, double df1, double df2) {
    return cdf(complement(boost::math::fisher_f(df1, df2), f));
}

double chi_squared_upper(double x, double df) {
    return cdf(complement(boost::math::chi_squared(df), x));
}

}  // namespace joulemark::stats

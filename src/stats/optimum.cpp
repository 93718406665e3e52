// SPDX-License-Identifier: Apache-2.0
#include "stats/optimum.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <boost/math/tools/minima.hpp>

#include "stats/summary.h"

namespace joulemark::stats {
namespace {

struct Least {
    double at, value;
    bool interior;
};

Least minimise(const LawFit& first, const LawFit& second, double low, double high) {
    const auto product = [&](double log_x) {
        return first.value(std::exp(log_x)) * second.value(std::exp(log_x));
    };
    constexpr int steps = 60;
    const double start = std::log(low);
    const double width = (std::log(high) - start) / steps;
    int best = 0;
    double least = product(start);
    for (int step = 1; step <= steps; ++step) {
        const double value = product(start + step * width);
        if (value < least) {
            least = value;
            best = step;
        }
    }
    if (best == 0 || best == steps) {
        return {best == 0 ? low : high, least, false};
    }
    const double at = start + best * width;
    const auto [log_x, value] = boost::math::tools::brent_find_minima(product, at - width, at + width, 20);
    return {std::exp(log_x), value, true};
}

/// The law selected and fitted to means that scatter about `truth` as its residuals say.
std::optional<LawFit> resampled(const LawFit& truth, std::span<const Form> candidates,
                                std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    std::chi_squared_distribution<double> chi_squared(truth.df);
    const double sd = std::sqrt(truth.rss / chi_squared(random));
    std::vector<Level> levels;
    for (Eigen::Index i = 0; i < truth.x.size(); ++i) {
        const double noise = sd / std::sqrt(truth.weights[i]) * normal(random);
        levels.push_back({truth.x[i], {truth.value(truth.x[i]) * std::exp(noise)}});
    }
    Selection selection = select_law(candidates, levels, Detail::point);
    return selection.selected ? std::optional(std::move(selection.fits[*selection.selected])) : std::nullopt;
}

}  // namespace

std::optional<Optimum> least_product(std::span<const Form> first_candidates, std::span<const Level> first,
                                     std::span<const Form> second_candidates, std::span<const Level> second,
                                     int resamples, std::uint64_t seed) {
    const Selection one = select_law(first_candidates, first);
    const Selection two = select_law(second_candidates, second);
    if (!one.selected || !two.selected) {
        return std::nullopt;
    }
    const LawFit& first_fit = one.fits[*one.selected];
    const LawFit& second_fit = two.fits[*two.selected];
    const double low = first_fit.x[0];
    const double high = first_fit.x[first_fit.x.size() - 1];
    const Least least = minimise(first_fit, second_fit, low, high);
    Optimum optimum{.at = least.at,
                    .value = least.value,
                    .ci95 = {low, high},
                    .interior = least.interior,
                    .interior_share = 0,
                    .first = first_fit.form,
                    .second = second_fit.form,
                    .parameters = static_cast<int>(first_fit.parameters.size() + second_fit.parameters.size()),
                    .fitted = {}};
    for (const double x : first_fit.x) {
        optimum.fitted.push_back(first_fit.value(x) * second_fit.value(x));
    }
    std::mt19937_64 random(seed);
    std::vector<double> optima;
    int made = 0, interior = 0;
    for (int i = 0; i < resamples; ++i) {
        const auto first_again = resampled(first_fit, first_candidates, random);
        const auto second_again = resampled(second_fit, second_candidates, random);
        if (first_again && second_again) {
            const Least again = minimise(*first_again, *second_again, low, high);
            ++made;
            interior += again.interior ? 1 : 0;
            if (again.interior || !optimum.interior) {
                optima.push_back(again.at);
            }
        }
    }
    if (optima.size() >= 50) {
        optimum.ci95 = {quantile(optima, 0.025), quantile(optima, 0.975)};
        optimum.interior_share = interior / static_cast<double>(made);
    }
    return optimum;
}

}  // namespace joulemark::stats

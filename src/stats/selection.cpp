// SPDX-License-Identifier: Apache-2.0
#include "stats/selection.h"

#include <algorithm>
#include <limits>

namespace joulemark::stats {
namespace {

constexpr double indistinguishable = 2;

}  // namespace

Selection select_law(std::span<const Form> candidates, std::span<const Level> levels, Detail detail) {
    Selection selection;
    for (const Form form : candidates) {
        auto fit = fit_law(form, levels, detail);
        if (fit) {
            selection.fits.push_back(std::move(*fit));
        } else {
            selection.refusals.push_back({form, fit.failure().reason});
        }
    }
    if (selection.fits.empty()) {
        selection.reason =
            selection.refusals.empty() ? "no candidate form" : selection.refusals.front().reason;
        return selection;
    }
    double least = infinity;
    for (const LawFit& fit : selection.fits) {
        least = std::min(least, fit.aicc.value_or(infinity));
    }
    const bool by_aicc = least < infinity;
    double best = infinity;
    for (std::size_t i = 0; i < selection.fits.size(); ++i) {
        const LawFit& fit = selection.fits[i];
        const bool eligible = !by_aicc || fit.aicc.value_or(infinity) <= least + indistinguishable;
        const double error = detail == Detail::full
                                 ? fit.loo_rmse.value_or(std::numeric_limits<double>::max())
                                 : fit.aicc.value_or(fit.rss);
        if (eligible && error < best) {
            best = error;
            selection.selected = i;
        }
    }
    selection.reason = by_aicc ? "least AICc; leave-one-out error decides within 2 of it"
                               : "least leave-one-out error; too few levels for AICc";
    return selection;
}

}  // namespace joulemark::stats

// SPDX-License-Identifier: Apache-2.0
#include "store/downsample.h"

#include <algorithm>
#include <cmath>

namespace joulemark::store {
namespace {

void merge_into(Downsampler::Bin& into, const Downsampler::Bin& from) {
    if (from.samples == 0) {
        return;
    }
    if (into.samples == 0) {
        into = from;
        return;
    }
    into.minimum = std::min(into.minimum, from.minimum);
    into.maximum = std::max(into.maximum, from.maximum);
    into.sum += from.sum;
    into.samples += from.samples;
}

}  // namespace

void Downsampler::halve() {
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
        const Bin from = bins_[bin];
        if (bin % 2 == 0) {
            bins_[bin / 2] = from;
        } else {
            merge_into(bins_[bin / 2], from);
        }
    }
    bins_.resize((bins_.size() + 1) / 2);
    width_ns_ *= 2;
}

void Downsampler::add(std::int64_t time_ns, double value) {
    if (std::isnan(value)) {
        return;
    }
    if (bins_.empty()) {
        start_ns_ = time_ns;
    }
    while ((time_ns - start_ns_) / width_ns_ >= static_cast<std::int64_t>(limit)) {
        halve();
    }
    const auto bin = static_cast<std::size_t>((time_ns - start_ns_) / width_ns_);
    if (bin >= bins_.size()) {
        bins_.resize(bin + 1);
    }
    merge_into(bins_[bin], {value, value, value, 1});
}

}  // namespace joulemark::store

// SPDX-License-Identifier: Apache-2.0
#include "data/masked_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "data/random.h"

namespace joulemark::train {
namespace {

constexpr std::int64_t no_label = -100;  // what torch's cross-entropy leaves out

std::int64_t share_of(std::int64_t tokens, double share) {
    return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(tokens)));
}

std::uint32_t checked_size(std::size_t samples) {
    if (samples > std::numeric_limits<std::uint32_t>::max()) {
        throw bad_input("the text has {} sequences, more than the {} that a data set can hold", samples,
                        std::numeric_limits<std::uint32_t>::max());
    }
    return static_cast<std::uint32_t>(samples);
}

/// What the samples hold at `part`, a row each.
torch::Tensor stack(const std::vector<Sample>& samples, std::size_t part, bool pin) {
    const auto count = static_cast<std::int64_t>(samples.size());
    const std::int64_t width = samples.front()[part].numel();
    torch::Tensor rows = torch::empty({count, width}, torch::TensorOptions(torch::kInt64).pinned_memory(pin));
    auto* to = rows.mutable_data_ptr<std::int64_t>();
    for (const Sample& sample : samples) {
        to = std::copy_n(sample[part].const_data_ptr<std::int64_t>(), width, to);
    }
    return rows;
}

}  // namespace

std::int64_t Masking::predictions() const {
    return share_of(length - 2, share);
}

/// A sample is {ids [L], places [P] within the sequence, labels [P], number of tokens []}.
Result<Sample> MaskedText::load(std::uint32_t index, std::uint64_t epoch) const {
    const std::int64_t room = masking_.predictions();
    torch::Tensor ids = torch::full({masking_.length}, masking_.special.pad, torch::kInt64);
    torch::Tensor places = torch::zeros({room}, torch::kInt64);
    torch::Tensor labels = torch::full({room}, no_label, torch::kInt64);
    torch::Tensor length = torch::empty({}, torch::kInt64);
    auto* id = ids.mutable_data_ptr<std::int64_t>();
    const auto tokens =
        static_cast<std::int64_t>(read(index, {id, static_cast<std::size_t>(masking_.length)}));
    *length.mutable_data_ptr<std::int64_t>() = tokens;

    std::vector<std::int64_t> candidates;
    for (std::int64_t i = 1; i + 1 < tokens; ++i) {
        if (id[i] != masking_.special.separator) {
            candidates.push_back(i);
        }
    }
    const auto masked = std::min<std::int64_t>(share_of(tokens - 2, masking_.share),
                                               static_cast<std::int64_t>(candidates.size()));
    KeyedRandom random{masking_.seed, mask_stream, static_cast<std::uint64_t>(masking_.split), epoch, index};
    for (std::int64_t i = 0; i < masked; ++i) {  // the beginning of a random order
        const auto other =
            i + static_cast<std::int64_t>(random.below(candidates.size() - static_cast<std::size_t>(i)));
        std::swap(candidates[static_cast<std::size_t>(i)], candidates[static_cast<std::size_t>(other)]);
        const std::int64_t place = candidates[static_cast<std::size_t>(i)];
        places.mutable_data_ptr<std::int64_t>()[i] = place;
        labels.mutable_data_ptr<std::int64_t>()[i] = id[place];
        const double chance = random.uniform();
        if (chance < 0.8) {
            id[place] = masking_.special.mask;
        } else if (chance < 0.9) {
            id[place] =
                static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(masking_.vocabulary)));
        }
    }
    return Sample{std::move(ids), std::move(places), std::move(labels), std::move(length)};
}

Batch MaskedText::collate(const std::vector<Sample>& samples, bool pin) const {
    Batch batch;
    batch.samples = static_cast<std::int64_t>(samples.size());
    torch::Tensor ids = stack(samples, 0, pin);
    torch::Tensor rows = stack(samples, 1, pin);
    auto* row = rows.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < rows.numel(); ++i) {
        row[i] += i / rows.size(1) * masking_.length;
    }
    batch.inputs = {std::move(ids), rows.view({-1})};
    batch.target = stack(samples, 2, pin).view({-1});
    for (const Sample& sample : samples) {
        batch.tokens += *sample[3].const_data_ptr<std::int64_t>();
    }
    if (batch.tokens < batch.samples * masking_.length) {
        torch::Tensor present = torch::empty({batch.samples, masking_.length},
                                             torch::TensorOptions(torch::kBool).pinned_memory(pin));
        bool* flag = present.mutable_data_ptr<bool>();
        for (const Sample& sample : samples) {
            const std::int64_t tokens = *sample[3].const_data_ptr<std::int64_t>();
            flag = std::fill_n(flag, tokens, true);
            flag = std::fill_n(flag, masking_.length - tokens, false);
        }
        batch.inputs.push_back(std::move(present));
    }
    return batch;
}

PackedText::PackedText(TokenCache tokens, const Masking& masking, const std::string& origin)
    : MaskedText(masking),
      tokens_(std::move(tokens)),
      size_(checked_size(tokens_.size() / static_cast<std::size_t>(masking.length - 2))) {
    if (size_ == 0) {
        throw bad_input("the text {} has {} tokens, less than one sequence of {}: lower --set length", origin,
                        tokens_.size(), masking.length);
    }
}

std::size_t PackedText::read(std::uint32_t index, std::span<std::int64_t> ids) const {
    const std::size_t inner = ids.size() - 2;
    ids.front() = masking().special.class_start;
    for (std::size_t i = 0; i < inner; ++i) {
        ids[i + 1] = tokens_[index * inner + i];
    }
    ids.back() = masking().special.separator;
    return ids.size();
}

LineText::LineText(TokenCache tokens, const Masking& masking)
    : MaskedText(masking), tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (tokens_[i] == masking.special.separator) {
            ends_.push_back(i);
        }
    }
    checked_size(ends_.size());
}

std::size_t LineText::read(std::uint32_t index, std::span<std::int64_t> ids) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1] + 1;
    const std::size_t inner = std::min(ends_[index] - begin, ids.size() - 2);
    ids.front() = masking().special.class_start;
    for (std::size_t i = 0; i < inner; ++i) {
        ids[i + 1] = tokens_[begin + i];
    }
    ids[inner + 1] = masking().special.separator;
    return inner + 2;
}

SyntheticText::SyntheticText(std::uint32_t size, const Masking& masking, bool packed)
    : MaskedText(masking), size_(size), packed_(packed) {
    constexpr double shift = 2.7;  // Mandelbrot's, for English
    double sum = 0;
    for (std::int64_t rank = 1; rank <= masking.vocabulary - first_word; ++rank) {
        sum += 1 / (static_cast<double>(rank) + shift);
        cumulative_.push_back(sum);
    }
    for (double& value : cumulative_) {
        value /= sum;
    }
}

std::size_t SyntheticText::read(std::uint32_t index, std::span<std::int64_t> ids) const {
    // WikiText-103's training part: 103,227,021 words in 1,165,029 lines that are not empty; about 1.15
    // pieces a word. The spread is assumed.
    constexpr double mean = 1.15 * 103'227'021 / 1'165'029;
    constexpr double spread = 1.0;
    const double log_median = std::log(mean) - spread * spread / 2;
    KeyedRandom random{masking().seed, text_stream, static_cast<std::uint64_t>(masking().split), index};
    const auto line_length = [&] {
        const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
        const double normal = radius * std::cos(2 * std::numbers::pi * random.uniform());
        return static_cast<std::size_t>(std::clamp(std::exp(log_median + spread * normal), 1.0, 1e6));
    };
    const std::size_t room = ids.size() - 2;
    std::size_t line_end = line_length();
    const std::size_t inner = packed_ ? room : std::min(line_end, room);
    ids.front() = masking().special.class_start;
    for (std::size_t i = 0; i < inner; ++i) {
        if (i == line_end) {
            ids[i + 1] = masking().special.separator;
            line_end += 1 + line_length();
            continue;
        }
        const auto rank = std::ranges::upper_bound(cumulative_, random.uniform()) - cumulative_.begin();
        ids[i + 1] = first_word + std::min<std::int64_t>(rank, std::ssize(cumulative_) - 1);
    }
    ids[inner + 1] = masking().special.separator;
    return inner + 2;
}

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/images.h"
#include "data/token_cache.h"

namespace joulemark::train {

/// The tokens of a vocabulary that masking has to know.
struct SpecialTokens {
    TokenId pad = 0;
    TokenId class_start = 2;
    TokenId separator = 3;
    TokenId mask = 4;
};

/// How sequences are made and masked.
struct Masking {
    SpecialTokens special;
    std::int64_t vocabulary = 0;  ///< number of tokens
    std::int64_t length = 128;    ///< tokens of a sequence, [CLS] and [SEP] among them
    double share = 0.15;          ///< of its tokens that are to be predicted
    std::uint64_t seed = 0;
    Split split = Split::training;

    /// How many predictions a sequence has room for: all sequences the same, so that the head works on a
    /// fixed number of rows. A shorter sequence has fewer.
    std::int64_t predictions() const;
};

/// Sequences for masked-language modelling (Devlin et al. 2019). Of a sequence's tokens a fixed share is
/// drawn anew in every epoch, keyed by seed, epoch and index; 80 % of them become [MASK], 10 % a random
/// token, 10 % stay. A batch has the inputs ids int64 [B, L], rows int64 [B P] (which rows of [B L, hidden]
/// are predicted) and, when any sequence is shorter than L, present bool [B, L]; its target is int64 [B P],
/// -100 where a sequence has fewer predictions than P.
class MaskedText : public Dataset {
  public:
    explicit MaskedText(const Masking& masking) : masking_(masking) {}

    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    Batch collate(const std::vector<Sample>& samples, bool pin) const override;

  protected:
    /// Writes the sequence's tokens, [CLS] first and [SEP] last, and gives their number; the rest is padding.
    virtual std::size_t read(std::uint32_t index, std::span<std::int64_t> ids) const = 0;
    const Masking& masking() const { return masking_; }

  private:
    Masking masking_;
};

/// A text as one stream of tokens, cut into sequences without padding; what is left at its end is not used.
class PackedText final : public MaskedText {
  public:
    /// Throws bad_input naming the text when it holds less than one sequence.
    PackedText(TokenCache tokens, const Masking& masking, const std::string& origin);

    std::uint32_t size() const override { return size_; }
    std::string name() const override { return "the text"; }
    std::string digest() const override { return tokens_.digest(); }

  protected:
    std::size_t read(std::uint32_t index, std::span<std::int64_t> ids) const override;

  private:
    TokenCache tokens_;
    std::uint32_t size_;
};

/// A text's lines, a sequence each; what is longer than a sequence is cut off.
class LineText final : public MaskedText {
  public:
    LineText(TokenCache tokens, const Masking& masking);

    std::uint32_t size() const override { return static_cast<std::uint32_t>(ends_.size()); }
    std::string name() const override { return "the text"; }
    std::string digest() const override { return tokens_.digest(); }

  protected:
    std::size_t read(std::uint32_t index, std::span<std::int64_t> ids) const override;

  private:
    TokenCache tokens_;
    std::vector<std::size_t> ends_;  ///< of each line, where its [SEP] is
};

/// Made-up tokens by seed and index that cost a loader little: frequencies by Zipf's law as Mandelbrot has
/// it, lines as long as WikiText-103's are on average, log-normal.
class SyntheticText final : public MaskedText {
  public:
    /// The first ids are the special tokens'.
    static constexpr std::int64_t first_word = 5;

    SyntheticText(std::uint32_t size, const Masking& masking, bool packed);

    std::uint32_t size() const override { return size_; }
    std::string name() const override { return "the synthetic data set"; }

  protected:
    std::size_t read(std::uint32_t index, std::span<std::int64_t> ids) const override;

  private:
    std::uint32_t size_;
    bool packed_;
    std::vector<double> cumulative_;  ///< probability of the words up to each rank
};

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#include "models/language_workload.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.h"
#include "data/wordpiece.h"

namespace joulemark::train {
namespace {

constexpr std::int64_t most_positions = std::int64_t{1} << 20;
constexpr std::int64_t most_words = 10'000'000;  // as many as make-vocab makes

using Path = std::filesystem::path;

struct TextFiles {
    Path training;
    Path validation;  ///< empty where there is none
};

std::optional<Path> first_existing(const Path& folder, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        if (std::filesystem::exists(folder / name)) {
            return folder / name;
        }
    }
    return std::nullopt;
}

/// A text file, or a folder with the names of WikiText's parts.
TextFiles find_texts(const Path& dataset) {
    if (!std::filesystem::is_directory(dataset)) {
        if (!std::filesystem::exists(dataset)) {
            throw bad_input(
                "there is no text {}: --dataset takes 'synthetic', a text file, or a folder with "
                "wiki.train.raw and wiki.valid.raw",
                dataset.string());
        }
        return {dataset, {}};
    }
    const auto training = first_existing(dataset, {"wiki.train.raw", "wiki.train.tokens", "train.txt"});
    if (!training) {
        throw bad_input(
            "the folder {} holds no text: it takes wiki.train.raw or train.txt, and wiki.valid.raw or "
            "valid.txt for validation",
            dataset.string());
    }
    return {*training,
            first_existing(dataset, {"wiki.valid.raw", "wiki.valid.tokens", "valid.txt"}).value_or(Path())};
}

WordPiece open_vocabulary(const Options& options) {
    if (!options.vocab.empty()) {
        return WordPiece(Path(options.vocab));
    }
    const Path beside = Path(options.dataset) / "vocab.txt";
    if (!std::filesystem::is_regular_file(beside)) {
        throw bad_input(
            "a text needs a vocabulary: name one with --vocab vocab.txt, or make one with joulemark-train "
            "make-vocab {} -o vocab.txt",
            find_texts(options.dataset).training.string());
    }
    return WordPiece(beside);
}

std::unique_ptr<MaskedText> synthetic_text(std::int64_t samples, const Masking& masking, bool packed) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (samples > most) {
        throw bad_input("the synthetic data set holds at most {} samples", most);
    }
    return std::make_unique<SyntheticText>(static_cast<std::uint32_t>(samples), masking, packed);
}

/// The text in --dataset, or a synthetic one when there is no vocabulary.
MaskedLanguage::Data open_data(const Options& options, HyperParameters& settings,
                               const TransformerConfig& config, const std::optional<WordPiece>& vocabulary) {
    Masking masking;
    masking.length = settings.integer("length", masking.length, 8, most_positions);
    masking.share = settings.real("masked", masking.share, 1e-6, 1);
    const bool packed = settings.flag("packed", true);
    const Path cache = settings.text("cache", "");
    settings.finish(options.model);
    if (masking.length > config.positions) {
        throw bad_input("--set length={} is longer than the model's {} positions", masking.length,
                        config.positions);
    }
    masking.seed = options.seed;

    masking.vocabulary = vocabulary ? vocabulary->size() : config.vocabulary;
    if (vocabulary) {
        masking.special = {.pad = vocabulary->pad,
                           .class_start = vocabulary->class_start,
                           .separator = vocabulary->separator,
                           .mask = vocabulary->mask};
    }
    const auto of_split = [&](Split split) {
        Masking own = masking;
        own.split = split;
        return own;
    };

    MaskedLanguage::Data data;
    data.masking = masking;
    data.uneven = !packed || masking.share > 0.5;  // at most every second token of a packed text is [SEP]
    if (!vocabulary) {
        const std::int64_t samples = options.samples.value_or(options.defaults.samples);
        data.training = synthetic_text(samples, of_split(Split::training), packed);
        if (options.eval_samples > 0) {
            data.validation = synthetic_text(options.eval_samples, of_split(Split::validation), packed);
        }
        return data;
    }
    const auto open = [&](const Path& text, Split split) -> std::unique_ptr<MaskedText> {
        // One rank makes the cache while the others wait: it may use all cores.
        const auto threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
        TokenCache tokens = TokenCache::open(text, *vocabulary, cache, threads);
        if (packed) {
            return std::make_unique<PackedText>(std::move(tokens), of_split(split), text.string());
        }
        return std::make_unique<LineText>(std::move(tokens), of_split(split));
    };
    const TextFiles texts = find_texts(options.dataset);
    data.training = open(texts.training, Split::training);
    if (!texts.validation.empty()) {
        data.validation = open(texts.validation, Split::validation);
    }
    return data;
}

std::unique_ptr<Workload> make(const BertKind& kind, TransformerConfig config, const Options& options,
                               HyperParameters& settings) {
    std::optional<WordPiece> vocabulary;
    if (options.dataset != "synthetic") {
        vocabulary = open_vocabulary(options);
        config.vocabulary = vocabulary->size();
        config.padding = vocabulary->pad;
    } else if (!options.vocab.empty()) {
        throw bad_input("--vocab {} is of no use without a text: name one with --dataset", options.vocab);
    }
    config =
        transformer_config(settings, config, vocabulary ? vocabulary->size() : SyntheticText::first_word + 1);
    MaskedLanguage::Data data = open_data(options, settings, config, vocabulary);
    return std::make_unique<MaskedLanguage>(kind, config, std::move(data));
}

}  // namespace

TransformerConfig transformer_config(HyperParameters& settings, TransformerConfig config,
                                     std::int64_t smallest_vocabulary) {
    config.hidden = settings.integer("hidden", config.hidden, 1);
    config.layers = settings.integer("layers", config.layers, 1, most_layers);
    config.heads = settings.integer("heads", config.heads, 1);
    config.intermediate = settings.integer("intermediate", 4 * config.hidden, 1);
    config.positions = settings.integer("positions", config.positions, 8, most_positions);
    config.vocabulary = settings.integer("vocabulary", config.vocabulary, smallest_vocabulary, most_words);
    config.dropout = config.attention_dropout = settings.real("dropout", config.dropout, 0, 0.99);
    if (config.hidden % config.heads != 0) {
        throw bad_input("--set hidden={} cannot be divided among heads={}", config.hidden, config.heads);
    }
    return config;
}

MaskedLanguage::MaskedLanguage(const BertKind& kind, const TransformerConfig& config, Data data)
    : config_(config), data_(std::move(data)), network_(kind, config) {}

Outcome MaskedLanguage::forward(const Batch& batch) {
    const auto& inputs = batch.inputs;
    const torch::Tensor present = inputs.size() > 2 ? inputs[2] : torch::Tensor();
    const torch::Tensor logits = network_(inputs[0], inputs[1], present);  // [B P, vocabulary]
    // Rows without a label count neither here nor below.
    const torch::Tensor loss = torch::cross_entropy_loss(logits, batch.target);
    const torch::Tensor counted = batch.target.ge(0).sum();
    return {.loss = loss,
            .quality_sum = logits.detach().argmax(1).eq(batch.target).sum(),
            .quality_count = counted,
            .weight = data_.uneven ? counted / static_cast<double>(batch.target.numel()) : torch::Tensor()};
}

std::optional<double> MaskedLanguage::flops_per_sample() const {
    const auto length = static_cast<double>(data_.masking.length);
    const auto hidden = static_cast<double>(config_.hidden);
    const auto predictions = static_cast<double>(data_.masking.predictions());
    const double projections =
        2 * length * hidden * (4 * hidden + 2 * static_cast<double>(config_.intermediate));
    const double attention = 4 * length * length * hidden;
    const double head = 2 * predictions * hidden * (hidden + static_cast<double>(config_.vocabulary));
    return 3 * (static_cast<double>(config_.layers) * (projections + attention) + head);
}

std::string MaskedLanguage::weight_name(const std::string& published) const {
    // Second copies of the tied decoder, other heads, and buffers of early releases.
    constexpr std::array<std::string_view, 6> without_use = {
        "cls.predictions.decoder.", "vocab_projector.weight",       "bert.pooler.",
        "cls.seq_relationship.",    "bert.embeddings.position_ids", "distilbert.embeddings.position_ids"};
    for (const std::string_view prefix : without_use) {
        if (published.starts_with(prefix)) {
            return "";
        }
    }
    // The first releases were converted from TensorFlow's names.
    const auto renamed = [&](std::string_view old_end, std::string_view new_end) {
        return published.ends_with(old_end)
                   ? std::optional(published.substr(0, published.size() - old_end.size()) +
                                   std::string(new_end))
                   : std::nullopt;
    };
    return renamed(".gamma", ".weight").value_or(renamed(".beta", ".bias").value_or(published));
}

std::unique_ptr<Workload> make_bert(const Options& options, HyperParameters& settings,
                                    c10::intrusive_ptr<c10d::ProcessGroup>) {
    return make(bert_kind, {}, options, settings);
}

std::unique_ptr<Workload> make_distilbert(const Options& options, HyperParameters& settings,
                                          c10::intrusive_ptr<c10d::ProcessGroup>) {
    return make(distilbert_kind, {.layers = 6}, options, settings);
}

}  // namespace joulemark::train

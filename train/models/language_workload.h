// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "data/masked_text.h"
#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"
#include "models/bert.h"

namespace joulemark::train {

/// The settings hidden, layers, heads, intermediate (default 4 hidden), positions, dropout and vocabulary.
/// Throws bad_input when hidden is no multiple of heads.
TransformerConfig transformer_config(HyperParameters& settings, TransformerConfig defaults,
                                     std::int64_t smallest_vocabulary);

/// BERT or DistilBERT predicting masked tokens: cross-entropy over them, share of them that is guessed right.
class MaskedLanguage final : public Workload {
  public:
    struct Data {
        Masking masking;
        std::unique_ptr<MaskedText> training;
        std::unique_ptr<MaskedText> validation;  ///< null where there is none
        bool uneven = false;                     ///< sequences differ in their number of predictions
    };
    MaskedLanguage(const BertKind& kind, const TransformerConfig& config, Data data);

    torch::nn::Module& module() override { return *network_; }
    const Dataset& training_data() const override { return *data_.training; }
    const Dataset* validation_data() const override { return data_.validation.get(); }
    Outcome forward(const Batch& batch) override;
    std::string quality_name() const override { return "masked_accuracy"; }
    bool higher_is_better() const override { return true; }
    std::optional<double> flops_per_sample() const override;
    std::string weight_name(const std::string& published) const override;

  private:
    TransformerConfig config_;
    Data data_;
    Bert network_;
};

/// Settings: those of transformer_config, length, packed, masked, cache (docs/workloads.md).
std::unique_ptr<Workload> make_bert(const Options& options, HyperParameters& settings,
                                    c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
std::unique_ptr<Workload> make_distilbert(const Options& options, HyperParameters& settings,
                                          c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train

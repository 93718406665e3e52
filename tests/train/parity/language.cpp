// SPDX-License-Identifier: Apache-2.0
#include "models.h"
#include "models/bert.h"
#include "models/language_workload.h"

namespace joulemark::train::parity {
namespace {

/// Inputs: ids int64 [B, L], present bool [B, L], labels int64 [B, L], -100 where nothing is predicted.
class MaskedLanguageParity final : public ParityModel {
  public:
    MaskedLanguageParity(const BertKind& kind, HyperParameters& settings)
        : network_(kind, transformer_config(settings, {}, 1)) {
        network_->eval();  // no dropout
    }

    torch::nn::Module& module() override { return *network_; }

    torch::Tensor loss(const Inputs& inputs) override {
        const torch::Tensor labels = inputs.at("labels").flatten();
        const torch::Tensor rows = labels.ne(-100).nonzero().flatten();
        const torch::Tensor logits = network_(inputs.at("ids"), rows, inputs.at("present"));
        return torch::cross_entropy_loss(logits, labels.index_select(0, rows));
    }

  private:
    Bert network_;
};

}  // namespace

std::unique_ptr<ParityModel> make_bert(HyperParameters& settings) {
    return std::make_unique<MaskedLanguageParity>(bert_kind, settings);
}

std::unique_ptr<ParityModel> make_distilbert(HyperParameters& settings) {
    return std::make_unique<MaskedLanguageParity>(distilbert_kind, settings);
}

}  // namespace joulemark::train::parity

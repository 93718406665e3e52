// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/registry.h"
#include "models.h"

namespace joulemark::train::parity {
namespace {

/// The whole workload on the fixture's fields: those of synthetic data have mean 0 and deviation 1, so that
/// normalising changes nothing.
class FourCastNet final : public ParityModel {
  public:
    explicit FourCastNet(std::unique_ptr<Workload> workload) : workload_(std::move(workload)) {}
    torch::nn::Module& module() override { return workload_->module(); }
    torch::Tensor loss(const Inputs& inputs) override {
        const torch::Tensor& fields = inputs.at("fields");
        Batch batch;
        batch.inputs = {fields};
        batch.samples = fields.size(0);
        return workload_->forward(batch).loss;
    }

  private:
    std::unique_ptr<Workload> workload_;
};

}  // namespace

std::unique_ptr<ParityModel> make_fourcastnet(HyperParameters& settings) {
    Options options;
    options.model = "fourcastnet";
    options.samples = 1;
    return std::make_unique<FourCastNet>(find_model(options.model).make(options, settings, nullptr));
}

}  // namespace joulemark::train::parity

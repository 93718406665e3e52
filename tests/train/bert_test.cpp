// SPDX-License-Identifier: Apache-2.0
#include "models/bert.h"

#include <gmock/gmock.h>

#include "engine/options.h"
#include "engine/registry.h"
#include "models/language_workload.h"

namespace joulemark::train {
namespace {

TransformerConfig narrow() {
    return {.vocabulary = 50, .hidden = 16, .layers = 2, .heads = 4, .intermediate = 32, .positions = 12};
}

std::int64_t parameters_of(const torch::nn::Module& module) {
    std::int64_t sum = 0;
    for (const auto& parameter : module.parameters()) {
        sum += parameter.numel();
    }
    return sum;
}

std::unique_ptr<Workload> workload_of(const std::string& name, const std::vector<std::string>& words) {
    Options options;
    options.model = name;
    options.defaults = find_model(name).defaults;
    options.samples = 16;
    HyperParameters settings(words);
    return find_model(name).make(options, settings, nullptr);
}

TEST(Bert, HasTheRegistrysNumberOfParameters) {
    EXPECT_EQ(parameters_of(*Bert(bert_kind, TransformerConfig())), find_model("bert").parameters);
    EXPECT_EQ(find_model("bert").parameters, 109'514'298);
    EXPECT_EQ(parameters_of(*Bert(distilbert_kind, TransformerConfig{.layers = 6})),
              find_model("distilbert").parameters);
    EXPECT_EQ(find_model("distilbert").parameters, 66'985'530);
}

TEST(Bert, StartsFromBertsDistribution) {
    torch::manual_seed(0);
    const auto state = Bert(bert_kind, TransformerConfig{.layers = 1})->named_parameters();
    EXPECT_NEAR(state["bert.embeddings.word_embeddings.weight"].std().item<double>(), 0.02, 1e-4);
    EXPECT_TRUE(state["bert.embeddings.word_embeddings.weight"][0].eq(0).all().item<bool>());
    EXPECT_NEAR(state["bert.encoder.layer.0.intermediate.dense.weight"].std().item<double>(), 0.02, 1e-4);
    EXPECT_TRUE(state["bert.encoder.layer.0.attention.self.query.bias"].eq(0).all().item<bool>());
    EXPECT_TRUE(state["cls.predictions.bias"].eq(0).all().item<bool>());
}

TEST(Bert, PredictsOnlyTheRowsAskedForAndDoesNotSeePadding) {
    torch::manual_seed(0);
    for (const BertKind* kind : {&bert_kind, &distilbert_kind}) {
        Bert network(*kind, narrow());
        network->eval();
        torch::Tensor ids = torch::randint(5, 50, {3, 10});
        torch::Tensor present = torch::ones({3, 10}, torch::kBool);
        present.index_put_({1, torch::indexing::Slice(6, 10)}, false);
        const torch::Tensor all = network(ids, torch::arange(30), present);
        const torch::Tensor rows = torch::tensor({2, 13, 13, 28});
        EXPECT_TRUE(torch::allclose(network(ids, rows, present), all.index_select(0, rows), 1e-5, 1e-6));
        ids.index_put_({1, torch::indexing::Slice(6, 10)}, 7);
        EXPECT_TRUE(torch::allclose(network(ids, rows, present), all.index_select(0, rows), 1e-5, 1e-6));
        EXPECT_FALSE(
            torch::allclose(network(ids, rows, torch::Tensor()), all.index_select(0, rows), 1e-3, 1e-4));
    }
}

TEST(Bert, DropsOutInTrainingOnly) {
    torch::manual_seed(0);
    Bert network(bert_kind, narrow());
    const torch::Tensor ids = torch::randint(5, 50, {2, 12});
    const auto twice_equal = [&] {
        return network(ids, torch::arange(24), torch::Tensor())
            .equal(network(ids, torch::arange(24), torch::Tensor()));
    };
    EXPECT_FALSE(twice_equal());
    network->eval();
    EXPECT_TRUE(twice_equal());
}

TEST(MaskedLanguage, LeavesFreeRowsOutOfLossAndAccuracy) {
    torch::manual_seed(0);
    const auto workload =
        workload_of("bert", {"hidden=16", "layers=1", "heads=2", "length=16", "positions=16",
                                  "vocabulary=30", "packed=false", "masked=0.3"});
    workload->module().eval();
    const Dataset& data = workload->training_data();
    std::vector<Sample> samples;
    for (std::uint32_t i = 0; i < data.size(); ++i) {
        samples.push_back(*data.load(i, 0));
    }
    Batch batch = data.collate(samples, false);
    const Outcome outcome = workload->forward(batch);
    const torch::Tensor used = batch.target.ge(0).nonzero().flatten();
    ASSERT_LT(used.numel(), batch.target.numel());
    EXPECT_EQ(outcome.quality_count.item<std::int64_t>(), used.numel());
    batch.inputs[1] = batch.inputs[1].index_select(0, used);
    batch.target = batch.target.index_select(0, used);
    const Outcome of_used = workload->forward(batch);
    EXPECT_NEAR(outcome.loss.item<double>(), of_used.loss.item<double>(), 1e-6);
    EXPECT_EQ(outcome.quality_sum.item<std::int64_t>(), of_used.quality_sum.item<std::int64_t>());
}

TEST(MaskedLanguage, CountsTheOperationsOfItsProducts) {
    // Per layer and sequence of 128: six products of [128, 768] with 12 x 768 columns in all, scores and
    // mixing of 128 x 128 each; for 19 predictions a [768, 768] product and one with the vocabulary. Forward,
    // twice that backward.
    const double layer = 2.0 * 128 * 768 * (12 * 768) + 2 * 2.0 * 128 * 128 * 768;
    const double head = 2.0 * 19 * 768 * (768 + 1000);
    const auto workload = workload_of("distilbert", {"layers=1", "vocabulary=1000"});
    EXPECT_DOUBLE_EQ(*workload->flops_per_sample(), 3 * (layer + head));
    EXPECT_DOUBLE_EQ(*workload_of("distilbert", {"layers=2", "vocabulary=1000"})->flops_per_sample(),
                     3 * (2 * layer + head));
}

TEST(MaskedLanguage, KnowsTheNamesOfPublishedWeights) {
    const auto workload = workload_of("bert", {"hidden=16", "layers=1", "heads=2", "vocabulary=30"});
    EXPECT_EQ(workload->weight_name("bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.weight");
    EXPECT_EQ(workload->weight_name("bert.embeddings.LayerNorm.beta"), "bert.embeddings.LayerNorm.bias");
    EXPECT_EQ(workload->weight_name("cls.predictions.bias"), "cls.predictions.bias");
    for (const char* other :
         {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "bert.pooler.dense.weight",
          "cls.seq_relationship.bias", "bert.embeddings.position_ids", "vocab_projector.weight"}) {
        EXPECT_EQ(workload->weight_name(other), "") << other;
    }
}

}  // namespace
}  // namespace joulemark::train

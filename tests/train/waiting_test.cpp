// SPDX-License-Identifier: Apache-2.0
// What forward and backward ask of libtorch, operation by operation: nothing that would wait for a GPU.
#include <map>
#include <set>

#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include "engine/registry.h"

namespace joulemark::train {
namespace {

using testing::IsEmpty;

/// The operations that run while it lives, on all threads, and how often each was called.
class Operations {
  public:
    Operations() {
        counts.clear();
        at::RecordFunctionCallback callback([](const at::RecordFunction& operation) {
            const std::lock_guard lock(mutex);
            ++counts[operation.name()];
            return std::unique_ptr<at::ObserverContext>();
        });
        handle_ = at::addGlobalCallback(callback.scopes({at::RecordScope::FUNCTION}));
    }
    ~Operations() { at::removeCallback(handle_); }
    Operations(const Operations&) = delete;
    Operations& operator=(const Operations&) = delete;

    /// Those whose result the host reads, or whose size depends on values: the host waits for the device.
    static std::vector<std::string> waiting() {
        static const std::set<std::string> all = {"aten::_local_scalar_dense",
                                                  "aten::bincount",
                                                  "aten::equal",
                                                  "aten::is_nonzero",
                                                  "aten::item",
                                                  "aten::nonzero",
                                                  "aten::masked_select",
                                                  "aten::repeat_interleave",
                                                  "aten::_unique2",
                                                  "aten::unique",
                                                  "aten::unique_consecutive"};
        std::vector<std::string> found;
        for (const auto& [name, count] : counts) {
            if (all.contains(name)) {
                found.push_back(name);
            }
        }
        return found;
    }

    static inline std::map<std::string, int> counts;

  private:
    static inline std::mutex mutex;
    at::CallbackHandle handle_;
};

/// Smallest settings of every model.
const std::map<std::string, std::vector<std::string>> small = {
    {"resnet50", {"--image-size", "32", "--set", "width=4", "--set", "blocks=1,1,1,1"}},
    {"vgg16", {"--image-size", "32", "--set", "width=2", "--set", "hidden=16"}},
    {"inception_v3", {"--image-size", "75", "--set", "narrow=32", "--set", "aux_logits=false"}},
    {"unet", {"--image-size", "32", "--set", "width=4", "--set", "depth=2"}},
    {"bert", {"--set", "layers=1", "--set", "hidden=8", "--set", "heads=2", "--set", "packed=false"}},
    {"distilbert", {"--set", "layers=1", "--set", "hidden=8", "--set", "heads=2"}},
    {"schnet", {"--set", "hidden=8", "--set", "filters=8"}},
    {"dimenet", {"--set", "hidden=8", "--set", "blocks=1"}},
    {"pna", {"--set", "hidden=10", "--set", "layers=1"}},
    {"nnconv", {"--set", "dim=4"}},
    {"fourcastnet",
     {"--set", "embed=16", "--set", "depth=1", "--set", "height=16", "--set", "width=32", "--set",
      "channels=2"}}};

class Update : public testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const Model& model : models()) {
        names.push_back(model.name);
    }
    return names;
}

TEST_P(Update, NeverWaitsForTheDevice) {
    const Model& model = find_model(GetParam());
    std::vector<std::string> words = {model.name, "--samples", "4", "--local-batch", "2"};
    words.insert(words.end(), small.at(model.name).begin(), small.at(model.name).end());
    const Options options = *parse_options(words, known_models(), 1);
    HyperParameters settings(options.settings);
    const auto workload = model.make(options, settings, nullptr);
    const Dataset& data = workload->training_data();
    const Batch batch = data.collate({*data.load(0, 0), *data.load(1, 0)}, false);

    const Operations operations;
    workload->forward(batch).loss.backward();
    EXPECT_THAT(Operations::waiting(), IsEmpty());
    EXPECT_GT(Operations::counts.size(), 20U);  // it has seen the update
}

INSTANTIATE_TEST_SUITE_P(Models, Update, testing::ValuesIn(names()),
                         [](const auto& model) { return model.param; });

TEST(Operations, SeesWhatWaits) {
    const torch::Tensor x = torch::ones({2});
    const Operations operations;
    x.sum().item<float>();
    x.index({x > 0});
    EXPECT_THAT(Operations::waiting(), testing::IsSupersetOf({"aten::item", "aten::nonzero"}));
}

}  // namespace
}  // namespace joulemark::train

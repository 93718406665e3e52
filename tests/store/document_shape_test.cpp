// SPDX-License-Identifier: Apache-2.0
#include "store/document_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulemark::store {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(DocumentShape, TakesOutWhatIsOfAnotherKind) {
    json document{{"run", "r"},
                  {"start_ns", 1.5},
                  {"warnings", {"said", 1, nullptr}},
                  {"devices", {1, {{"device", "gpu0"}, {"memory_bytes", "much"}}}},
                  {"controls", {{"power_cap_w", {{"gpu0", 1}, {"gpu1", {{"requested", 200}}}}}}},
                  {"anchor", json::array()},
                  {"unknown", json::array({1})}};
    EXPECT_THAT(keep_to_shape(document, run_shape()),
                ElementsAre("anchor", "controls.power_cap_w.gpu0", "devices[0]", "devices[1].memory_bytes",
                            "start_ns", "warnings[1]", "warnings[2]"));
    EXPECT_EQ(document, (json{{"run", "r"},
                              {"warnings", json::array({"said"})},
                              {"devices", json::parse(R"([{"device": "gpu0"}])")},
                              {"controls", {{"power_cap_w", {{"gpu1", {{"requested", 200}}}}}}},
                              {"unknown", json::array({1})}}));
}

TEST(DocumentShape, ANullIsNoDamage) {
    json document{{"signal", nullptr}, {"exit_status", 0}, {"meter", nullptr}, {"counters", nullptr}};
    EXPECT_THAT(keep_to_shape(document, end_shape()), IsEmpty());
    EXPECT_EQ(document, (json{{"signal", nullptr}, {"exit_status", 0}}));
}

}  // namespace
}  // namespace joulemark::store

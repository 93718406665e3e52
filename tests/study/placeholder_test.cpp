// SPDX-License-Identifier: Apache-2.0
#include "study/placeholder.h"

#include <gtest/gtest.h>

namespace joulemark::study {
namespace {

std::string shout(std::string_view text) {
    return fill(text, [](const std::string& name) { return "<" + name + ">"; });
}

TEST(Placeholder, OnlyNamesInBracesAreReplaced) {
    EXPECT_EQ(shout("{a}"), "<a>");
    EXPECT_EQ(shout("x{local_batch}y{b2}"), "x<local_batch>y<b2>");
    EXPECT_EQ(shout("{\"a\": {\"b\": {c}}}"), "{\"a\": {\"b\": <c>}}");
    for (const char* text : {"", "{", "}", "{}", "{A}", "${HOME}", "{a b}", "{a", "a}", "{{", "{2}"}) {
        EXPECT_EQ(shout(text), text);
    }
}

TEST(Placeholder, NamesComeInOrder) {
    EXPECT_EQ(placeholders("{b} {a} {B} {b}"), (std::vector<std::string>{"b", "a", "b"}));
}

}  // namespace
}  // namespace joulemark::study

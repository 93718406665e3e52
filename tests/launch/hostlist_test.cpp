// SPDX-License-Identifier: Apache-2.0
#include "launch/hostlist.h"

#include <gtest/gtest.h>

namespace joulemark::launch {
namespace {

using Hosts = std::vector<std::string>;

TEST(Hostlist, ExpandsWhatSlurmWrites) {
    EXPECT_EQ(expand_hostlist("gpu1"), Hosts{"gpu1"});
    EXPECT_EQ(expand_hostlist("gpu1,login"), (Hosts{"gpu1", "login"}));
    EXPECT_EQ(expand_hostlist("gpu[1-3]"), (Hosts{"gpu1", "gpu2", "gpu3"}));
    EXPECT_EQ(expand_hostlist("gpu[008-010,7],x"), (Hosts{"gpu008", "gpu009", "gpu010", "gpu7", "x"}));
    EXPECT_EQ(expand_hostlist("r[1-2]n[0-1]-ib"), (Hosts{"r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib"}));
}

TEST(Hostlist, GivesNothingForWhatIsNoList) {
    for (const char* text : {"", "a,", "a[", "a]", "a[]", "a[1-]", "a[3-1]", "a[1-2", "a[[1]]", "a[x]",
                             "a[-1]", "a[1-999999999]", "a[1-9999][1-9999]"}) {
        EXPECT_TRUE(expand_hostlist(text).empty()) << text;
    }
}

TEST(CountOnNode, ReadsRepeats) {
    EXPECT_EQ(count_on_node("8", 0), 8);
    EXPECT_EQ(count_on_node("4(x2),1", 0), 4);
    EXPECT_EQ(count_on_node("4(x2),1", 1), 4);
    EXPECT_EQ(count_on_node("4(x2),1", 2), 1);
    EXPECT_EQ(count_on_node("2,4(x3)", 3), 4);
}

TEST(CountOnNode, GivesNothingForWhatItCannotRead) {
    for (const char* text : {"", "x", "4(x", "4(x0)", "0", "-1", "4(y2)"}) {
        EXPECT_FALSE(count_on_node(text, 0)) << text;
    }
    EXPECT_FALSE(count_on_node("4(x2)", 2));
    EXPECT_FALSE(count_on_node("4", -1));
}

}  // namespace
}  // namespace joulemark::launch

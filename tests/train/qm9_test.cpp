// SPDX-License-Identifier: Apache-2.0
#include "data/qm9.h"

#include <fstream>

#include <gmock/gmock.h>

#include "temporary_folder.h"

namespace joulemark::train {
namespace {

/// Water in the data set's format; property i is i + 0.5, but for mu.
std::string water(const std::string& atoms = "3") {
    return atoms +
           "\ngdb 3\t0.5\t1.5\t2.5\t1.85\t4.5\t-5.5\t6.5\t7.5\t8.5\t9.5\t10.5\t11.5\t12.5\t13.5\t1.45*^1\t\n"
           "O\t-0.03\t0.97\t7.5*^-6\t-0.59\nH\t0.06\t0.02\t0.0\t0.29\nH\t0.87\t1.3\t-2.\t0.29\n"
           "1671.4\t3803.6\t3907.7\nO\tO\t\nInChI=1S/H2O/h1H2\tInChI=1S/H2O/h1H2\n";
}

TEST(Qm9, ReadsElementsPositionsAndProperties) {
    const auto molecule = parse_qm9(water(), "w.xyz");
    ASSERT_TRUE(molecule) << molecule.failure().reason;
    EXPECT_THAT(molecule->z, testing::ElementsAre(8, 1, 1));
    EXPECT_THAT(molecule->position, testing::ElementsAre(-0.03, 0.97, 7.5e-6, 0.06, 0.02, 0, 0.87, 1.3, -2));
    EXPECT_EQ(molecule->properties[qm9_targets[0].column], 1.85);
    EXPECT_EQ(molecule->properties[qm9_targets[11].column], 14.5);
    EXPECT_STREQ(qm9_targets[7].name, "U0");
    EXPECT_EQ(molecule->properties[qm9_targets[7].column], 10.5);
}

TEST(Qm9, NamesFileAndLineOfWhatIsWrong) {
    const auto reason = [](const std::string& text) {
        const auto molecule = parse_qm9(text, "dir/w.xyz");
        return molecule ? std::string("it was read") : molecule.failure().reason;
    };
    EXPECT_EQ(reason(water("4")), "dir/w.xyz line 6: only 3 atoms, though the first line says 4");
    EXPECT_EQ(reason(water("2")), "dir/w.xyz line 5: more atoms than the 2 that the first line says");
    EXPECT_EQ(reason(water("three")), "dir/w.xyz line 1: it must be the number of atoms");
    EXPECT_EQ(reason("1\ngdb 1 2 3\nH 0 0 0 0\n"),
              "dir/w.xyz line 2: it must be 'gdb', a number and 15 properties");
    std::string text = water();
    text.replace(text.find("O\t-0.03"), 1, "Q");
    EXPECT_EQ(reason(text), "dir/w.xyz line 3: 'Q' is none of the elements H, C, N, O, F");
    text = water();
    text.replace(text.find("7.5*^-6"), 7, "7.5*^x6");
    EXPECT_EQ(reason(text), "dir/w.xyz line 3: '7.5*^x6' is not a coordinate");
    text = water();
    text.replace(text.find("1.85"), 4, "mu00");
    EXPECT_EQ(reason(text), "dir/w.xyz line 2: 'mu00' is not a number");
    for (const char* beyond : {"1e300", "inf", "nan"}) {
        text = water();
        text.replace(text.find("1.85"), 4, beyond);
        EXPECT_EQ(reason(text), fmt::format("dir/w.xyz line 2: '{}' is not a number", beyond));
        text = water();
        text.replace(text.find("0.87"), 4, beyond);
        EXPECT_EQ(reason(text), fmt::format("dir/w.xyz line 5: '{}' is not a coordinate", beyond));
    }
    text = water();
    text.replace(text.find("0.87\t1.3\t-2."), 12, "0.06\t0.02\t0");
    EXPECT_EQ(reason(text), "dir/w.xyz line 5: atoms 2 and 3 are at the same place");
    EXPECT_THAT(reason(""), testing::HasSubstr("line 1"));
    EXPECT_THAT(reason(water().substr(0, 120)), testing::HasSubstr("dir/w.xyz line"));
}

TEST(Qm9, FindsTheFilesInOrder) {
    const TemporaryFolder folder;
    EXPECT_THROW(find_qm9_files(folder.path()), Error);
    EXPECT_THROW(find_qm9_files(folder.path() / "none"), Error);
    for (const char* name : {"dsgdb9nsd_000002.xyz", "readme.txt", "dsgdb9nsd_000001.xyz"}) {
        std::ofstream(folder.path() / name) << water();
    }
    EXPECT_THAT(find_qm9_files(folder.path()),
                testing::ElementsAre("dsgdb9nsd_000001.xyz", "dsgdb9nsd_000002.xyz"));
}

}  // namespace
}  // namespace joulemark::train

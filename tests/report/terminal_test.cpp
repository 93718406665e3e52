// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.h"

#include <cmath>

#include <gtest/gtest.h>

namespace joulemark::report {
namespace {

TEST(Terminal, TableAlignsByCharactersAndPutsNumbersRight) {
    Table table({"name", "η", "note"});
    table.add({"ä", "1.5", "x"});
    table.add({"long", "-"});
    EXPECT_EQ(table.text(),
              "name    η  note\n"
              "---------------\n"
              "ä     1.5  x\n"
              "long    -\n");
}

TEST(Terminal, SparklineShowsGapsAsBlanks) {
    const double values[] = {0, 1, std::nan(""), 7};
    EXPECT_EQ(sparkline(values, 10), "▁▂ █");
    EXPECT_EQ(sparkline({}, 10), "");
    const double flat[] = {3, 3};
    EXPECT_EQ(sparkline(flat, 2), "▅▅");
}

TEST(Terminal, AMeanAndItsIntervalAreRoundedAlike) {
    EXPECT_EQ(plus_minus_text(782357.3, 4868.2), "782357 ± 4868");
    EXPECT_EQ(plus_minus_text(12.3456, 0.0512), "12.346 ± 0.051");
    EXPECT_EQ(plus_minus_text(123.4, 4.001e-8), "123.40 ± <0.01");
    EXPECT_EQ(plus_minus_text(123.4, 0), "123.40 ± 0.00");
    EXPECT_EQ(plus_minus_text(0.0999999, 1.2e-7), "0.100000 ± <0.000001");
    EXPECT_EQ(plus_minus_text(4.2316e7, 2.0e5), "(4.232 ± 0.020)e+07");
    EXPECT_EQ(plus_minus_text(1.532e-7, 4e-9), "(1.532 ± 0.040)e-07");
    EXPECT_EQ(rounded_text(4.001e-8, 0.1234, 0.123), "0.00");
    EXPECT_EQ(rounded_text(0.1234, 0.1234, 0.0123), "0.123");
}

TEST(Terminal, LevelsHaveAsFewDigitsAsTellThemApart) {
    EXPECT_EQ(level_text(250.0), "250");
    EXPECT_EQ(level_text(0.5), "0.5");
    EXPECT_EQ(level_text(1281167), "1281167");
}

TEST(Terminal, QuantitiesAreShort) {
    EXPECT_EQ(energy_text(0.0123), "12.30 mJ");
    EXPECT_EQ(energy_text(7.2e6), "2.000 kWh");
    EXPECT_EQ(energy_text(std::nan("")), "-");
    EXPECT_EQ(energy_text(894.7 * 3600, 2008), "894.70 ± 0.56 Wh");
    EXPECT_EQ(energy_text(7.2e6, 36e3), "2.000 ± 0.010 kWh");
    EXPECT_EQ(energy_text(12, std::nan("")), "12.00 J");
    EXPECT_EQ(duration_text(7500), "2 h 05 min");
    EXPECT_EQ(duration_text(121.9), "2 min 01 s");
    EXPECT_EQ(number_text(12345.6), "12346");
    EXPECT_EQ(number_text(0.5), "0.500");
    EXPECT_EQ(number_text(0), "0.000");
}

}  // namespace
}  // namespace joulemark::report

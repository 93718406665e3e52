// SPDX-License-Identifier: Apache-2.0
#include "store/run_files.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/document_shape.h"
#include "temporary_folder.h"

namespace joulemark::store {
namespace {

using sensors::File;
using sensors::Metric;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view header =
    "time_ns,event,name,index,rank,samples,updates,tokens,loss,quality_name,quality,quality_direction,source,"
    "data\n";

TEST(SampleReader, PassesOverUnknownColumnsAndDamageAndATornEnd) {
    const TemporaryFolder folder;
    const auto path = folder.write("gpu.csv",
                                   "time_ns,read_ns,device,new_thing,power_w,energy_j\n"
                                   "100,5,gpu0,x,200.5,\n"
                                   "not,a,row\n"
                                   "110,5,gpu0,x,watts,\n"
                                   "-5,5,gpu0,x,1,\n"
                                   "120,5,,x,1,\n"
                                   "130,5,gpu1,x,,7000\n"
                                   "140,5,gpu1,x,inf,nan\n"
                                   "150,5,gpu0,x,99");
    SampleReader reader(path, File::gpu, no_limit);
    EXPECT_THAT(reader.metrics(), ElementsAre(Metric::gpu_power_w, Metric::gpu_energy_j));
    SampleRow row;
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(row.time_ns, 100);
    EXPECT_EQ(row.device, "gpu0");
    EXPECT_EQ(row.values[0], 200.5);
    EXPECT_TRUE(std::isnan(row.values[1]));
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(row.device, "gpu1");
    EXPECT_TRUE(std::isnan(row.values[0]));
    EXPECT_EQ(row.values[1], 7000);
    ASSERT_TRUE(reader.next(row));
    EXPECT_TRUE(std::isnan(row.values[0]) && std::isnan(row.values[1])) << "infinite power is a gap";
    EXPECT_FALSE(reader.next(row));
    ASSERT_TRUE(reader.damage());
    EXPECT_EQ(reader.damage()->text, "gpu.csv: 4 lines skipped that are no sample, the first is line 3");
}

TEST(SampleReader, FollowsAFileThatStillGrows) {
    const TemporaryFolder folder;
    const auto path = folder.write("cpu.csv", "time_ns,read_ns,device,power_w\n1,1,cpu0,10\n2,1,cpu0,2");
    SampleRow row;
    SampleReader before(path, File::cpu, no_limit);
    EXPECT_TRUE(before.next(row));
    EXPECT_FALSE(before.next(row));
    std::ofstream(path, std::ios::app) << "0\n";
    SampleReader after(path, File::cpu, no_limit);
    EXPECT_TRUE(after.next(row));
    ASSERT_TRUE(after.next(row));
    EXPECT_EQ(row.values[0], 20);
    EXPECT_FALSE(after.damage());
}

TEST(SampleReader, TakesAMissingOrEmptyFileAsNoSamples) {
    const TemporaryFolder folder;
    SampleRow row;
    EXPECT_FALSE(SampleReader(folder.path() / "gpu.csv", File::gpu, no_limit).next(row));
    EXPECT_FALSE(SampleReader(folder.write("node.csv", ""), File::node, no_limit).next(row));
}

TEST(SampleReader, ReadsBitMasksInHexadecimal) {
    const TemporaryFolder folder;
    SampleReader reader(folder.write("gpu.csv", "time_ns,read_ns,device,throttle_reasons\n1,1,gpu0,0x24\n"),
                        File::gpu, no_limit);
    SampleRow row;
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(row.values[0], 0x24);
}

TEST(ReadMarks, AddsTheRanksOfAHostAndWeighsLossBySamples) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks =
        read_marks(folder.write("regions.csv", std::string(header) +
                                                   "10,begin,epoch,0,0,,,,,,,,socket,\n"
                                                   "12,begin,epoch,0,1,,,,,,,,socket,\n"
                                                   "20,end,epoch,0,1,300,3,,2.0,top1,0.5,lower,socket,\n"
                                                   "18,end,epoch,0,0,100,1,,4.0,top1,0.1,lower,socket,\n"),
                   no_limit, warnings);
    ASSERT_THAT(marks.regions, SizeIs(1));
    const RegionRecord& epoch = marks.regions[0];
    EXPECT_EQ(epoch.start_ns, 10);
    EXPECT_EQ(epoch.end_ns, 20);
    EXPECT_EQ(epoch.ranks, 2);
    EXPECT_FALSE(epoch.open);
    EXPECT_EQ(epoch.samples, 400);
    EXPECT_EQ(epoch.updates, 4);
    EXPECT_EQ(epoch.tokens, std::nullopt);
    EXPECT_DOUBLE_EQ(*epoch.loss, 2.5);
    EXPECT_DOUBLE_EQ(*epoch.quality, 0.4);
    EXPECT_EQ(epoch.quality_direction, "lower");
    EXPECT_THAT(warnings, SizeIs(0));
}

TEST(ReadMarks, ARegionIsOpenUntilEveryRankEndsIt) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks =
        read_marks(folder.write("regions.csv", std::string(header) + "0,begin,epoch,0,0,,,,,,,,socket,\n"
                                                                     "0,begin,epoch,0,1,,,,,,,,socket,\n"
                                                                     "9,end,epoch,0,0,100,,,,,,,socket,\n"
                                                                     "9,end,eval,3,0,,,,,,,,socket,\n"),
                   no_limit, warnings);
    ASSERT_THAT(marks.regions, SizeIs(1));
    EXPECT_TRUE(marks.regions[0].open);
    EXPECT_EQ(marks.regions[0].start_ns, 0) << "time 0 is a time like any other";
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_THAT(warnings[0].text, HasSubstr("region eval 3 has an end and no begin"));
}

TEST(ReadMarks, AnAbortedRegionIsOpenAndHasAnEnd) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks =
        read_marks(folder.write("regions.csv", std::string(header) + "0,begin,epoch,0,0,,,,,,,,socket,\n"
                                                                     "0,begin,epoch,0,1,,,,,,,,socket,\n"
                                                                     "7,end,epoch,0,1,100,,,,,,,socket,\n"
                                                                     "9,abort,epoch,0,0,100,,,,,,,socket,\n"),
                   no_limit, warnings);
    ASSERT_THAT(marks.regions, SizeIs(1));
    EXPECT_TRUE(marks.regions[0].open);
    EXPECT_EQ(marks.regions[0].end_ns, 9);
    EXPECT_EQ(marks.regions[0].samples, 100) << "of the rank that ended it";
    EXPECT_THAT(warnings, SizeIs(0));
}

TEST(ReadMarks, AnIndexThatARankUsesAgainIsAnotherRegion) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks =
        read_marks(folder.write("regions.csv", std::string(header) + "0,begin,epoch,0,0,,,,,,,,socket,\n"
                                                                     "1,begin,epoch,0,1,,,,,,,,socket,\n"
                                                                     "8,end,epoch,0,0,100,,,,,,,socket,\n"
                                                                     "9,end,epoch,0,1,100,,,,,,,socket,\n"
                                                                     "10,begin,epoch,0,0,,,,,,,,socket,\n"
                                                                     "18,end,epoch,0,0,10,,,,,,,socket,\n"
                                                                     "19,begin,epoch,0,1,,,,,,,,socket,\n"
                                                                     "20,begin,epoch,0,0,,,,,,,,socket,\n"
                                                                     "28,end,epoch,0,0,1,,,,,,,socket,\n"
                                                                     "29,end,epoch,0,1,10,,,,,,,socket,\n"),
                   no_limit, warnings);
    ASSERT_THAT(marks.regions, SizeIs(3));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(marks.regions[i].index, static_cast<std::int64_t>(i));
        EXPECT_EQ(marks.regions[i].start_ns, static_cast<std::int64_t>(10 * i));
        EXPECT_FALSE(marks.regions[i].open);
    }
    EXPECT_EQ(marks.regions[0].samples, 200);
    EXPECT_EQ(marks.regions[1].samples, 20) << "the second time of both ranks";
    EXPECT_EQ(marks.regions[1].end_ns, 29);
    EXPECT_EQ(marks.regions[2].samples, 1);
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_EQ(warnings[0].code, "repeated_index");
}

TEST(ReadMarks, CountsBelowZeroAreLeftOutAndTold) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks = read_marks(
        folder.write("regions.csv", std::string(header) + "0,begin,epoch,0,0,,,,,,,,socket,\n"
                                                          "9,end,epoch,0,0,-100,-1,7,,,,,socket,\n"),
        no_limit, warnings);
    ASSERT_THAT(marks.regions, SizeIs(1));
    EXPECT_EQ(marks.regions[0].samples, std::nullopt);
    EXPECT_EQ(marks.regions[0].updates, std::nullopt);
    EXPECT_EQ(marks.regions[0].tokens, 7);
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_EQ(warnings[0].text, "2 counts of samples, updates or tokens below zero: left out");
}

TEST(ReadMarks, LaterConfigurationWinsAndNotesAreKept) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks =
        read_marks(folder.write("regions.csv",
                                std::string(header) +
                                    "1,config,,,0,,,,,,,,socket,\"{\"\"gpus\"\":2,\"\"a\"\":\"\"x,y\"\"}\"\n"
                                    "2,config,,,0,,,,,,,,socket,\"{\"\"gpus\"\":4}\"\n"
                                    "3,note,,,0,,,,,,,,socket,\"{\"\"skipped\"\":\"\"a.jpg\"\"}\"\n"
                                    "4,config,,,0,,,,,,,,socket,{broken\n"),
                   no_limit, warnings);
    EXPECT_EQ(marks.config, (nlohmann::json{{"gpus", 4}, {"a", "x,y"}}));
    EXPECT_THAT(marks.notes, SizeIs(1));
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_EQ(warnings[0].text, "regions.csv: 1 line skipped that is no mark, the first is line 5");
}

TEST(ReadMarks, AnEdgeOfAnImpossibleTimeIsNoMark) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    const Marks marks = read_marks(
        folder.write("regions.csv", std::string(header) + "10,begin,epoch,0,0,,,,,,,,socket,\n"
                                                          "9000000000000000000,end,epoch,0,0,,,,,,,,socket,\n"
                                                          "20,end,epoch,0,0,,,,,,,,socket,\n"
                                                          "40,begin,epoch,1,0,,,,,,,,socket,\n"
                                                          "30,end,epoch,1,0,,,,,,,,socket,\n"),
        1000, warnings);
    ASSERT_THAT(marks.regions, SizeIs(1));
    EXPECT_EQ(marks.regions[0].end_ns, 20);
    EXPECT_EQ(marks.rows, 5U);
    ASSERT_THAT(warnings, SizeIs(2));
    EXPECT_THAT(warnings[0].text, HasSubstr("1 line skipped that is no mark"));
    EXPECT_EQ(warnings[1].text, "region epoch 1 ends before it begins: left out");
}

TEST(ReadJson, TakesDamageAsMissingAndSaysSo) {
    const TemporaryFolder folder;
    std::vector<Warning> warnings;
    EXPECT_EQ(read_json(folder.path() / "run.json", run_shape(), warnings), std::nullopt);
    EXPECT_THAT(warnings, SizeIs(0));
    EXPECT_EQ(read_json(folder.write("run.json", "{\"run\": \"a\""), run_shape(), warnings), std::nullopt);
    EXPECT_EQ(read_json(folder.write("end.json", "[1]"), end_shape(), warnings), std::nullopt);
    EXPECT_THAT(warnings, SizeIs(2));
}

}  // namespace
}  // namespace joulemark::store

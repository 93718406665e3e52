// SPDX-License-Identifier: Apache-2.0
#include "store/merge.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "store/host_digest.h"
#include "store/load.h"
#include "store/schema.h"
#include "temporary_folder.h"

namespace joulemark::store {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

/// A results directory with the runs of the fixture.
struct Results : TemporaryFolder {
    Results() { fs::copy(JOULEMARK_FIXTURES "/store/runs", path() / "runs", fs::copy_options::recursive); }
    fs::path host(const char* run, const char* name = "node-a") const { return path() / "runs" / run / name; }
    fs::path database() const { return path() / database_file; }
};

/// All that the database holds, without its numbering and the files' times.
std::string content(const Database& database) {
    std::string text;
    for (const char* sql :
         {"SELECT run, status, simulated, expected_hosts, received_hosts, factors || config FROM runs ORDER "
          "BY 1",
          "SELECT run, host, run_json, end_json, hosts.config, 0 FROM runs JOIN hosts USING (run_id) ORDER "
          "BY "
          "1, 2",
          "SELECT run, host, region || region_index, device, energy_j, energy_bound_j FROM region_metrics "
          "ORDER BY 1, 2, 3, 4",
          "SELECT run, host, device || metric, time_ns, minimum, maximum FROM series_points ORDER BY 1, 2, "
          "3, 4",
          "SELECT host, code, text, 0, 0, 0 FROM warnings JOIN hosts USING (host_id) ORDER BY 1, 2, 3",
          "SELECT run, host, 0, 0, 0, 0 FROM missing_hosts ORDER BY 1, 2"}) {
        Statement rows = database.prepare(sql);
        while (rows.step()) {
            for (int column = 0; column < 6; ++column) {
                text += std::string(rows.text(column)) + '|';
            }
            text += '\n';
        }
    }
    return text;
}

std::string content_of(const fs::path& dir) {
    return content(merge(dir).database);
}

const RunRecord& run_named(const std::vector<RunRecord>& runs, std::string_view name) {
    return *std::ranges::find(runs, name, &RunRecord::run);
}

const RegionRecord& region_named(const HostRecord& host, std::string_view name, std::int64_t index = 0) {
    return *std::ranges::find_if(host.regions, [&](const RegionRecord& region) {
        return region.name == name && region.index == index;
    });
}

TEST(Merge, TwoHostsAndTheirRanks) {
    const Results results;
    const auto runs = load_runs(merge(results.path()).database);
    const RunRecord& pair = run_named(runs, "pair");
    EXPECT_EQ(pair.status, "ok");
    EXPECT_EQ(pair.factors, nlohmann::json::parse(
                                R"({"gpus":2,"power_cap_w":250,"local_batch":128,"workload":"resnet50"})"))
        << "the program's own words complete the factors; its seed does not tell configurations apart";
    EXPECT_EQ(pair.config["seed"], 1);
    ASSERT_EQ(pair.hosts.size(), 2u);
    const RegionRecord& epoch = region_named(pair.hosts[0], "epoch");
    EXPECT_EQ(epoch.duration_s(), 4);
    EXPECT_EQ(epoch.ranks, 2);
    EXPECT_EQ(epoch.samples, 1000);
    ASSERT_EQ(epoch.devices.size(), 2u);
    EXPECT_EQ(epoch.devices[0].device, "cpu0");
    EXPECT_DOUBLE_EQ(*epoch.devices[0].energy_j, 200);
    EXPECT_DOUBLE_EQ(*epoch.devices[1].energy_j, 800);
    EXPECT_DOUBLE_EQ(*epoch.devices[1].energy_integrated_j, 800);
    EXPECT_DOUBLE_EQ(*epoch.devices[1].gpu_memory_util_pct, 50);
    EXPECT_DOUBLE_EQ(*region_named(pair.hosts[0], "epoch", 1).quality, 0.3);
    EXPECT_DOUBLE_EQ(*region_named(pair.hosts[1], "joulemark.command").devices[0].energy_j, 1000);
    EXPECT_EQ(pair.hosts[0].run_json["allocation"]["job_id"], "17");
    EXPECT_EQ((*pair.hosts[0].end_json)["exit_status"], 0);
}

TEST(Merge, SaysHowEachRunEnded) {
    const Results results;
    const auto runs = load_runs(merge(results.path()).database);
    EXPECT_EQ(run_named(runs, "cut").status, "cut");
    EXPECT_EQ(run_named(runs, "half").status, "incomplete");
    EXPECT_THAT(run_named(runs, "half").expected_hosts, ElementsAre("node-a", "node-b"));
    EXPECT_EQ(run_named(runs, "simulated").status, "failed");
    EXPECT_TRUE(run_named(runs, "simulated").hosts[0].regions[0].devices[0].simulated);
}

TEST(Merge, ACutRunKeepsWhatItHas) {
    const Results results;
    const auto runs = load_runs(merge(results.path()).database);
    const HostRecord& host = run_named(runs, "cut").hosts[0];
    EXPECT_FALSE(host.end_json);
    EXPECT_FALSE(region_named(host, "epoch", 0).open);
    const RegionRecord& open = region_named(host, "epoch", 1);
    EXPECT_TRUE(open.open);
    EXPECT_EQ(open.end_ns, 1'007'005'000'000) << "the last sample";
    EXPECT_NEAR(*open.devices[0].energy_integrated_j, 450, 1e-6);
    EXPECT_TRUE(region_named(host, "joulemark.command").open);
}

TEST(Merge, ADamagedHostIsReadAsFarAsItGoes) {
    const Results results;
    const auto runs = load_runs(merge(results.path()).database);
    const HostRecord& host = run_named(runs, "damaged").hosts[0];
    std::vector<std::string> codes;
    for (const Warning& warning : host.warnings) {
        codes.push_back(warning.code);
    }
    EXPECT_THAT(codes, testing::UnorderedElementsAre("no_run_json", "damaged_file", "damaged_lines",
                                                     "end_without_begin", "damaged_lines", "out_of_order"));
    const RegionRecord& command = region_named(host, "joulemark.command");
    EXPECT_EQ(command.start_ns, 1'999'000'000'000) << "the first sample, where run.json is missing";
    EXPECT_DOUBLE_EQ(command.devices[0].covered_s, 6);
    EXPECT_DOUBLE_EQ(*command.devices[0].energy_j, 600);
}

TEST(Merge, IsIdempotentAndReadsOnlyWhatChanged) {
    const Results results;
    const std::string first = content_of(results.path());
    Merged again = merge(results.path());
    EXPECT_EQ(again.hosts_read, 0u);
    EXPECT_EQ(again.hosts_unchanged, 6u);
    EXPECT_EQ(content(again.database), first);
    std::ofstream(results.host("cut") / "gpu.csv", std::ios::app) << "\n1008000000000,1500,gpu0,150,80,,\n";
    Merged grown = merge(results.path());
    EXPECT_EQ(grown.hosts_read, 1u);
    EXPECT_EQ(region_named(load_run(grown.database, "cut").hosts[0], "epoch", 1).end_ns, 1'008'000'000'000);
}

TEST(Merge, DoesNotDependOnTheOrderOfArrival) {
    const Results all;
    const std::string expected = content_of(all.path());
    Results late;
    fs::create_directories(late.path() / "aside");
    for (const char* host : {"node-a", "node-b"}) {
        fs::rename(late.host("pair", host), late.path() / "aside" / host);
        content_of(late.path());
        fs::rename(late.path() / "aside" / host, late.host("pair", host));
        content_of(late.path());
    }
    EXPECT_EQ(content_of(late.path()), expected);
}

TEST(Merge, ForgetsWhatIsNoLongerThere) {
    const Results results;
    merge(results.path());
    fs::remove_all(results.path() / "runs" / "cut");
    fs::remove_all(results.host("pair", "node-b"));
    const Merged merged = merge(results.path());
    EXPECT_EQ(merged.hosts_removed, 2u);
    const auto runs = load_runs(merged.database);
    EXPECT_EQ(runs.size(), 4u);
    EXPECT_EQ(run_named(runs, "pair").status, "incomplete");
    EXPECT_EQ(merged.database.query_integer("SELECT count(*) FROM region_devices WHERE host_id NOT IN "
                                            "(SELECT host_id FROM hosts)"),
              0);
}

TEST(Merge, ADamagedDatabaseIsMadeAgain) {
    const Results results;
    const std::string expected = content_of(results.path());
    for (const bool header : {true, false}) {
        std::fstream file(results.database(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(header ? 0 : 4096);
        file << std::string(20'000, 'x');
        file.close();
        fs::last_write_time(results.host("cut") / "gpu.csv",
                            fs::file_time_type::clock::now());  // make it read
        const Merged merged = merge(results.path());
        EXPECT_THAT(merged.notes,
                    ElementsAre(HasSubstr("was damaged: it has been made again from the run files")));
        EXPECT_EQ(merged.hosts_read, 6u);
        EXPECT_THAT(merge(results.path()).notes, IsEmpty());
        EXPECT_EQ(load_runs(merge(results.path()).database).size(), 5u);
    }
    EXPECT_EQ(content_of(results.path()), expected);
}

TEST(Merge, ADatabaseOfAnotherVersionIsMadeAgain) {
    const Results results;
    merge(results.path()).database.execute("PRAGMA user_version = 99");
    const Merged merged = merge(results.path());
    EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("has schema version 99")));
    EXPECT_EQ(merge(results.path()).database.query_integer("PRAGMA user_version"), schema_version);
}

TEST(Merge, ADatabaseWithoutOneOfItsTablesOrWithBrokenContentIsMadeAgain) {
    const Results results;
    const std::string expected = content_of(results.path());
    merge(results.path()).database.execute("DROP TABLE warnings");
    EXPECT_THAT(merge(results.path()).notes, ElementsAre(HasSubstr("it has been made again")));
    EXPECT_EQ(content_of(results.path()), expected);

    merge(results.path()).database.execute("UPDATE hosts SET run_json = '{broken'");
    EXPECT_THROW(load_runs(merge(results.path()).database), DatabaseError) << "one sentence, and what to do";
}

TEST(Merge, ARunFolderWithNothingInItIsTold) {
    const Results results;
    fs::create_directories(results.path() / "runs" / "empty" / "node-a");
    const Merged merged = merge(results.path());
    EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("the first is empty")));
}

TEST(Merge, RowsThatTheMeterWroteAndNobodyFindsAreTold) {
    const Results results;
    const fs::path host = results.host("pair");
    std::ofstream(host / "end.json")
        << R"({"end_ns": 1, "exit_status": 0, "meter": {"rows": 1000, "lost": 10}})";
    const RunRecord run = load_run(merge(results.path()).database, "pair");
    EXPECT_THAT(
        run.hosts[0].warnings,
        Contains(Field(&Warning::text, HasSubstr("of the 990 rows that the meter wrote are missing"))));
}

TEST(Merge, ADirectoryThatCannotBeWrittenGetsATemporaryMerge) {
    const Results results;
    const std::string expected = content_of(results.path());
    fs::remove(results.database());
    fs::create_directory(results.database());  // nothing can be put in its place, not even by root
    Merged merged = merge(results.path());
    EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("the merge is a temporary one")));
    EXPECT_EQ(content(merged.database), expected);
    EXPECT_TRUE(fs::is_directory(results.database()));
}

TEST(Merge, WithoutLocksACopyIsRenamedIntoPlace) {
    const Results results;
    const std::string expected = content_of(results.path());
    fs::remove(results.database());
    MergeOptions options;
    options.avoid_locks = true;
    const Merged first = merge(results.path(), options);
    EXPECT_EQ(first.hosts_read, 6u);
    EXPECT_THAT(first.notes, IsEmpty());
    EXPECT_EQ(content(first.database), expected);
    EXPECT_EQ(merge(results.path(), options).hosts_read, 0u) << "it starts from the database that is there";
    EXPECT_EQ(merge(results.path()).hosts_read, 0u);
}

TEST(Merge, ProcessesMergeAtOnce) {
    const Results results;
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            try {
                _exit(load_runs(merge(results.path()).database).size() == 5 ? 0 : 1);
            } catch (...) {
                _exit(2);
            }
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    const Merged merged = merge(results.path());
    EXPECT_EQ(merged.hosts_read, 0u);
    EXPECT_EQ(merged.database.query_integer("SELECT count(*) FROM hosts"), 6);
}

TEST(Merge, AnUnreadableFileCostsOnlyItself) {
    const Results results;
    fs::remove(results.host("half") / "regions.csv");
    fs::create_directory(results.host("half") / "regions.csv");
    const RunRecord run = load_run(merge(results.path()).database, "half");
    ASSERT_EQ(run.hosts[0].warnings.size(), 1u);
    EXPECT_EQ(run.hosts[0].warnings[0].code, "unreadable_file");
    EXPECT_NEAR(*region_named(run.hosts[0], "joulemark.command").devices[0].energy_j, 599.25, 0.01);
}

TEST(Merge, AnUnknownSchemaIsTold) {
    const TemporaryFolder folder;
    folder.write("run.json", R"({"schema": 7, "run": "r", "host": "h"})");
    const auto& warnings = digest_host(folder.path(), "r", "h").record.warnings;
    EXPECT_EQ(std::ranges::count(warnings, "unknown_schema", &Warning::code), 1);
}

TEST(Merge, SaysWhatIsNoResultsDirectory) {
    const TemporaryFolder folder;
    const auto sentence = [](const fs::path& path) {
        try {
            merge(path);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_THAT(sentence(folder.path() / "nothing"), HasSubstr("there is no directory"));
    EXPECT_THAT(sentence(folder.write("file", "")), HasSubstr("there is no directory"));
    EXPECT_THAT(sentence(folder.path()), HasSubstr("has no folder runs"));
    EXPECT_FALSE(fs::exists(folder.path() / database_file));
}

TEST(Load, FindsARunByTheBeginningOfItsName) {
    const Results results;
    const Merged merged = merge(results.path());
    EXPECT_EQ(find_run(merged.database, "pair"), "pair");
    EXPECT_EQ(find_run(merged.database, "sim"), "simulated");
    EXPECT_THROW(find_run(merged.database, "none"), Error);
    fs::copy(results.path() / "runs" / "cut", results.path() / "runs" / "cut-2", fs::copy_options::recursive);
    const Merged more = merge(results.path());
    EXPECT_EQ(find_run(more.database, "cut"), "cut") << "a whole name is never ambiguous";
    EXPECT_THROW(find_run(more.database, "cu"), Error);
}

TEST(Load, SharesAreDisjointAndTogetherAllRuns) {
    const Results results;
    const Merged merged = merge(results.path());
    std::vector<std::string> names;
    for (unsigned number = 0; number < 3; ++number) {
        for_each_run(merged.database, [&](const RunRecord& run) { names.push_back(run.run); }, {number, 3});
    }
    std::ranges::sort(names);
    EXPECT_THAT(names, ElementsAre("cut", "damaged", "half", "pair", "simulated"));
}

TEST(Load, SeriesComeByRunAndMetric) {
    const Results results;
    const Merged merged = merge(results.path());
    const auto power = load_series(merged.database, "pair", "power_w");
    ASSERT_EQ(power.size(), 2u);
    EXPECT_EQ(power[0].host, "node-a");
    EXPECT_EQ(power[1].device, "gpu0");
    EXPECT_EQ(power[0].mean.size(), 13u);
    EXPECT_EQ(power[0].mean[5], 200);
    EXPECT_EQ(load_series(merged.database, "pair").size(), 9u);
}

}  // namespace
}  // namespace joulemark::store

// SPDX-License-Identifier: Apache-2.0
#include "meter/run_document.h"

#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "core/error.h"
#include "fakes.h"

namespace joulemark::meter {
namespace {

/// Variables of a launcher, as a lookup.
launch::Lookup variables(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

RunOptions options(std::string program = "/usr/bin/python3") {
    RunOptions options;
    options.command = {std::move(program), "train.py"};
    return options;
}

TEST(RunIdentity, IsNamedByProgramAndTime) {
    const auto lookup = variables({});
    const RunIdentity identity = identify(options(), launch::rank_environment(lookup), lookup);
    EXPECT_EQ(identity.name, "python3");
    EXPECT_TRUE(std::regex_match(identity.run, std::regex(R"(python3-\d{8}T\d{6}Z-\d+)"))) << identity.run;
    EXPECT_EQ(identity.expected_hosts, std::vector{identity.ranks.node});
}

TEST(RunIdentity, IsTheSameOnAllRanksOfAStep) {
    std::string first;
    for (int rank = 0; rank < 8; ++rank) {
        const auto lookup = variables({{"SLURM_JOB_ID", "77"},
                                       {"SLURM_STEP_ID", "3"},
                                       {"SLURM_PROCID", std::to_string(rank)},
                                       {"SLURM_STEP_NUM_TASKS", "8"},
                                       {"SLURM_LOCALID", std::to_string(rank % 4)},
                                       {"SLURM_STEP_NODELIST", "gpu[01-02]"},
                                       {"SLURM_JOB_NODELIST", "gpu[01-09]"},
                                       {"SLURMD_NODENAME", rank < 4 ? "gpu01" : "gpu02"}});
        const RunIdentity identity = identify(options(), launch::rank_environment(lookup), lookup);
        first = rank == 0 ? identity.run : first;
        EXPECT_EQ(identity.run, first);
        EXPECT_EQ(identity.expected_hosts, (std::vector<std::string>{"gpu01", "gpu02"}));
    }
    EXPECT_EQ(first, "python3-slurm-77.3");
}

TEST(RunIdentity, TellsTwoMpirunsOfOneJobApart) {
    const auto run = [](std::string mpirun) {
        const auto lookup = variables({{"SLURM_JOB_ID", "77"},
                                       {"OMPI_COMM_WORLD_RANK", "0"},
                                       {"OMPI_COMM_WORLD_SIZE", "2"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                       {"PMIX_NAMESPACE", std::move(mpirun)}});
        return identify(options(), launch::rank_environment(lookup), lookup).run;
    };
    EXPECT_EQ(run("123"), "python3-openmpi-77.123");
    EXPECT_NE(run("123"), run("124"));
}

TEST(RunIdentity, OfABatchScriptExpectsItsOwnNodeOnly) {
    const auto lookup = variables(
        {{"SLURM_JOB_ID", "77"}, {"SLURM_JOB_NODELIST", "gpu[01-09]"}, {"SLURMD_NODENAME", "gpu01"}});
    const RunIdentity identity = identify(options(), launch::rank_environment(lookup), lookup);
    EXPECT_EQ(identity.expected_hosts, std::vector<std::string>{"gpu01"});
}

TEST(RunIdentity, MakesAFileNameOfAnyName) {
    auto with_name = options();
    with_name.name = "../a b/c";
    const auto lookup = variables({});
    const RunIdentity identity = identify(with_name, launch::rank_environment(lookup), lookup);
    EXPECT_EQ(identity.name, "../a b/c");
    EXPECT_EQ(identity.run.find_first_of("/ "), std::string::npos);
    EXPECT_NE(identity.run.front(), '.');
}

TEST(RunIdentity, RefusesAnIdThatIsNoFileName) {
    for (const char* id : {"../x", "a/b", ".", "", "a b"}) {
        auto with_id = options();
        with_id.run_id = id;
        const auto lookup = variables({});
        if (*id == '\0') {
            EXPECT_NO_THROW(identify(with_id, launch::rank_environment(lookup), lookup));
        } else {
            EXPECT_THROW(identify(with_id, launch::rank_environment(lookup), lookup), Error) << id;
        }
    }
}

TEST(RunDocument, SaysWhatIsMeteredAndWhatIsNot) {
    sensors::Machine machine;
    machine.clock = std::make_shared<FakeClock>(0);
    machine.devices = {device("gpu0", "gpu")};
    machine.sources.push_back(std::make_unique<FakeSource>(
        source_info("nvml.energy", "gpu0", {sensors::Metric::gpu_energy_j}, true), [](std::span<double>) {}));
    sensors::SensorReport closed{};
    closed.name = "rapl package-0";
    closed.status = "unavailable";
    closed.reason = "root only";
    machine.reports = {closed};
    auto with_factors = options();
    with_factors.factors = {{"gpus", "4"}, {"lr", "1e-3"}, {"workload", "resnet50"}};
    with_factors.power_cap_w = 200;
    const auto lookup = variables({});
    const auto document =
        run_document(with_factors, identify(with_factors, launch::rank_environment(lookup), lookup), machine,
                     2, nlohmann::json::object());
    EXPECT_EQ(document["schema"], 1);
    EXPECT_EQ(document["factors"]["gpus"], 4);
    EXPECT_EQ(document["factors"]["lr"], 1e-3);
    EXPECT_EQ(document["factors"]["workload"], "resnet50");
    EXPECT_EQ(document["factors"]["power_cap_w"], 200);
    EXPECT_TRUE(document["study"].is_null());
    EXPECT_EQ(document["sources"][0]["metrics"][0], "energy_j");
    EXPECT_EQ(document["sources"][0]["period_s"], 0.5);
    EXPECT_TRUE(document["sources"][0]["accuracy_pct"].is_null());
    EXPECT_EQ(document["unavailable"][0]["reason"], "root only");
    EXPECT_EQ(document["devices"][0]["file"], "gpu.csv");
}

}  // namespace
}  // namespace joulemark::meter

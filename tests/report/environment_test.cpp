// SPDX-License-Identifier: Apache-2.0
#include "report/environment.h"

#include <gtest/gtest.h>

namespace joulemark::report {
namespace {

using nlohmann::json;

store::HostRecord host(const std::string& name, const char* uuid, const char* driver, double rate) {
    store::HostRecord record;
    record.host = name;
    record.run_json = json::parse(R"({
        "simulated": true, "software": {}, "devices": [{"device": "gpu0", "name": "V100", "index": 3}],
        "sources": [{"source": "nvml", "device": "gpu0"}, {"source": "rapl", "device": "cpu0"}]})");
    record.run_json["software"]["driver"] = driver;
    record.run_json["devices"][0]["uuid"] = uuid;
    record.end_json.emplace();
    (*record.end_json)["meter"]["achieved_hz"]["nvml"] = rate;
    return record;
}

TEST(Environment, HostsThatDifferInNameOnlyAreOneMachine) {
    store::RunRecord first, second;
    first.hosts = {host("n1", "GPU-1", "470", 9), host("n2", "GPU-2", "470", 10)};
    second.hosts = {host("n1", "GPU-1", "470", 11), host("n3", "GPU-3", "535", 10)};
    const json machines = environment({first, second}).at("machines");
    ASSERT_EQ(machines.size(), 2u);
    EXPECT_EQ(machines[0]["hosts"], json({"n1", "n2"}));
    EXPECT_EQ(machines[1]["hosts"], json({"n3"}));
    EXPECT_EQ(machines[0]["software"]["driver"], "470");
    EXPECT_EQ(machines[0]["devices"], json::parse(R"([{"device":"gpu0","name":"V100"}])"));
    EXPECT_EQ(machines[0]["sources"][0].value("achieved_hz", 0.0), 10);
    EXPECT_FALSE(machines[0]["sources"][1].contains("achieved_hz"));
}

TEST(Environment, ACutHostWithAnEmptyFileIsAMachineOfWhichNothingIsKnown) {
    store::RunRecord run;
    run.hosts = {{.host = "n1", .run_json = json::object()}};
    const json machines = environment({run}).at("machines");
    ASSERT_EQ(machines.size(), 1u);
    EXPECT_EQ(machines[0]["hosts"], json({"n1"}));
    EXPECT_TRUE(machines[0]["sources"].empty());
    EXPECT_TRUE(environment({}).at("machines").empty());
}

}  // namespace
}  // namespace joulemark::report

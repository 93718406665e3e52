// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"
#include "schema_check.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

json schema() {
    std::ifstream file("docs/analyze.schema.json");
    return json::parse(file);
}

/// Metered, imported, cut, incomplete and sensorless runs; laws with and without a form.
Model varied_model() {
    std::vector<store::RunRecord> records;
    for (const int gpus : {1, 2, 4, 8, 16, 32}) {
        for (int repeat = 0; repeat < 2; ++repeat) {
            auto record = run_record("scale" + std::to_string(gpus) + "-" + std::to_string(repeat),
                                     {{"workload", "resnet50"}, {"gpus", gpus}, {"local_batch", 64}},
                                     300 * std::pow(gpus, -0.9) + 3 + 0.01 * repeat, gpus);
            record.hosts[0].regions.back().quality = 0.3;
            record.hosts[0].regions.back().quality_name = "top1_error";
            record.hosts[0].regions.back().quality_direction = "lower";
            records.push_back(std::move(record));
        }
    }
    for (const int cap : {150, 250}) {
        records.push_back(
            run_record("cap" + std::to_string(cap), {{"workload", "bert"}, {"power_cap_w", cap}}, 10));
    }
    records.push_back(run_record("cut", {{"workload", "bert"}}, 10));
    records.back().status = "cut";
    records.back().hosts[0].end_json.reset();
    records.back().hosts[0].regions.back().open = true;
    records.push_back(run_record("incomplete", {{"workload", "bert"}}, 10));
    records.back().status = "incomplete";
    records.back().expected_hosts = {"node0", "node1"};
    records.push_back(run_record("bare", {{"workload", "vgg16"}}, 10, 0));
    for (auto& region : records.back().hosts[0].regions) {
        region.devices.clear();
    }
    for (int row = 1; row <= 4; ++row) {
        records.push_back(
            imported_record("row" + std::to_string(row),
                            {{"series", "s"}, {"gpus", row}, {"epochs", 2}, {"dataset_samples", 100 * row}},
                            {{"energy_j", 3.6e6 * row}, {"gpu_hours", 4.0 * row + 0.1 * (row % 2)}}));
    }
    return analyze(records);
}

TEST(AnalyzeJson, FollowsItsSchema) {
    const json document = to_json(varied_model());
    for (const char* key : {"runs", "configurations", "laws", "scaling", "energy_per_gpu_hour",
                            "energy_per_sample", "regions", "coverage", "warnings"}) {
        EXPECT_FALSE(document[key].empty()) << key << " is not exercised";
    }
    // What a script reads is text: the check is on what comes back from it.
    const auto violations = SchemaCheck(schema()).violations(json::parse(document.dump()));
    EXPECT_TRUE(violations.empty()) << violations.front();
}

TEST(AnalyzeJson, WrittenPieceByPieceItIsTheSameDocument) {
    const Model model = varied_model();
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* file = open_memstream(&text, &size);
    write_json(model, file);
    std::fclose(file);
    EXPECT_EQ(json::parse(std::string(text, size)), json::parse(to_json(model).dump()));
    std::free(text);
}

TEST(AnalyzeJson, AnEmptyDirectoryIsAValidDocument) {
    const auto violations =
        SchemaCheck(schema()).violations(to_json(analyze(std::vector<store::RunRecord>{})));
    EXPECT_TRUE(violations.empty()) << violations.front();
}

TEST(AnalyzeJson, TheSchemaNoticesWhatIsWrong) {
    const json good = to_json(varied_model());
    SchemaCheck check(schema());
    const auto broken = [&](const std::string& pointer, const json& value) {
        json document = good;
        document[json::json_pointer(pointer)] = value;
        return check.violations(document).size();
    };
    EXPECT_EQ(broken("/runs/0/status", "fine"), 1u);
    EXPECT_EQ(broken("/runs/0/energy_j", "12 J"), 1u);
    EXPECT_EQ(broken("/laws/0/selekted", true), 1u);
    EXPECT_EQ(broken("/configurations/0/epoch_time_s/ci95", json{1}), 1u);
    json document = good;
    document.erase("warnings");
    document["runs"][0].erase("gpu_hours");
    EXPECT_EQ(check.violations(document).size(), 2u);
}

TEST(AnalyzeJson, AbsentIsNullAndNeverZero) {
    const json document = to_json(varied_model());
    const auto run = std::ranges::find_if(document["runs"], [](const json& r) { return r["run"] == "bare"; });
    for (const char* key :
         {"energy_j", "energy_counter_j", "gpu_hours", "mean_power_w", "joule_per_sample"}) {
        EXPECT_TRUE((*run)[key].is_null()) << key;
    }
}

}  // namespace
}  // namespace joulemark::analysis

// SPDX-License-Identifier: Apache-2.0
#include "study/expectation.h"

#include <gtest/gtest.h>

#include "study/dry_run.h"
#include "study/ledger.h"

namespace joulemark::study {
namespace {

Study parse_model_study(const std::string& lines) {
    return parse_study(
        "study: s\norder: as-listed\nlauncher: mpirun\nworkload: {model: resnet50, epochs: 3}\n" + lines,
        "s.yaml");
}

TEST(Expectation, IsUnknownWithoutAnExpectBlock) {
    const Study study = parse_model_study("factors: {gpus: [2]}\n");
    const Expected expected = expect(plan(study, {}).front());
    EXPECT_FALSE(expected.gpu_hours);
    EXPECT_FALSE(expected.energy_kwh);
}

TEST(Expectation, FollowsThePowerLawAndTheLevelsFactors) {
    const Study study = parse_model_study(
        "factors: {gpus: [8], power_cap_w: [100, 250]}\n"
        "expect: {epoch_time_s: 1200, gpus: 2, gpu_exponent: -0.5, kwh_per_gpu_hour: 0.2,\n"
        "  relative_time: {power_cap_w: {100: 2}}, relative_power: {power_cap_w: {100: 0.5}},\n"
        "  source: s}\n");
    const auto runs = plan(study, {});
    // 8 GPUs, 3 epochs of 1200 s x (8/2)^-0.5: 4 h; at 100 W twice as long.
    EXPECT_DOUBLE_EQ(expect(runs[0]).gpu_hours.value(), 8.0);
    EXPECT_DOUBLE_EQ(expect(runs[0]).energy_kwh->high, 0.8);
    EXPECT_DOUBLE_EQ(expect(runs[1]).gpu_hours.value(), 4.0);
    EXPECT_DOUBLE_EQ(expect(runs[1]).energy_kwh->low, 0.8);
}

TEST(Expectation, TakesListedHoursFirstAndPublishedEnergyByModelAndAccelerator) {
    const Study study = parse_model_study(
        "factors: {gpus: [1, 2, 4]}\n"
        "expect: {gpu_hours: {1: 10, 2: 20}, accelerator: A100, source: s}\n");
    const auto runs = plan(study, {});
    EXPECT_DOUBLE_EQ(expect(runs[1]).gpu_hours.value(), 20);
    EXPECT_DOUBLE_EQ(expect(runs[1]).energy_kwh->low, 5.4);
    EXPECT_DOUBLE_EQ(expect(runs[1]).energy_kwh->high, 6.2);
    EXPECT_NE(expect(runs[1]).energy_source.find("Huber"), std::string::npos);
    EXPECT_FALSE(expect(runs[2]).gpu_hours);
}

TEST(Expectation, APowerCapIsABoundAndSaysSo) {
    const Study study =
        parse_model_study("factors: {gpus: [2], power_cap_w: [200]}\nexpect: {gpu_hours: {2: 10}, source: s}\n");
    const auto runs = plan(study, {});
    const Expected expected = expect(runs.front());
    EXPECT_TRUE(expected.energy_is_bound);
    EXPECT_DOUBLE_EQ(expected.energy_kwh->high, 2);
    EXPECT_FALSE(Ledger().estimate(runs.front())) << "a bound is no estimate";
}

TEST(Ledger, EstimatesFromRepeatsThenTheStudyThenAllRuns) {
    const Study study = parse_model_study("repeats: 2\nfactors: {gpus: [1, 2]}\n");
    const auto runs = plan(study, {});  // g1 r1, g2 r1, g1 r2, g2 r2
    Ledger ledger;
    EXPECT_FALSE(ledger.estimate(runs[0]));
    ledger.add(runs[0], Used{100}, 5);
    EXPECT_DOUBLE_EQ(ledger.estimate(runs[1])->energy_j, 100);
    ledger.add(runs[1], Used{300, false}, 7);
    EXPECT_DOUBLE_EQ(ledger.estimate(runs[2])->energy_j, 100);
    EXPECT_DOUBLE_EQ(ledger.estimate(runs[3])->energy_j, 300);
    EXPECT_DOUBLE_EQ(ledger.wall_s(runs[3]).value(), 7);
    ledger.spend(Used{50});
    EXPECT_DOUBLE_EQ(ledger.used().energy_j, 450);
    EXPECT_EQ(text(ledger.used()), "at least 450.0 J");
    EXPECT_DOUBLE_EQ(ledger.estimate(runs[2])->energy_j, 100) << "a failed attempt is no measure";
}

TEST(DryRun, TotalsLeaveOutWhatIsUnknownAndSkipped) {
    const Study study = parse_model_study(
        "factors: {gpus: [1, 2, 3], global_batch: [4]}\n"
        "expect: {gpu_hours: {1: 10}, accelerator: A100, source: s}\n");
    const auto json = dry_run_json(study, plan(study, {}), {}, {});
    EXPECT_EQ(json["totals"]["runs"], 3);
    EXPECT_EQ(json["totals"]["skipped"], 1);
    EXPECT_EQ(json["totals"]["gpu_hours"], 10);
    EXPECT_EQ(json["totals"]["runs_without_gpu_hours"], 1);
    EXPECT_TRUE(json["runs"][1]["gpu_hours"].is_null());
    EXPECT_EQ(json["runs"][2]["skipped"], "global_batch 4 is not divisible by 3 GPUs");
}

TEST(DryRun, BudgetsNeedAUnit) {
    EXPECT_DOUBLE_EQ(parse_energy_j("40kWh").value(), 40 * 3.6e6);
    EXPECT_DOUBLE_EQ(parse_energy_j("1.5 MJ").value(), 1.5e6);
    EXPECT_DOUBLE_EQ(parse_energy_j("2Wh").value(), 7200);
    for (const char* text : {"", "40", "kWh", "-1kWh", "0J", "nankWh", "1e300kWh", "4 0kWh", "40kwh"}) {
        EXPECT_FALSE(parse_energy_j(text)) << text;
    }
}

class Shipped : public testing::TestWithParam<std::string> {};

TEST_P(Shipped, StudiesAreValidAndListTheirGpuHours) {
    const Study study = read_study(std::string("studies/") + GetParam());
    for (const PlannedRun& run : plan(study, {})) {
        EXPECT_EQ(run.skipped, "") << run.id;
        EXPECT_TRUE(expect(run).gpu_hours) << run.id;
    }
}

INSTANTIATE_TEST_SUITE_P(DryRun, Shipped,
                         testing::Values("quick.yaml", "simulated-v100.yaml", "frey2022.yaml",
                                         "huber2025.yaml"));

}  // namespace
}  // namespace joulemark::study

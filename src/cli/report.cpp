// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "analysis/analyze.h"
#include "analysis/metrics.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "core/files.h"
#include "report/environment.h"
#include "report/html.h"
#include "store/load.h"

namespace joulemark::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Traces are for reading runs, not for keeping them: beyond these the file would no longer open with ease.
constexpr std::size_t most_bins = 4'000'000, most_regions = 50'000;

json study_of(const fs::path& dir) {
    const auto text = files::read(dir / "study.json");
    const json study = text ? json::parse(*text, nullptr, false) : json();
    return study.is_discarded() ? json() : study;
}

/// The series of run after run, until they would fill the file; what is left out is told.
std::vector<store::Series> traces_of(const store::Database& database,
                                     const std::vector<store::RunRecord>& runs, json& omitted) {
    std::vector<store::Series> traces;
    std::size_t bins = 0, kept = 0;
    for (const store::RunRecord& run : runs) {
        std::vector<store::Series> series = store::load_series(database, run.run);
        for (const store::Series& one : series) {
            bins += one.time_ns.size();
        }
        if (bins > most_bins) {
            omitted.push_back({{"what", fmt::format("the traces of {} runs", runs.size() - kept)},
                               {"reason", "the file would be too large; they are in the results directory"}});
            break;
        }
        ++kept;
        std::move(series.begin(), series.end(), std::back_inserter(traces));
    }
    return traces;
}

std::vector<analysis::RunMetrics> metrics_of(const std::vector<store::RunRecord>& records,
                                             const std::optional<analysis::CarbonIntensity>& intensity,
                                             std::optional<double> price) {
    std::vector<analysis::RunMetrics> runs;
    for (const store::RunRecord& record : records) {
        runs.push_back(analysis::run_metrics(record));
    }
    analysis::add_footprint(runs, intensity, price);
    return runs;
}

void limit_regions(json& analysis, json& omitted) {
    json& regions = analysis["regions"];
    if (regions.size() > most_regions) {
        omitted.push_back(
            {{"what", fmt::format("{} of {} regions", regions.size() - most_regions, regions.size())},
             {"reason", "the file would be too large; joulemark analyze --json gives all"}});
        regions.erase(regions.begin() + most_regions, regions.end());
    }
}

}  // namespace

int report_command(const Arguments& arguments) {
    CLI::App app(
        "Writes one self-contained HTML file: tables, figures, laws, traces, and what was not measured.",
        "report");
    app.footer("Example: joulemark report results -f report.html");
    fs::path dir;
    bool quiet = false;
    fs::path file = "report.html";
    app.add_option("DIR", dir, "results directory")->required();
    app.add_option("-f,--file", file, "the file to write")->capture_default_str();
    std::string carbon;
    std::optional<double> price;
    add_footprint_options(app, carbon, price);
    add_quiet(app, quiet);
    if (!parse(app, arguments)) {
        return 0;
    }

    const auto page = report::page();
    if (!page) {
        throw environment_error(
            "this joulemark was built without the HTML report: build it with "
            "-DJOULEMARK_WEB=ON, or use joulemark analyze");
    }
    if (fs::is_directory(file) || !fs::is_directory(fs::absolute(file).parent_path())) {
        throw bad_input("the report cannot be written to {}: name a file in a folder that exists",
                        file.string());
    }
    const auto intensity = intensity_of(carbon);
    const store::Merged merged = open_results(dir, quiet);
    const std::vector<store::RunRecord> runs = store::load_runs(merged.database);

    json omitted = json::array();
    report::Model model;
    model.analysis = analysis::to_json(analysis::analyze(metrics_of(runs, intensity, price)));
    limit_regions(model.analysis, omitted);
    model.study = study_of(dir);
    model.environment = report::environment(runs);
    model.traces = traces_of(merged.database, runs, omitted);
    model.generated = {{"version", JOULEMARK_VERSION},
                       {"at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                       {"command", fmt::format("joulemark report {} -f {}", dir.string(), file.string())},
                       {"source", fs::weakly_canonical(dir).filename().string()},
                       {"omitted", std::move(omitted)}};
    files::write_atomically(file, report::html(model, *page));
    fmt::print("{}\n", file.string());
    return 0;
}

}  // namespace joulemark::cli

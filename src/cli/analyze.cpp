// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyze.h"

#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "analysis/load_metrics.h"
#include "cli/analyze_tables.h"
#include "cli/commands.h"
#include "cli/results.h"

namespace joulemark::cli {

int analyze_command(const Arguments& arguments) {
    CLI::App app{
        "Metrics per run and configuration, laws with 95 % intervals, energy per GPU hour, warnings. Tables "
        "go to stdout, notes about reading DIR to stderr.",
        "analyze"};
    std::string dir;
    std::string carbon;
    std::optional<double> price;
    bool as_json = false, quiet = false;
    app.add_option("DIR", dir, "Results directory")->required();
    app.add_flag("--json", as_json,
                 "One JSON document on stdout and nothing else (docs/analyze.schema.json)");
    add_footprint_options(app, carbon, price);
    add_quiet(app, quiet);
    app.footer("Example: joulemark analyze joulemark-results --json | jq '.laws[] | select(.selected)'");
    if (!parse(app, arguments)) {
        return 0;
    }
    const auto intensity = intensity_of(carbon);
    const store::Merged merged = open_results(dir, quiet);
    std::vector<analysis::RunMetrics> runs = analysis::load_metrics(merged.database);
    analysis::add_footprint(runs, intensity, price);
    const analysis::Model model = analysis::analyze(std::move(runs));
    if (as_json) {
        analysis::write_json(model, stdout);
    } else {
        fmt::print("{}", analysis_text(model));
    }
    return 0;
}

}  // namespace joulemark::cli

// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyze.h"

#include <cstdio>

#include <fmt/format.h>

#include "analysis/metrics.h"
#include "cli/analyze_tables.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "store/load.h"

namespace joulemark::cli {

int analyze_command(const Arguments& arguments) {
    CLI::App app{"Metrics per run and configuration, laws with 95 % intervals, energy per GPU hour, warnings. Tables "
                 "go to stdout, notes about reading DIR to stderr.",
                 "analyze"};
    std::string dir;
    bool as_json = false;
    app.add_option("DIR", dir, "Results directory")->required();
    app.add_flag("--json", as_json, "One JSON document on stdout and nothing else (docs/analyze.schema.json)");
    app.footer("Example: joulemark analyze joulemark-results --json | jq '.laws[] | select(.selected)'");
    if (!parse(app, arguments)) {
        return 0;
    }
    const store::Merged merged = open_results(dir);
    std::vector<analysis::RunMetrics> runs;
    store::for_each_run(merged.database,
                        [&](store::RunRecord&& record) { runs.push_back(analysis::run_metrics(record)); });
    const analysis::Model model = analysis::analyze(std::move(runs));
    if (as_json) {
        fmt::print("{}\n", analysis::to_json(model).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        fmt::print("{}", analysis_text(model));
    }
    return 0;
}

}  // namespace joulemark::cli

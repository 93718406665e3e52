// SPDX-License-Identifier: Apache-2.0
#include "store/export.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/results.h"
#include "core/streams.h"

namespace joulemark::cli {

int export_command(const Arguments& arguments) {
    CLI::App app{
        "Writes the time series of every device, and a table of epochs and one of runs, in open formats.",
        "export"};
    std::string dir, out, format = "csv";
    bool quiet = false;
    app.add_option("DIR", dir, "Results directory")->required();
    app.add_option("--format", format, "csv or jsonl")
        ->check(CLI::IsMember({"csv", "jsonl"}))
        ->capture_default_str();
    app.add_option("-d,--directory", out, "Where to write (default: DIR/export)");
    add_quiet(app, quiet);
    app.footer("Example: joulemark export joulemark-results --format csv -d tables");
    if (!parse(app, arguments)) {
        return 0;
    }
    const std::filesystem::path target =
        out.empty() ? std::filesystem::path(dir) / "export" : std::filesystem::path(out);
    const store::Merged merged = open_results(dir, quiet);
    store::export_results(dir, merged.database,
                          format == "csv" ? store::ExportFormat::csv : store::ExportFormat::jsonl, target);
    if (!quiet) {
        say(fmt::format("wrote timeseries, epochs and runs as {} to {}", format, target.string()));
    }
    return 0;
}

}  // namespace joulemark::cli

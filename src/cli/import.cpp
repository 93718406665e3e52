// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/results.h"
#include "core/error.h"
#include "core/streams.h"
#include "store/import/nvidia_smi.h"
#include "store/import/sample_folder.h"
#include "store/import/table.h"

namespace joulemark::cli {
namespace {

namespace fs = std::filesystem;
using store::imports::Imported;
using store::imports::Pairs;

Imported import_one(const fs::path& path, const Pairs& map, const Pairs& set, const fs::path& results) {
    if (std::error_code error; !fs::exists(path, error)) {
        throw error ? bad_input("cannot read {}: {}", path.string(), error.message())
                    : bad_input("there is no {}", path.string());
    }
    if (fs::is_directory(path)) {
        if (!store::imports::is_sample_folder(path)) {
            throw bad_input(
                "{} is a folder without fast.csv, slow.csv and marks.csv; name the files to import",
                path.string());
        }
        return store::imports::import_sample_folder(path, set, results);
    }
    if (map.empty() && store::imports::is_nvidia_smi_log(path)) {
        return store::imports::import_nvidia_smi(path, set, results);
    }
    return store::imports::import_table(path, map, set, results);
}

}  // namespace

int import_command(const Arguments& arguments) {
    CLI::App app{
        "Makes runs of what other tools measured: a CSV table with a row per run, an nvidia-smi log, or a "
        "folder with fast.csv, slow.csv and marks.csv. Importing twice changes nothing.",
        "import"};
    std::vector<std::string> paths, map, set;
    std::string out;
    app.add_option("FILE", paths, "Tables, logs, folders")->required();
    app.add_option("-o,--output", out, "Results directory to add the runs to")->required();
    app.add_option("--map", map,
                   "FIELD=COLUMN[,FIELD=COLUMN...]: what a table's columns mean (default: by their names)");
    app.add_option("--set", set, "FIELD=VALUE[,...]: constants of all rows");
    bool quiet = false;
    add_quiet(app, quiet);
    app.footer(
        fmt::format("Fields: {}\n"
                    "component: what an energy is of, as gpu or cpu+dram+gpu; repeats: a row is the mean of so many "
                    "runs, whose standard deviation is in the fields _sd.\n"
                    "Example: joulemark import means.csv -o study --map "
                    "gpus=n,energy_kwh=kwh,gpu_hours=hours --set epochs=100",
                    store::imports::all_field_names()));
    if (!parse(app, arguments)) {
        return 0;
    }
    const Pairs mapped = store::imports::parse_pairs(map, "--map");
    const Pairs constants = store::imports::parse_pairs(set, "--set");
    std::size_t runs = 0;
    for (const std::string& path : paths) {
        const Imported imported = import_one(path, mapped, constants, out);
        runs += imported.runs.size();
        for (const std::string& note : imported.notes) {
            if (!quiet) {
                say(fmt::format("note: {}", note));
            }
        }
    }
    if (!quiet) {
        say(fmt::format("{} run{} imported into {}", runs, runs == 1 ? "" : "s", out));
    }
    return 0;
}

}  // namespace joulemark::cli

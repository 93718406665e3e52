// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "sim/commands.h"

int main(int argc, char** argv) {
    using namespace joulemark;
    CLI::App app("Simulated GPUs: what to measure on a machine without any, with the truth known",
                 "joulemark-sim");
    app.require_subcommand(1);
    sim::add_create(app);
    sim::add_train(app);
    sim::add_work(app);
    sim::add_bursts(app);
    sim::add_show(app);
    try {
        app.parse(argc, argv);
        return 0;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            return app.exit(error);  // --help
        }
        fmt::print(stderr, "joulemark-sim: {}; see `joulemark-sim --help`\n", error.what());
        return static_cast<int>(ExitCode::bad_input);
    } catch (const Error& error) {
        fmt::print(stderr, "joulemark-sim: {}\n", error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        fmt::print(stderr, "joulemark-sim: {}\n", error.what());
        return static_cast<int>(ExitCode::environment);
    }
}

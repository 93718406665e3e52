// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "core/streams.h"
#include "sim/commands.h"

int main(int argc, char** argv) {
    using namespace joulemark;
    open_standard_streams();
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
        say(fmt::format("joulemark-sim: {}; see `joulemark-sim --help`", error.what()));
        return static_cast<int>(ExitCode::bad_input);
    } catch (const Error& error) {
        say(fmt::format("joulemark-sim: {}", error.what()));
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        say(fmt::format("joulemark-sim: {}", error.what()));
        return static_cast<int>(ExitCode::environment);
    }
}

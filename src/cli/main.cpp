// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/streams.h"

namespace joulemark::cli {
namespace {

void print_help() {
    fmt::print(
        "Joulemark measures what deep-learning training costs in time, hardware and energy.\n\n"
        "Usage: joulemark COMMAND [OPTIONS]\n\nCommands:\n");
    for (const Command& command : commands) {
        fmt::print("  {:<10} {}\n", command.name, command.summary);
    }
    fmt::print("\n`joulemark COMMAND --help` explains one. A first run: joulemark run -- python train.py\n");
}

Arguments split(std::span<char*> words) {
    Arguments arguments;
    for (const std::string word : words) {
        if (arguments.has_separator) {
            arguments.child.push_back(word);
        } else if (word == "--") {
            arguments.has_separator = true;
        } else {
            arguments.options.push_back(word);
        }
    }
    return arguments;
}

int dispatch(std::span<char*> words) {
    const std::string_view name = words.empty() ? "--help" : words.front();
    if (name == "--help" || name == "-h" || name == "help") {
        print_help();
        return 0;
    }
    if (name == "--version") {
        fmt::print("joulemark {}\n", JOULEMARK_VERSION);
        return 0;
    }
    const auto found = std::ranges::find(commands, name, &Command::name);
    if (found == commands.end()) {
        throw bad_input("there is no command '{}': see joulemark --help", name);
    }
    return found->run(split(words.subspan(1)));
}

/// CLI11's complaint as a sentence of ours where its own is no sentence.
std::string complaint(const CLI::ParseError& error) {
    const std::string text = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && text.ends_with(" missing")) {
        return text.substr(0, text.find(':')) + " needs a value";
    }
    constexpr std::string_view unconverted = "Could not convert: ", between = " = ";
    if (const std::size_t at = text.find(between);
        text.starts_with(unconverted) && at != std::string::npos) {
        const std::string value = text.substr(at + between.size());
        return fmt::format("{} '{}' is no {}", text.substr(unconverted.size(), at - unconverted.size()), value,
                           csv::number(value) ? "whole number in range" : "number");
    }
    return text;
}

/// CLI11 knows neither the tool that a command is of nor what it does not parse itself.
class UsageFormatter final : public CLI::Formatter {
  public:
    explicit UsageFormatter(std::string_view rest) : rest_(rest) {}
    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string usage = CLI::Formatter::make_usage(app, "joulemark " + name);
        if (const std::size_t end = usage.find_last_not_of('\n'); !rest_.empty() && end != std::string::npos) {
            usage.insert(end + 1, ' ' + rest_);
        }
        return usage;
    }

  private:
    std::string rest_;
};

/// What is still buffered fails only now: on a full disk the result must not be lost in silence.
void finish_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        throw environment_error("the result could not be written to standard output: {}",
                                std::generic_category().message(errno));
    }
}

/// A standard stream that is closed would be the next file opened, and what is printed would go into it. The
/// command of `run` still finds it closed.
void occupy_closed_streams() {
    int fd = -1;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
}

/// A write beyond the limit of a file's size is to fail, with a sentence, and not to end the command. Caught
/// rather than ignored: a program started from here must not inherit it.
void survive_file_size_limit() {
    struct sigaction before {};
    if (sigaction(SIGXFSZ, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
        std::signal(SIGXFSZ, [](int) {});
    }
}

}  // namespace

bool parse(CLI::App& app, const Arguments& arguments, std::string_view rest) {
    app.formatter(std::make_shared<UsageFormatter>(rest));
    std::vector<std::string> reversed(arguments.options.rbegin(), arguments.options.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return false;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark {} --help", complaint(error), app.get_name());
    }
    return true;
}

}  // namespace joulemark::cli

int main(int argc, char** argv) {
    using joulemark::ExitCode;
    joulemark::open_standard_streams();
    try {
        joulemark::cli::occupy_closed_streams();
        joulemark::cli::survive_file_size_limit();
        const int status =
            joulemark::cli::dispatch(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
        joulemark::cli::finish_output();
        return status;
    } catch (const std::filesystem::filesystem_error& error) {
        joulemark::say(fmt::format("joulemark: {}", joulemark::files::sentence(error)));
        return static_cast<int>(ExitCode::environment);
    } catch (const std::system_error& error) {
        // Of the stream when it fails in the middle of a result; else of a thread that could not be started.
        const char* what = std::ferror(stdout) != 0 ? "the result could not be written to standard output"
                                                    : "the system's limits leave no room to work (ulimit -a)";
        joulemark::say(fmt::format("joulemark: {}: {}", what, error.code().message()));
        return static_cast<int>(ExitCode::environment);
    } catch (const joulemark::Error& error) {
        joulemark::say(fmt::format("joulemark: {}", error.what()));
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        joulemark::say(fmt::format("joulemark: internal error: {}; please report it", error.what()));
        return static_cast<int>(ExitCode::environment);
    }
}

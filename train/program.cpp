// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "data/make_images.h"
#include "data/make_vocabulary.h"
#include "engine/failure.h"
#include "engine/option_checks.h"
#include "engine/options.h"
#include "engine/registry.h"
#include "engine/streams.h"
#include "engine/trainer.h"
#include "loads/square_wave.h"
#include "parallel/ranks.h"
#include "parallel/world.h"
#include "report/terminal.h"

namespace joulemark::train {
namespace {

int fail(const std::exception& exception, const Ranks& ranks) {
    const Error error = as_error(exception);
    const std::string who = ranks.size > 1 ? fmt::format(" rank {}:", ranks.rank) : "";
    say(fmt::format("joulemark-train:{} {}", who, error.what()));
    return static_cast<int>(error.code());
}

std::string describe_optimizer(const Defaults& defaults) {
    std::string text =
        defaults.optimizer == OptimizerKind::sgd
            ? fmt::format("sgd, momentum {}", defaults.momentum)
            : fmt::format("{}, betas {} {}", name_of(defaults.optimizer), defaults.beta1, defaults.beta2);
    text += fmt::format(", decay {}", defaults.weight_decay);
    if (defaults.clip_norm) {
        text += fmt::format(", clip {}", *defaults.clip_norm);
    }
    return text;
}

std::string describe_learning_rate(const Defaults& defaults) {
    std::string text = fmt::format("{}", defaults.lr);
    if (defaults.lr_scaling != LrScaling::none) {
        text += fmt::format(" x {}(batch / {})", defaults.lr_scaling == LrScaling::square_root ? "sqrt" : "",
                            defaults.lr_batch);
    }
    return text + ", " + name_of(defaults.lr_schedule);
}

void list_models() {
    report::Table table(
        {"model", "source", "parameters", "data", "epochs", "local batch", "optimiser", "learning rate"});
    for (const Model& model : models()) {
        const Defaults& defaults = model.defaults;
        table.add({model.name, model.source, fmt::format("{}", model.parameters), model.data,
                   fmt::format("{}", defaults.epochs), fmt::format("{}", defaults.local_batch),
                   describe_optimizer(defaults), describe_learning_rate(defaults)});
    }
    print(table.text());
    print(
        "\nsquare-wave is no model but a load for calibrating sensors: joulemark-train square-wave "
        "--help\n");
}

int square_wave_command(std::vector<std::string> words) {
    if (const auto wave = parse_square_wave(std::move(words))) {
        run_square_wave(*wave);
    }
    return 0;
}

int make_images_command(std::vector<std::string> words) {
    ImageFolderRecipe recipe;
    CLI::App app("Writes a small image folder that a network can learn: DIR/train and DIR/val.",
                 "joulemark-train make-images");
    app.footer(
        "Example:\n  joulemark-train make-images images --classes 4 --per-class 64 --size 96 --seed 1");
    app.add_option("dir", recipe.folder, "the folder to write")->type_name("DIR")->required();
    app.add_option("--classes", recipe.classes, "classes; default 4")->check(CLI::Range(2, 1000));
    app.add_option("--per-class", recipe.per_class, "training images per class; default 64")
        ->check(CLI::Range(1, 100'000));
    app.add_option("--val-per-class", recipe.validation_per_class, "validation images per class; default 16")
        ->check(CLI::Range(1, 100'000));
    app.add_option("--size", recipe.size, "pixels of the shorter side; default 96")
        ->check(CLI::Range(8, 4096));
    app.add_option("--seed", recipe.seed, "seed; the same one gives the same files")->check(seed());
    std::reverse(words.begin(), words.end());
    try {
        app.parse(words);
    } catch (const CLI::CallForHelp&) {
        print(app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-train make-images --help", error.what());
    }
    check_path("DIR", recipe.folder);
    make_images(recipe);
    return 0;
}

int make_vocabulary_command(std::vector<std::string> words) {
    std::string text;
    std::string output = "vocab.txt";
    std::int64_t size = 30'522;
    CLI::App app("Makes a WordPiece vocabulary from a text.", "joulemark-train make-vocab");
    app.footer(
        "Example:\n  joulemark-train make-vocab wikitext-103/wiki.train.raw --size 30522 -o vocab.txt");
    app.add_option("text", text, "the text, UTF-8")->type_name("FILE")->required();
    app.add_option("--size", size, "tokens at most; default 30522, BERT's")
        ->check(CLI::Range(16, 10'000'000));
    app.add_option("-o,--output", output, "the file to write; default vocab.txt")->type_name("FILE");
    std::reverse(words.begin(), words.end());
    try {
        app.parse(words);
    } catch (const CLI::CallForHelp&) {
        print(app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-train make-vocab --help", error.what());
    }
    check_input("TEXT", text);
    check_path("--output", output);
    make_vocabulary(text, size, output);
    return 0;
}

int train_command(const std::vector<std::string>& words, const Ranks& ranks, World& world) {
    std::optional<Options> options;
    world.together([&] { options = parse_options(words, known_models(), world.size()); });
    world.agree({{"--help", options ? "not given" : "given"}, {"MODEL", options ? options->model : ""}});
    if (!options) {
        return 0;
    }
    Training training(find_model(options->model), *options, world);
    try {
        return static_cast<int>(training.run());
    } catch (const std::exception& error) {
        // The other ranks are inside a collective, or soon will be: they cannot be told, only ended.
        const int code = fail(error, ranks);
        if (world.size() > 1) {
            world.abort(static_cast<ExitCode>(code));
        }
        return code;
    }
}

int dispatch(const std::vector<std::string>& words, const Ranks& ranks) {
    const auto asks_for = [&](std::string_view option) {
        return std::ranges::find(words, option) != words.end();
    };
    if (asks_for("--list")) {
        list_models();
        return 0;
    }
    if (asks_for("--version")) {
        print(fmt::format("joulemark-train {} with libtorch {}\n", JOULEMARK_VERSION, TORCH_VERSION));
        return 0;
    }
    if (!words.empty() && words.front() == "make-images") {
        return make_images_command({words.begin() + 1, words.end()});
    }
    if (!words.empty() && words.front() == "make-vocab") {
        return make_vocabulary_command({words.begin() + 1, words.end()});
    }
    if (!words.empty() && words.front() == "square-wave") {
        return square_wave_command({words.begin() + 1, words.end()});
    }
    World world(ranks);
    return train_command(words.empty() ? std::vector<std::string>{"--help"} : words, ranks, world);
}

}  // namespace

int program(int argc, char** argv) {
    prepare_streams();
    Ranks ranks;
    try {
        ranks = ranks_from(process_environment);
        const int status = dispatch({argv + 1, argv + argc}, ranks);
        if (status == 0) {  // a failure has been said already
            flush_output();
        }
        return status;
    } catch (const AnotherRankFailed& other) {
        return static_cast<int>(other.code);
    } catch (const std::exception& error) {
        return fail(error, ranks);
    }
}

}  // namespace joulemark::train

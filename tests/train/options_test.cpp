// SPDX-License-Identifier: Apache-2.0
#include "engine/options.h"

#include <limits>

#include <gmock/gmock.h>

#include "core/error.h"
#include "engine/hyper_parameters.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<KnownModel> known = {{"resnet50",
                                        {.epochs = 100,
                                         .local_batch = 256,
                                         .image_size = 224,
                                         .lr = 0.1,
                                         .lr_scaling = LrScaling::linear,
                                         .lr_schedule = LrCurve::plateau,
                                         .warmup_share = 0.05,
                                         .momentum = 0.9,
                                         .weight_decay = 1e-4},
                                        {{"--image-size"}, {"--channels-last"}}},
                                       {"storms", {}, {{"--image-size", /*synthetic_only=*/true}}},
                                       {"other", {.image_size = 7}, {}}};

Options parse(std::vector<std::string> words, int ranks = 1) {
    words.insert(words.begin(), "resnet50");
    return parse_options(words, known, ranks).value();
}

std::string options_error(std::vector<std::string> words, int ranks = 1) {
    try {
        parse_options(words, known, ranks);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "";
}

TEST(Options, FillInTheModelsDefaults) {
    const Options options = parse({}, 4);
    EXPECT_EQ(options.local_batch, 256);
    EXPECT_EQ(options.global_batch, 1024);
    EXPECT_EQ(options.epochs, 100);
    EXPECT_DOUBLE_EQ(options.lr, 0.1);
    EXPECT_DOUBLE_EQ(options.lr_warmup_epochs, 5);
    EXPECT_EQ(options.precision, Precision::fp32);
}

TEST(Options, AreRead) {
    const Options options = parse({"--precision", "bf16", "--channels-last", "--device=cpu", "--set",
                                   "width=16", "--set", "blocks=1,1,1,1", "--epochs", "3", "--lr", "0"});
    EXPECT_EQ(options.precision, Precision::bf16);
    EXPECT_TRUE(options.channels_last);
    EXPECT_EQ(options.device, DeviceChoice::cpu);
    EXPECT_THAT(options.settings, ElementsAre("width=16", "blocks=1,1,1,1"));
    EXPECT_DOUBLE_EQ(options.lr_warmup_epochs, 0.15);
    EXPECT_DOUBLE_EQ(options.lr, 0);
}

TEST(Options, DivideTheGlobalBatch) {
    EXPECT_EQ(parse({"--global-batch", "96"}, 3).local_batch, 32);
    EXPECT_EQ(parse({"--global-batch", "96", "--local-batch", "32"}, 3).local_batch, 32);
    EXPECT_THAT(options_error({"resnet50", "--global-batch", "100"}, 3),
                HasSubstr("100 cannot be divided among 3 ranks"));
    EXPECT_THAT(options_error({"resnet50", "--global-batch", "96", "--local-batch", "16"}, 3),
                HasSubstr("global batch of 48, not 96"));
}

TEST(Options, CountAccumulationInTheGlobalBatch) {
    EXPECT_EQ(parse({"--local-batch", "8", "--accumulate", "4"}, 2).global_batch, 64);
    EXPECT_EQ(parse({"--global-batch", "96", "--accumulate", "4"}, 3).local_batch, 8);
    EXPECT_THAT(options_error({"resnet50", "--global-batch", "96", "--accumulate", "5"}, 3),
                HasSubstr("3 ranks with --accumulate 5: choose a multiple of 15"));
}

TEST(Options, RefuseWhatIsOfNoUse) {
    EXPECT_THAT(options_error({"other", "--image-size", "64"}),
                HasSubstr("--image-size is of no use to other: it is for resnet50, storms"));
    EXPECT_THAT(options_error({"storms", "--channels-last"}),
                HasSubstr("--channels-last is of no use to storms"));
    EXPECT_THAT(options_error({"resnet50", "--optimizer", "adam", "--momentum", "0.9"}),
                HasSubstr("--momentum is of no use to --optimizer adam: it is for sgd"));
    EXPECT_THAT(options_error({"resnet50", "--eps", "1e-6"}),
                HasSubstr("--eps is of no use to --optimizer sgd"));
    EXPECT_THAT(
        options_error({"resnet50", "--dataset", "folder", "--eval-samples", "8"}),
        HasSubstr("--eval-samples is for --dataset synthetic: of folder the data themselves decide it"));
    EXPECT_THAT(options_error({"storms", "--dataset", "folder", "--image-size", "64"}),
                HasSubstr("--image-size is for"));
    EXPECT_EQ(options_error({"storms", "--image-size", "64"}), "");
    EXPECT_EQ(parse({"--dataset", "folder", "--image-size", "64"}).image_size, 64);
    EXPECT_EQ(parse_options(std::vector<std::string>{"other"}, known, 1)->image_size,
              0);  // which is not told
}

TEST(Options, RefuseABatchThat64BitsCannotCount) {
    EXPECT_THAT(
        options_error({"resnet50", "--local-batch", "16777216", "--accumulate", "1099511627776"}),
        HasSubstr(
            "--local-batch 16777216 on 1 ranks with --accumulate 1099511627776 makes a global batch that"));
    EXPECT_THAT(options_error({"resnet50", "--global-batch", "1099511627776", "--local-batch",
                               "1099511627776", "--accumulate", "1099511627776"}),
                HasSubstr("makes a global batch that 64 bits cannot count"));
    EXPECT_EQ(parse({"--global-batch", "1099511627776"}).local_batch, std::int64_t{1} << 40);
}

TEST(Options, TakeTheOptimiserFromTheModelUnlessGiven) {
    const Options own = parse({});
    EXPECT_EQ(own.optimizer.kind, OptimizerKind::sgd);
    EXPECT_EQ(own.lr_scaling, LrScaling::linear);
    EXPECT_EQ(own.lr_schedule, LrCurve::plateau);
    EXPECT_FALSE(own.optimizer.clip_norm);
    const Options given = parse({"--optimizer", "adamw", "--beta2", "0.95", "--lr-schedule", "cosine", "--lr-scaling",
                                 "sqrt", "--clip-norm", "1"});
    EXPECT_EQ(given.optimizer.kind, OptimizerKind::adamw);
    EXPECT_DOUBLE_EQ(given.optimizer.beta2, 0.95);
    EXPECT_EQ(given.lr_schedule, LrCurve::cosine);
    EXPECT_EQ(given.lr_scaling, LrScaling::square_root);
    EXPECT_EQ(given.optimizer.clip_norm, 1);
    EXPECT_THAT(options_error({"resnet50", "--optimizer", "lion"}), HasSubstr("adam|adamw|sgd, not 'lion'"));
}

TEST(Options, AnswerMistakesWithOneSentence) {
    EXPECT_THAT(options_error({"resnet51"}), HasSubstr("the models are resnet50, storms, other"));
    EXPECT_THAT(options_error({"resnet50", "--precision", "fp8"}), HasSubstr("bf16|fp16|fp32|tf32, not 'fp8'"));
    EXPECT_THAT(options_error({"resnet50", "--epochs", "0"}), HasSubstr("--epochs"));
    EXPECT_THAT(options_error({"resnet50", "--epochs", "many"}), HasSubstr("--epochs"));
    EXPECT_THAT(options_error({"resnet50", "--no-such"}), HasSubstr("--no-such"));
    EXPECT_THAT(options_error({}), HasSubstr("model"));
}

TEST(Options, RefuseWhatIsNoNumberOrWouldNotTrain) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--momentum", "nan"},
                                                                                       {"--beta1", "nan"},
                                                                                       {"--beta2", "nan"},
                                                                                       {"--beta2", "1"},
                                                                                       {"--bucket-mib", "nan"},
                                                                                       {"--lr", "nan"},
                                                                                       {"--clip-norm", "0"},
                                                                                       {"--seed", "-1"},
                                                                                       {"--seed", "18446744073709551616"},
                                                                                       {"--dataset", ""}}) {
        EXPECT_THAT(options_error({"resnet50", words[0], words[1]}), HasSubstr(words[0])) << words[1];
    }
    EXPECT_EQ(parse({"--seed", "18446744073709551615"}).seed, std::numeric_limits<std::uint64_t>::max());
}

TEST(HyperParameters, TellValuesWhetherGivenOrNot) {
    HyperParameters given({"width=16", "cutoff=1e1", "zero=false"});
    HyperParameters defaults;
    for (HyperParameters* settings : {&given, &defaults}) {
        settings->integer("width", 16, 1);
        settings->integers("blocks", {3, 4}, 1, 9);
        settings->real("cutoff", 10, 0, 100);
        settings->flag("zero", false);
        settings->text("kind", "sum");
    }
    EXPECT_EQ(given.values(), defaults.values());
    EXPECT_THAT(given.values(),
                testing::UnorderedElementsAre(testing::Pair("width", "16"), testing::Pair("blocks", "3,4"),
                                              testing::Pair("cutoff", "10"), testing::Pair("zero", "false"),
                                              testing::Pair("kind", "sum")));
}

TEST(HyperParameters, AreTypedAndKnown) {
    HyperParameters settings({"width=16", "blocks=1,2,3,4", "zero=true", "cutoff=7.5", "kind=sum"});
    EXPECT_EQ(settings.integer("width", 64, 1), 16);
    EXPECT_EQ(settings.integer("depth", 3, 1), 3);
    EXPECT_THAT(settings.integers("blocks", {3, 4, 6, 3}, 1, 9), ElementsAre(1, 2, 3, 4));
    EXPECT_TRUE(settings.flag("zero", false));
    EXPECT_DOUBLE_EQ(settings.real("cutoff", 5, 0, 100), 7.5);
    EXPECT_EQ(settings.text("kind", "mean", {"mean", "sum"}), "sum");
    EXPECT_EQ(settings.text("name", "none"), "none");
    settings.finish("resnet50");
}

TEST(HyperParameters, NameWhatIsWrong) {
    const auto message = [](std::vector<std::string> given) -> std::string {
        try {
            HyperParameters settings(given);
            settings.integer("width", 64, 1);
            settings.integers("blocks", {3, 4}, 1, 9);
            settings.flag("zero", false);
            settings.real("cutoff", 5, 0, 100);
            settings.text("kind", "mean", {"mean", "sum"});
            settings.finish("resnet50");
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_THAT(message({"widht=16"}), HasSubstr("no setting 'widht': it has width, blocks, zero, cutoff, kind"));
    EXPECT_THAT(message({"width=0"}), HasSubstr("at least 1"));
    EXPECT_THAT(message({"width=1099511627776"}), HasSubstr("at most 65536"));
    EXPECT_THAT(message({"blocks=1,10"}), HasSubstr("at most 9"));
    EXPECT_THAT(message({"blocks=1,2,3"}), HasSubstr("takes 2 numbers"));
    EXPECT_THAT(message({"zero=yes"}), HasSubstr("true or false"));
    EXPECT_THAT(message({"cutoff=nan"}), HasSubstr("not a number from 0 to 100"));
    EXPECT_THAT(message({"kind=max"}), HasSubstr("it takes mean, sum"));
    EXPECT_THAT(message({"width"}), HasSubstr("NAME=VALUE"));
    EXPECT_THAT(message({"width=1", "width=2"}), HasSubstr("twice"));
}

}  // namespace
}  // namespace joulemark::train

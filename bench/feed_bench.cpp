// SPDX-License-Identifier: Apache-2.0
// What the loader of a model can deliver: `feed_bench BATCHES joulemark-train's options`. Prints samples per
// second, samples per second of CPU time, and how often a thread was put to sleep per batch. Nothing is
// trained.
#include <cstdlib>
#include <ctime>
#include <numeric>

#include <sys/resource.h>

#include "core/clock.h"
#include "core/units.h"
#include "data/loader.h"
#include "engine/registry.h"

int main(int argc, char** argv) {
    using namespace joulemark;
    using namespace joulemark::train;
    try {
        const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
        const auto options = parse_options(words, known_models(), 1);
        const std::int64_t batches = argc > 1 ? std::atoi(argv[1]) : 0;
        if (!options || batches < 1) {
            fmt::print(stderr, "usage: feed_bench BATCHES MODEL [options of joulemark-train]\n");
            return 2;
        }
        at::set_num_threads(1);
        HyperParameters settings(options->settings);
        const auto workload = find_model(options->model).make(*options, settings, nullptr);
        const std::uint32_t size = workload->training_data().size();
        std::uint32_t at = 0;
        const Plan plan = [&]() -> std::optional<BatchPlan> {
            BatchPlan batch{0, std::vector<std::uint32_t>(static_cast<std::size_t>(options->local_batch))};
            std::ranges::generate(batch.samples, [&] { return at++ % size; });
            return batch;
        };
        Loader loader(workload->training_data(), plan, {.threads = options->loader_threads.value_or(1)});
        loader.next();  // threads have started
        const auto usage = [] {
            rusage used{};
            getrusage(RUSAGE_SELF, &used);
            return used;
        };
        const rusage before = usage();
        const std::clock_t cpu = std::clock();
        const std::int64_t begin = MonotonicClock().now_ns();
        for (std::int64_t i = 0; i < batches; ++i) {
            loader.next();
        }
        const double wall = seconds(MonotonicClock().now_ns() - begin);
        const auto cpu_s = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
        const auto samples = static_cast<double>(batches * options->local_batch);
        fmt::print("{:.0f} samples/s, {:.0f} a core, {:.1f} waits a batch\n", samples / wall, samples / cpu_s,
                   static_cast<double>(usage().ru_nvcsw - before.ru_nvcsw) / static_cast<double>(batches));
        return 0;
    } catch (const Error& error) {
        fmt::print(stderr, "feed_bench: {}\n", error.what());
        return static_cast<int>(error.code());
    }
}

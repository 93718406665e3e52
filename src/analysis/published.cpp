// SPDX-License-Identifier: Apache-2.0
#include "analysis/published.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace joulemark::analysis {
namespace {

constexpr std::string_view huber = "Huber et al. 2025, arXiv 2508.07706";
constexpr std::string_view h200 = "Joulemark, one H200, bf16, PyTorch 2.11";

constexpr std::array numbers{
    Published{huber, "resnet50", "A100", "energy_per_gpu_hour_kwh", 0.27, 0.31, "cpu+dram+gpu",
              "range over series, five repeats of one seed each"},
    Published{huber, "fourcastnet", "A100", "energy_per_gpu_hour_kwh", 0.18, 0.23, "cpu+dram+gpu",
              "one configuration three times, the rest single runs: preliminary"},
    Published{huber, "fourcastnet", "H100", "energy_per_gpu_hour_kwh", 0.26, 0.28, "cpu+gpu",
              "single runs: preliminary; without DRAM"},
    Published{huber, "resnet50", "A100", "joule_per_sample", 0.85, 0.85, "cpu+dram+gpu",
              "0.0235 Wh per sample of the data set over 100 epochs"},
    Published{h200, "resnet50", "H200", "samples_per_s", 4587, 6869, "gpu",
              "batch 256, eager to torch.compile"},
    Published{h200, "vgg16", "H200", "samples_per_s", 3505, 4851, "gpu", "batch 128, eager to torch.compile"},
    Published{h200, "inception_v3", "H200", "samples_per_s", 2380, 2380, "gpu", "batch 256, eager"},
    Published{h200, "bert", "H200", "samples_per_s", 1863, 2273, "gpu",
              "64 x 128 tokens, eager to torch.compile"},
    Published{h200, "distilbert", "H200", "samples_per_s", 3412, 4012, "gpu",
              "64 x 128 tokens, eager to torch.compile"},
    Published{h200, "fourcastnet", "H200", "samples_per_s", 19.5, 24.8, "gpu",
              "batch 4, eager to torch.compile"},
    Published{h200, "bert", "H200", "joule_per_sample", 0.235, 0.262, "gpu",
              "64 x 128 tokens, torch.compile to eager"},
    Published{h200, "vgg16", "H200", "joule_per_sample", 0.144, 0.194, "gpu",
              "batch 128, torch.compile to eager"},
    Published{h200, "fourcastnet", "H200", "joule_per_sample", 25.8, 31.6, "gpu",
              "batch 4, torch.compile to eager"},
};

/// Letters and digits only, small.
std::string plain(std::string_view text) {
    std::string result;
    for (const unsigned char c : text) {
        if (std::isalnum(c) != 0) {
            result += static_cast<char>(std::tolower(c));
        }
    }
    return result;
}

std::string factor_text(const nlohmann::json& factors, const char* name) {
    const auto found = factors.find(name);
    return found != factors.end() && found->is_string() ? plain(found->get<std::string>()) : "";
}

}  // namespace

std::span<const Published> published_numbers() {
    return numbers;
}

std::vector<PublishedComparison> compare_with_published(const std::vector<Configuration>& configurations) {
    std::vector<PublishedComparison> comparisons;
    for (const Configuration& configuration : configurations) {
        const std::string workload = factor_text(configuration.factors, "workload");
        const std::string hardware = factor_text(configuration.factors, "hardware");
        for (const Published& number : numbers) {
            const auto metric = configuration.metrics.find(number.metric);
            if (workload != plain(number.workload) ||
                hardware.find(plain(number.hardware)) == std::string::npos ||
                metric == configuration.metrics.end()) {
                continue;
            }
            const RunMetrics& run = *configuration.runs.front();
            const std::string components = fmt::format("{}", fmt::join(run.components, "+"));
            const bool energy = number.metric != "samples_per_s";
            PublishedComparison comparison{
                .factors = configuration.factors,
                .metric = std::string(number.metric),
                .value = metric->second,
                .source = std::string(number.source),
                .published = {number.low, number.high},
                .published_components = std::string(number.components),
                .note = std::string(number.note),
                .comparable = !run.simulated && (!energy || components == number.components),
                .reason = ""};
            if (run.simulated) {
                comparison.reason = "simulated: nothing was measured";
            } else if (!comparison.comparable) {
                comparison.reason = fmt::format("published over {}, measured over {}", number.components,
                                                components.empty() ? "unknown components" : components);
            }
            comparisons.push_back(std::move(comparison));
        }
    }
    return comparisons;
}

}  // namespace joulemark::analysis

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

/// Time and energy of an epoch at a power cap, relative to those at the highest.
struct Ratio {
    std::string_view source, workload;
    double cap_w, time, energy;
    std::string_view note;
};
constexpr double full_cap_w = 250;  // of the V100, which all of them are about
constexpr std::string_view zeus = "Zeus power traces of one V100";
constexpr std::array ratios{
    Ratio{zeus, "resnet50", 200, 1.053, 0.884, "batch 256, 200 W against 250 W"},
    Ratio{zeus, "resnet50", 150, 1.180, 0.775, "batch 256, 150 W against 250 W"},
    Ratio{zeus, "resnet50", 100, 1.929, 0.862, "batch 256, 100 W against 250 W"},
    Ratio{"McDonald et al. 2022", "bert", 150, 1.068, 0.863, "large scale, 150 W against 250 W"},
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

/// The ratio of two configurations' means; without an interval, since the published ones have none to hold it
/// against.
PublishedComparison ratio_comparison(const Configuration& at, const Configuration& full, const char* metric,
                                     double published, const Ratio& ratio) {
    const RunMetrics& run = *at.runs.front();
    const bool energy = metric == std::string_view("epoch_energy_j");
    const std::string components = fmt::format("{}", fmt::join(run.components, "+"));
    PublishedComparison comparison{
        .factors = at.factors,
        .metric = fmt::format("relative_{}", metric),
        .value = {.n = std::min(at.values(metric).size(), full.values(metric).size()),
                  .mean = *at.mean(metric) / *full.mean(metric)},
        .source = std::string(ratio.source),
        .published = {published, published},
        .published_components = "gpu",
        .note = std::string(ratio.note),
        .comparable = !run.simulated && (!energy || components == "gpu"),
        .reason = ""};
    if (run.simulated) {
        comparison.reason = "simulated: nothing was measured";
    } else if (!comparison.comparable) {
        comparison.reason = fmt::format("published over gpu, measured over {}",
                                        components.empty() ? "unknown components" : components);
    }
    return comparison;
}

void append_ratios(std::vector<PublishedComparison>& comparisons,
                   const std::vector<Configuration>& configurations) {
    for (const Configuration& at : configurations) {
        for (const Ratio& ratio : ratios) {
            if (at.number("power_cap_w") != ratio.cap_w ||
                factor_text(at.factors, "workload") != plain(ratio.workload) ||
                factor_text(at.factors, "hardware").find("v100") == std::string::npos) {
                continue;
            }
            nlohmann::json wanted = at.factors;
            wanted.erase("power_cap_w");
            const auto full = std::ranges::find_if(configurations, [&](const Configuration& other) {
                nlohmann::json factors = other.factors;
                return other.number("power_cap_w") == full_cap_w && factors.erase("power_cap_w") == 1 &&
                       factors == wanted;
            });
            if (full == configurations.end()) {
                continue;
            }
            for (const auto& [metric, published] :
                 {std::pair("epoch_time_s", ratio.time), std::pair("epoch_energy_j", ratio.energy)}) {
                if (at.mean(metric) && full->mean(metric).value_or(0) > 0) {
                    comparisons.push_back(ratio_comparison(at, *full, metric, published, ratio));
                }
            }
        }
    }
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
    append_ratios(comparisons, configurations);
    return comparisons;
}

}  // namespace joulemark::analysis

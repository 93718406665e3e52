// SPDX-License-Identifier: Apache-2.0
// Holds a model's loss and gradients against those of its reference implementation, from a fixture that a
// script of tests/reference/ wrote.
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "core/error.h"
#include "engine/failure.h"
#include "engine/safetensors.h"
#include "models.h"

namespace joulemark::train::parity {
namespace {

struct Row {
    const char* name;
    std::unique_ptr<ParityModel> (*make)(HyperParameters&);
};
constexpr std::array models = {
    Row{"bert-base", make_bert}, Row{"distilbert", make_distilbert},     Row{"resnet50", make_resnet50},
    Row{"vgg16", make_vgg16},    Row{"inception_v3", make_inception_v3}, Row{"unet", make_unet},
    Row{"schnet", make_schnet},  Row{"dimenet", make_dimenet},           Row{"pna", make_pna},
    Row{"nnconv", make_nnconv},  Row{"fourcastnet", make_fourcastnet},
};

/// A gradient may differ by `tolerance` x the larger of its norm and this share of the norm of all gradients.
constexpr double floor_share = 1e-3;

std::string metadata_of(const SafeTensors& fixture, const std::string& key, const std::string& path) {
    const auto found = fixture.metadata.find(key);
    if (found == fixture.metadata.end()) {
        throw bad_input("{} is no parity fixture: its metadata has no '{}'", path, key);
    }
    return found->second;
}

/// The tensors whose names begin with `prefix`, without it.
std::map<std::string, torch::Tensor> part_of(const SafeTensors& fixture, const std::string& prefix) {
    std::map<std::string, torch::Tensor> part;
    for (const auto& [name, tensor] : fixture.tensors) {
        if (name.starts_with(prefix)) {
            part[name.substr(prefix.size())] = tensor;
        }
    }
    return part;
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

double norm_of(const torch::Tensor& tensor) {
    return tensor.to(torch::kFloat64).norm().item<double>();
}

struct Worst {
    std::string name = "none";
    double difference = 0;  ///< relative to the larger of the tensor's norm and its floor
    void consider(const std::string& candidate, double value) {
        if (!std::isnan(difference) && !(value <= difference)) {  // NaN is the worst, and stays so
            name = candidate;
            difference = value;
        }
    }
};

Worst compare(const torch::nn::Module& module, std::map<std::string, torch::Tensor> reference,
              const std::string& path) {
    double all = 0;
    for (const auto& [name, gradient] : reference) {
        all = std::hypot(all, norm_of(gradient));
    }
    Worst worst;
    for (const auto& entry : module.named_parameters()) {
        const auto found = reference.find(entry.key());
        if (found == reference.end()) {
            throw bad_input("{} has no gradient of {}", path, entry.key());
        }
        const torch::Tensor& ours = entry.value().grad();
        const torch::Tensor difference =
            (ours.defined() ? ours : torch::zeros_like(entry.value())).to(torch::kFloat64).cpu() -
            found->second;
        worst.consider(entry.key(),
                       norm_of(difference) / std::max(norm_of(found->second), floor_share * all));
        reference.erase(found);
    }
    if (!reference.empty()) {
        throw bad_input("{} has gradients of parameters that are not there, {} for one", path,
                        reference.begin()->first);
    }
    return worst;
}

/// `wanted` is empty for the fixture's own precision.
int check(const std::string& path, const std::string& wanted, torch::Device device) {
    const SafeTensors fixture = read_safetensors(path);
    const auto stated = fixture.metadata.find("precision");
    const std::string reference_precision = stated == fixture.metadata.end() ? "fp64" : stated->second;
    const std::string precision = wanted.empty() ? reference_precision : wanted;
    if (precision == "fp64" && reference_precision != "fp64") {
        throw bad_input("{} was computed in {}: nothing in fp64 can be held against it", path,
                        reference_precision);
    }
    const torch::Dtype dtype = precision == "fp64" ? torch::kFloat64 : torch::kFloat32;
    const std::string name = metadata_of(fixture, "model", path);
    const auto row =
        std::ranges::find(models, name, [](const Row& entry) { return std::string(entry.name); });
    if (row == models.end()) {
        throw bad_input("{} is of a model '{}', which is not in the table", path, name);
    }
    HyperParameters settings(words_of(metadata_of(fixture, "settings", path)));
    const auto model = row->make(settings);
    settings.finish(name);
    torch::nn::Module& module = model->module();
    copy_state(state_of(module), part_of(fixture, "weight."), path);
    module.to(device, dtype);

    Inputs inputs = part_of(fixture, "input.");
    for (auto& [key, tensor] : inputs) {
        tensor = tensor.to(device, tensor.is_floating_point() ? dtype : tensor.scalar_type());
    }
    const torch::Tensor loss = model->loss(inputs);
    loss.backward();

    const double tolerance = dtype == torch::kFloat64 ? 1e-8 : 1e-4;
    const double expected = fixture.tensors.at("loss").item<double>();
    const double loss_difference = std::abs(loss.item<double>() - expected) / std::abs(expected);
    const Worst worst = compare(module, part_of(fixture, "gradient."), path);
    const bool agrees = loss_difference <= tolerance && worst.difference <= tolerance;
    fmt::print(
        "{:14} {} on {} against {}, {} parameters  loss {:.1e}  worst gradient {:.1e} ({})  limit {:.0e}  {} "
        " "
        "[{}; seed {}]\n",
        name, precision, device.str(), reference_precision, module.parameters().size(), loss_difference,
        worst.difference, worst.name, tolerance, agrees ? "agrees" : "DIFFERS",
        metadata_of(fixture, "reference", path), metadata_of(fixture, "seed", path));
    return static_cast<int>(agrees ? ExitCode::ok : ExitCode::check_failed);
}

int run(int argc, char** argv) {
    CLI::App app("Compares loss and gradients of a model with its reference implementation's.",
                 "joulemark-parity");
    app.footer(
        "Example:\n  joulemark-parity tests/reference/fixtures/resnet50.safetensors --dtype fp32\n"
        "Exit status 0: all agree; 1: some differ.");
    std::string path;
    std::string precision;
    std::string device = "cpu";
    app.add_option("file", path, "a fixture")->type_name("FILE")->required();
    app.add_option("--dtype", precision, "precision; default the fixture's")
        ->check(CLI::IsMember({"fp64", "fp32"}));
    app.add_option("--device", device, "default cpu")->check(CLI::IsMember({"cpu", "cuda"}));
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-parity --help", error.what());
    }
    if (device == "cuda" && torch::cuda::device_count() == 0) {
        throw environment_error("--device cuda: no GPU is usable here");
    }
    at::globalContext().setAllowTF32CuBLAS(false);
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
    return check(path, precision, torch::Device(device));
}

}  // namespace
}  // namespace joulemark::train::parity

int main(int argc, char** argv) {
    try {
        return joulemark::train::parity::run(argc, argv);
    } catch (const std::exception& exception) {
        const joulemark::Error error = joulemark::train::as_error(exception);
        fmt::print(stderr, "joulemark-parity: {}\n", error.what());
        return static_cast<int>(error.code());
    }
}

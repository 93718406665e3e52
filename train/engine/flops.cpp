// SPDX-License-Identifier: Apache-2.0
#include "engine/flops.h"

#include <memory>
#include <string_view>

#include <ATen/record_function.h>

namespace joulemark::train {
namespace {

using torch::Tensor;

thread_local double multiply_adds = 0;

double elements(at::IntArrayRef sizes) {
    double product = 1;
    for (const std::int64_t size : sizes) {
        product *= static_cast<double>(size);
    }
    return product;
}

/// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, ...): each weight [out, in /
/// groups, kernel...] meets every position of the output; of a transposed one [in, out / groups, kernel...]
/// of the input.
double of_convolution(c10::ArrayRef<const c10::IValue> arguments) {
    const Tensor& input = arguments[0].toTensor();
    const Tensor& weight = arguments[1].toTensor();
    const auto stride = arguments[3].toIntVector();
    const auto padding = arguments[4].toIntVector();
    const auto dilation = arguments[5].toIntVector();
    const bool transposed = arguments[6].toBool();
    double positions = static_cast<double>(input.size(0));
    for (std::size_t d = 0; d < stride.size(); ++d) {
        const auto axis = static_cast<std::int64_t>(d) + 2;
        const std::int64_t reach = dilation[d] * (weight.size(axis) - 1) + 1;
        positions *= static_cast<double>(
            transposed ? input.size(axis) : (input.size(axis) + 2 * padding[d] - reach) / stride[d] + 1);
    }
    return positions * elements(weight.sizes());
}

/// [..., m, k] by [..., k, n].
double of_product(const Tensor& a, const Tensor& b) {
    return elements(a.sizes()) * static_cast<double>(b.size(-1));
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
    const std::string_view name = function.name();
    const auto arguments = function.inputs();
    if (name == "aten::convolution") {
        multiply_adds += of_convolution(arguments);
    } else if (name == "aten::mm" || name == "aten::bmm") {
        multiply_adds += of_product(arguments[0].toTensor(), arguments[1].toTensor());
    } else if (name == "aten::addmm" || name == "aten::baddbmm") {
        multiply_adds += of_product(arguments[1].toTensor(), arguments[2].toTensor());
    }
    return nullptr;
}

class Counting {
  public:
    Counting()
        : handle_(at::addThreadLocalCallback(
              at::RecordFunctionCallback(count).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
        multiply_adds = 0;
    }
    ~Counting() { at::removeCallback(handle_); }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;

  private:
    at::CallbackHandle handle_;
};

/// A module in evaluation mode; a shape that is met once is not worth cuDNN's search for the fastest
/// algorithm.
class Evaluating {
  public:
    explicit Evaluating(torch::nn::Module& module)
        : module_(module), training_(module.is_training()), search_(at::globalContext().benchmarkCuDNN()) {
        module_.eval();
        at::globalContext().setBenchmarkCuDNN(false);
    }
    ~Evaluating() {
        at::globalContext().setBenchmarkCuDNN(search_);
        module_.train(training_);
    }
    Evaluating(const Evaluating&) = delete;
    Evaluating& operator=(const Evaluating&) = delete;

  private:
    torch::nn::Module& module_;
    bool training_;
    bool search_;
};

}  // namespace

double forward_flops(torch::nn::Module& module, const std::function<void()>& forward) {
    const torch::NoGradGuard no_grad;
    const Evaluating evaluating(module);
    const Counting counting;
    forward();
    return 2 * multiply_adds;
}

}  // namespace joulemark::train

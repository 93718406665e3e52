// SPDX-License-Identifier: Apache-2.0
#include "engine/flops.h"

#include <string_view>
#include <vector>

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

/// A module whose tensors have lost their storage, until the end of the scope.
class ShapesOnly {
  public:
    explicit ShapesOnly(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
        tensors_ = module.parameters();
        const std::vector<Tensor> buffers = module.buffers();
        tensors_.insert(tensors_.end(), buffers.begin(), buffers.end());
        for (const Tensor& tensor : tensors_) {
            data_.push_back(tensor.detach());
        }
        module.to(torch::kMeta);
        module.eval();
    }
    ~ShapesOnly() {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            tensors_[i].set_data(data_[i]);
        }
        module_.train(training_);
    }
    ShapesOnly(const ShapesOnly&) = delete;
    ShapesOnly& operator=(const ShapesOnly&) = delete;

  private:
    torch::nn::Module& module_;
    bool training_;
    std::vector<Tensor> tensors_;
    std::vector<Tensor> data_;
};

}  // namespace

double forward_flops(torch::nn::Module& module, const std::function<void()>& forward) {
    const torch::NoGradGuard no_grad;
    const ShapesOnly shapes_only(module);
    const Counting counting;
    forward();
    return 2 * multiply_adds;
}

}  // namespace joulemark::train

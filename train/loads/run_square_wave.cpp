// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <torch/torch.h>

#include "engine/device.h"
#include "engine/marks.h"
#include "loads/square_wave.h"
#include "parallel/ranks.h"

namespace joulemark::train {
namespace {

/// Before the first burst: kernels are loaded, clocks are up, and the time of one product is known.
constexpr double warm_up_s = 2;
/// Longer than any averaging window, so that the first burst begins, and the last one is seen to end, in
/// idleness.
constexpr double rest_s = 3;

void sleep_s(double s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(s));
}

/// Products of one size on all devices at once.
class Products {
  public:
    explicit Products(const SquareWave& wave) {
        const torch::Device first = choose_device(wave.device, Precision::fp32, Ranks{});
        const int count = first.is_cpu() ? 1 : static_cast<int>(torch::cuda::device_count());
        const std::int64_t size = wave.size > 0 ? wave.size : first.is_cpu() ? 1024 : 8192;
        for (int i = 0; i < count; ++i) {
            const torch::Device device =
                first.is_cpu() ? first : torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i));
            const auto options =
                torch::dtype(first.is_cpu() ? torch::kFloat32 : torch::kBFloat16).device(device);
            operands_.push_back({torch::randn({size, size}, options), torch::randn({size, size}, options),
                                 torch::empty({size, size}, options)});
        }
    }

    std::string device() const {
        return operands_.front().a.is_cpu() ? "cpu" : fmt::format("{} x cuda", operands_.size());
    }
    std::int64_t size() const { return operands_.front().a.size(0); }

    /// As many as take about this long by the last ones. The device is idle before and after.
    void run_for(double s) {
        const auto count = std::max<std::int64_t>(1, std::llround(s / each_s_));
        const std::int64_t begin = Marks::now_ns();
        for (std::int64_t i = 0; i < count; ++i) {
            for (Operands& operands : operands_) {
                torch::mm_out(operands.product, operands.a, operands.b);
            }
        }
        for (const Operands& operands : operands_) {
            synchronise(operands.a.device());
        }
        each_s_ = static_cast<double>(Marks::now_ns() - begin) * 1e-9 / static_cast<double>(count);
    }

  private:
    struct Operands {
        torch::Tensor a, b, product;
    };
    std::vector<Operands> operands_;
    double each_s_ = 1;  ///< known after the first one
};

}  // namespace

void run_square_wave(const SquareWave& wave) {
    const torch::InferenceMode no_gradients;
    const Marks marks(0);
    Products products(wave);
    marks.config({{"workload", "square-wave"}, {"device", products.device()}, {"size", products.size()}});
    products.run_for(0);  // the first one loads the kernels
    for (const std::int64_t begin = Marks::now_ns();
         Marks::now_ns() - begin < std::llround(warm_up_s * 1e9);) {
        products.run_for(warm_up_s / 10);
    }
    sleep_s(rest_s);
    std::int64_t index = 0;
    for (const Burst& burst : bursts(wave)) {
        marks.begin("square", index, Marks::now_ns());
        products.run_for(burst.high_s);
        marks.end("square", index++, Marks::now_ns(), {});
        sleep_s(burst.low_s);
    }
    sleep_s(rest_s);
}

}  // namespace joulemark::train

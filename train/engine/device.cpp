// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include <utility>

#include <ATen/autocast_mode.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/error.h"

namespace joulemark::train {

torch::Device choose_device(DeviceChoice choice, Precision precision, const Ranks& ranks) {
    const auto gpus = static_cast<int>(torch::cuda::device_count());
    if (choice == DeviceChoice::cuda && gpus == 0) {
        throw environment_error(
            "--device cuda: no GPU is usable here (a CUDA build of libtorch, a driver and a visible GPU are "
            "needed)");
    }
    if (choice == DeviceChoice::cpu || gpus == 0) {
        if (precision == Precision::tf32) {
            throw environment_error("--precision tf32 needs an NVIDIA GPU of the Ampere generation or newer");
        }
        return torch::kCPU;
    }
    // A launcher may show each rank only its own GPU.
    if (gpus > 1 && ranks.local_rank >= gpus) {
        throw environment_error("{} ranks on this node, but only {} GPUs are visible: start one rank per GPU",
                                ranks.local_size, gpus);
    }
    const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(ranks.local_rank % gpus));
    c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(device);
    return device;
}

void synchronise(torch::Device device) {
    if (!device.is_cpu()) {
        c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
    }
}

void set_float32_mode(Precision precision) {
    const bool tf32 = precision == Precision::tf32;
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(tf32);  // on by default
    at::globalContext().setBenchmarkCuDNN(true);  // shapes do not change during a run
}

Autocast::Autocast(torch::Device device, Precision precision)
    : active_(precision == Precision::bf16 || precision == Precision::fp16), type_(device.type()) {
    if (active_) {
        at::autocast::set_autocast_dtype(type_, precision == Precision::bf16 ? at::kBFloat16 : at::kHalf);
        at::autocast::set_autocast_enabled(type_, true);
    }
}

Autocast::~Autocast() {
    if (active_) {
        at::autocast::set_autocast_enabled(type_, false);
        at::autocast::clear_cache();  // weights change before the next use
    }
}

Feed::Feed(Loader& loader, torch::Device device) : loader_(loader), device_(device) {
    if (!device.is_cpu()) {
        copies_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
        ahead_ = copy_next();
    }
}

std::optional<Batch> Feed::copy_next() {
    auto batch = loader_.next();
    if (!batch || batch->samples == 0) {
        return batch;
    }
    const c10::StreamGuard guard(*copies_);
    return batch->to(device_);
}

std::optional<Batch> Feed::next() {
    if (!copies_) {
        return loader_.next();
    }
    auto batch = ahead_ ? std::exchange(ahead_, std::nullopt) : copy_next();
    if (batch && batch->samples > 0) {
        const auto current = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
        c10::Event copied(device_.type());
        copied.record(*copies_);
        copied.block(current);
        // The allocator must not hand the memory to the copy stream again while the current stream still
        // reads it.
        for (const torch::Tensor& input : batch->inputs) {
            input.record_stream(current);
        }
        if (batch->target.defined()) {
            batch->target.record_stream(current);
        }
    }
    if (batch && loader_.ready()) {  // a batch that is late must not hold up this one
        ahead_ = copy_next();
    }
    return batch;
}

}  // namespace joulemark::train

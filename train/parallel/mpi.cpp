// SPDX-License-Identifier: Apache-2.0
#include "parallel/mpi.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <mpi.h>
#include <torch/torch.h>

#include "core/error.h"

namespace joulemark::train {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr std::int64_t largest_message = 1 << 30;  // elements; MPI counts are 32-bit

MPI_Datatype mpi_type(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return MPI_FLOAT;
        case at::kDouble:
            return MPI_DOUBLE;
        case at::kLong:
            return MPI_INT64_T;
        case at::kInt:
            return MPI_INT32_T;
        case at::kByte:
            return MPI_UINT8_T;
        default:
            throw environment_error("MPI cannot reduce {} tensors here", c10::toString(type));
    }
}

MPI_Op mpi_operation(c10d::ReduceOp operation) {
    switch (static_cast<c10d::ReduceOp::RedOpType>(operation)) {
        case c10d::ReduceOp::SUM:
            return MPI_SUM;
        case c10d::ReduceOp::MIN:
            return MPI_MIN;
        case c10d::ReduceOp::MAX:
            return MPI_MAX;
        default:
            throw environment_error("MPI has no such reduction here");
    }
}

/// A collective that has ended.
WorkPtr done(Tensors tensors) {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(std::move(tensors)));
    return c10d::Work::create_from_future(future);
}

/// Calls `collective(data, count)` for parts that MPI's counts can hold.
template <typename Collective>
void in_parts(const at::Tensor& tensor, Collective collective) {
    TORCH_CHECK(tensor.is_non_overlapping_and_dense(), "MPI collectives need dense tensors");
    auto* data = static_cast<char*>(tensor.mutable_data_ptr());
    for (std::int64_t at = 0; at < tensor.numel(); at += largest_message) {
        collective(data + at * static_cast<std::int64_t>(tensor.element_size()),
                   static_cast<int>(std::min(largest_message, tensor.numel() - at)));
    }
}

class MpiBackend final : public c10d::Backend {
  public:
    MpiBackend(int rank, int size) : Backend(rank, size) {}

    const std::string getBackendName() const override { return "mpi"; }

    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
        for (const at::Tensor& tensor : tensors) {
            in_parts(tensor, [&](void* data, int count) {
                MPI_Bcast(data, count, mpi_type(tensor.scalar_type()), static_cast<int>(options.rootRank),
                          MPI_COMM_WORLD);
            });
        }
        return done(tensors);
    }

    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
        for (const at::Tensor& tensor : tensors) {
            in_parts(tensor, [&](void* data, int count) {
                MPI_Allreduce(MPI_IN_PLACE, data, count, mpi_type(tensor.scalar_type()),
                              mpi_operation(options.reduceOp), MPI_COMM_WORLD);
            });
        }
        return done(tensors);
    }

    WorkPtr barrier(const c10d::BarrierOptions&) override {
        MPI_Barrier(MPI_COMM_WORLD);
        return done({});
    }
};

}  // namespace

Mpi::Mpi(int rank, int size) : rank_(rank), size_(size) {
    int provided = 0;
    // An error in MPI ends all ranks, which is what a broken collective has to do.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int actual_rank = 0;
    int actual_size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &actual_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &actual_size);
    if (actual_rank != rank || actual_size != size) {
        throw environment_error(
            "the launcher says rank {} of {}, but MPI says rank {} of {}: start with the mpirun of the MPI "
            "that "
            "joulemark-train is linked with, or with srun --mpi=pmix",
            rank, size, actual_rank, actual_size);
    }
}

Mpi::~Mpi() {
    MPI_Finalize();
}

int Mpi::minimum(int value) const {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return value;
}

int Mpi::broadcast(int value, int root) const {
    MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
    return value;
}

std::string Mpi::broadcast(const std::string& text, int root) const {
    std::string received = text;
    received.resize(static_cast<std::size_t>(broadcast(static_cast<int>(text.size()), root)));
    MPI_Bcast(received.data(), static_cast<int>(received.size()), MPI_CHAR, root, MPI_COMM_WORLD);
    return received;
}

void Mpi::abort(int code) const {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
}

c10::intrusive_ptr<c10d::Backend> Mpi::backend() const {
    return c10::make_intrusive<MpiBackend>(rank_, size_);
}

}  // namespace joulemark::train

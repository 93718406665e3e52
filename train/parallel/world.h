// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "core/error.h"
#include "parallel/mpi.h"
#include "parallel/ranks.h"

namespace joulemark::train {

/// Thrown on the ranks whose part succeeded while another's failed; that one says why.
struct AnotherRankFailed {
    ExitCode code;
};

/// All ranks of the job. One rank needs neither MPI nor a store. mpirun's ranks talk through MPI, torchrun's
/// and srun's through a TCP store at rank 0; tensors go through MPI on CPUs and NCCL on GPUs.
class World {
  public:
    /// Meets the other ranks. Throws environment_error when they cannot be reached.
    explicit World(const Ranks& ranks);
    /// Leaves them; waits until all have come to their end.
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    int rank() const { return ranks_.rank; }
    int size() const { return ranks_.size; }
    const Ranks& ranks() const { return ranks_; }

    /// Runs a part of the set-up that may fail on some ranks only (a folder missing on one node) and lets all
    /// fail together: the lowest rank that failed rethrows its error, the others throw AnotherRankFailed.
    void together(const std::function<void()>& part);

    /// Throws, together too, where a rank has another value of some item than rank 0, naming the first such
    /// item. All ranks call it with the same names, before what would hang where they differ.
    void agree(const std::map<std::string, std::string>& items);

    /// Opens the way for tensors of `device`.
    void connect(torch::Device device);
    /// Null for one rank. After connect.
    const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }
    void all_reduce_sum(const torch::Tensor& tensor) const;
    void broadcast_from_0(const std::vector<torch::Tensor>& tensors) const;

    /// Ends every rank, wherever it is: after a failure that the others cannot know of.
    [[noreturn]] void abort(ExitCode code) const;

  private:
    void open_store();
    void watch_for_failure(std::stop_token stop) const;
    int first_failed(bool failed);
    std::string text_of_0(const std::string& mine);
    ExitCode code_of(int rank, ExitCode mine);

    Ranks ranks_;
    std::unique_ptr<Mpi> mpi_;
    c10::intrusive_ptr<c10d::Store> store_;
    std::jthread watch_;
    int agreements_ = 0;
    c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace joulemark::train {

/// MPI from its start to its end. At most one per process; all calls by the thread that made it.
class Mpi {
  public:
    /// Throws environment_error when MPI's world is not the one that the launcher's variables describe.
    Mpi(int rank, int size);
    ~Mpi();
    Mpi(const Mpi&) = delete;
    Mpi& operator=(const Mpi&) = delete;

    /// The smallest `value` of all ranks.
    int minimum(int value) const;
    /// Rank `root`'s text and number on every rank.
    std::string broadcast(const std::string& text, int root) const;
    int broadcast(int value, int root) const;
    /// Ends all ranks.
    [[noreturn]] void abort(int code) const;

    /// Collectives on CPU tensors, done when the call returns: without a progress thread MPI does not overlap
    /// them with computation, so a pending one would only pretend to.
    c10::intrusive_ptr<c10d::Backend> backend() const;

  private:
    int rank_;
    int size_;
};

}  // namespace joulemark::train

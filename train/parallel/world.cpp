// SPDX-License-Identifier: Apache-2.0
#include "parallel/world.h"

#include <array>
#include <charconv>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "engine/failure.h"
#include "parallel/nccl.h"

namespace joulemark::train {
namespace {

constexpr const char* failed_key = "failed";
constexpr std::int64_t watch_period_ns = ns_per_s;
constexpr std::chrono::minutes slowest_setup(30);  // listing millions of files on a slow file system

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::vector<std::uint8_t> bytes(int value) {
    const std::string text = std::to_string(value);
    return {text.begin(), text.end()};
}

int value_of(const std::vector<std::uint8_t>& bytes) {
    int value = 0;
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    std::from_chars(text, text + bytes.size(), value);
    return value;
}

c10::intrusive_ptr<c10d::Store> tcp_store(const std::string& host, int port, bool serves,
                                          std::optional<std::size_t> workers) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(port);
    options.isServer = serves;
    options.numWorkers = workers;
    options.waitWorkers = false;
    try {
        return c10::make_intrusive<c10d::TCPStore>(host, options);
    } catch (const c10::Error&) {
        throw environment_error(
            "rank 0 of the job cannot be reached at {}:{}: check MASTER_ADDR and MASTER_PORT", host, port);
    }
}

}  // namespace

World::World(const Ranks& ranks) : ranks_(ranks) {
    if (ranks_.size == 1) {
        return;
    }
    if (ranks_.launcher == Launcher::mpirun) {
        mpi_ = std::make_unique<Mpi>(ranks_.rank, ranks_.size);
    } else {
        open_store();
        watch_ = std::jthread([this](std::stop_token stop) { watch_for_failure(stop); });
    }
}

World::~World() {
    if (!store_) {
        return;
    }
    try {
        // Rank 0 serves the store, so it goes last.
        first_failed(false);
        watch_ = {};
        store_->set(fmt::format("left/{}", ranks_.rank), bytes(1));
        for (int rank = 1; ranks_.rank == 0 && rank < ranks_.size; ++rank) {
            store_->get(fmt::format("left/{}", rank));
        }
    } catch (const std::exception&) {
        // The others are gone already; nothing is left to wait for.
    }
}

void World::open_store() {
    if (ranks_.master_host.empty() || ranks_.master_port == 0) {
        throw bad_input(
            "{} ranks need MASTER_ADDR and MASTER_PORT in the environment: start them with torchrun, mpirun "
            "or srun",
            ranks_.size);
    }
    // torchrun serves a store itself and says so; a restarted job must not see the keys of the one before.
    const bool served = process_environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
    const auto store = tcp_store(ranks_.master_host, ranks_.master_port, ranks_.rank == 0 && !served,
                                 static_cast<std::size_t>(ranks_.size));
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        "joulemark/" + process_environment("TORCHELASTIC_RESTART_COUNT").value_or("0"), store);
    store_->setTimeout(slowest_setup);
}

/// A rank that fails leaves a word in the store; one whose store is gone has lost rank 0.
void World::watch_for_failure(std::stop_token stop) const {
    MonotonicClock clock;
    while (clock.sleep_until(clock.now_ns() + watch_period_ns, stop)) {
        std::optional<int> code;
        try {
            if (store_->check({failed_key})) {
                code = value_of(store_->get(failed_key));
            }
        } catch (const std::exception&) {
            code = static_cast<int>(ExitCode::environment);
        }
        if (code && !stop.stop_requested()) {
            std::_Exit(*code);
        }
    }
}

/// The lowest rank that reports a failure; `size` when none does.
int World::first_failed(bool failed) {
    if (mpi_) {
        return mpi_->minimum(failed ? ranks_.rank : ranks_.size);
    }
    int lowest = failed ? ranks_.rank : ranks_.size;
    if (store_) {
        const std::string round = fmt::format("round/{}/", agreements_++);
        store_->set(round + std::to_string(ranks_.rank), bytes(failed ? 1 : 0));
        for (int rank = 0; rank < ranks_.size; ++rank) {
            if (value_of(store_->get(round + std::to_string(rank))) != 0) {
                lowest = std::min(lowest, rank);
            }
        }
    }
    return lowest;
}

ExitCode World::code_of(int rank, ExitCode mine) {
    if (mpi_) {
        return static_cast<ExitCode>(mpi_->broadcast(static_cast<int>(mine), rank));
    }
    const std::string key = fmt::format("code/{}", agreements_);
    if (rank == ranks_.rank) {
        store_->set(key, bytes(static_cast<int>(mine)));
    }
    return static_cast<ExitCode>(value_of(store_->get(key)));
}

void World::together(const std::function<void()>& part) {
    std::optional<Error> mine;
    try {
        part();
    } catch (const std::exception& error) {
        mine = as_error(error);
    }
    if (ranks_.size == 1) {
        if (mine) {
            throw *mine;
        }
        return;
    }
    const int speaker = first_failed(mine.has_value());
    if (speaker == ranks_.size) {
        return;
    }
    const ExitCode code = code_of(speaker, mine ? mine->code() : ExitCode::ok);
    if (speaker == ranks_.rank) {
        throw *mine;
    }
    throw AnotherRankFailed{code};
}

/// Rank 0's text on every rank.
std::string World::text_of_0(const std::string& mine) {
    if (mpi_) {
        return mpi_->broadcast(mine, 0);
    }
    const std::string key = fmt::format("text/{}", agreements_++);
    if (ranks_.rank == 0) {
        store_->set(key, std::vector<std::uint8_t>(mine.begin(), mine.end()));
    }
    const std::vector<std::uint8_t> text = store_->get(key);
    return {text.begin(), text.end()};
}

void World::agree(const std::map<std::string, std::string>& items) {
    if (ranks_.size == 1) {
        return;
    }
    const std::string mine =
        nlohmann::json(items).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const auto of_0 = nlohmann::json::parse(text_of_0(mine));
    together([&] {
        const auto here = nlohmann::json::parse(mine);
        for (const auto& [name, value] : of_0.items()) {
            if (const std::string own = here.value(name, "not given"); own != value) {
                throw bad_input(
                    "{} is {} here and {} on rank 0: start all ranks with the same options and data", name,
                    own, value.get<std::string>());
            }
        }
    });
}

void World::connect(torch::Device device) {
    if (ranks_.size == 1) {
        return;
    }
    if (device.is_cpu()) {
        if (ranks_.launcher == Launcher::torchrun) {
            throw environment_error(
                "{} ranks on the CPU talk through MPI: start them with mpirun or srun instead of torchrun",
                ranks_.size);
        }
        if (!mpi_) {
            mpi_ = std::make_unique<Mpi>(ranks_.rank, ranks_.size);
        }
        group_ = c10::make_intrusive<c10d::ProcessGroup>(ranks_.rank, ranks_.size);
        group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, mpi_->backend());
        return;
    }
    auto store = store_;
    if (!store) {
        // mpirun does not say where rank 0 is: MPI tells, and a port the system chose.
        c10::intrusive_ptr<c10d::Store> served;
        int port = 0;
        if (ranks_.rank == 0) {
            served = tcp_store("localhost", 0, true, std::nullopt);
            port = c10::static_intrusive_pointer_cast<c10d::TCPStore>(served)->getPort();
        }
        port = mpi_->broadcast(port, 0);
        const std::string host = mpi_->broadcast(host_name(), 0);
        store = served ? served
                       : tcp_store(ranks_.local_size == ranks_.size ? "localhost" : host, port, false,
                                   std::nullopt);
    }
    group_ = c10::make_intrusive<c10d::ProcessGroup>(store, ranks_.rank, ranks_.size);
    const auto backend = make_nccl_backend(store, ranks_.rank, ranks_.size);
    group_->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
    group_->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
}

void World::all_reduce_sum(const torch::Tensor& tensor) const {
    if (group_) {
        std::vector<torch::Tensor> tensors = {tensor};
        group_->allreduce(tensors)->wait();
    }
}

void World::broadcast_from_0(const std::vector<torch::Tensor>& tensors) const {
    if (group_ && !tensors.empty()) {  // many models have no buffers
        c10d::broadcast_coalesced(group_, tensors, /*buffer_size=*/64 << 20, /*rank=*/0);
    }
}

void World::abort(ExitCode code) const {
    if (mpi_) {
        mpi_->abort(static_cast<int>(code));
    }
    if (store_) {
        try {
            store_->set(failed_key, bytes(static_cast<int>(code)));
        } catch (const std::exception&) {
            // Rank 0 is gone, which the others notice by themselves.
        }
    }
    std::_Exit(static_cast<int>(code));
}

}  // namespace joulemark::train

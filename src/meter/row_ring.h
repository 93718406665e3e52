// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace joulemark::meter {

/// More metrics than any source delivers.
inline constexpr std::size_t max_row_values = 16;

/// What one read of one source gave: as fixed in size as the sampling loops need it.
struct Row {
    std::int64_t time_ns;                       ///< start of the read
    std::int64_t read_ns;                       ///< its duration
    std::uint32_t source;                       ///< index into the machine's sources
    std::array<double, max_row_values> values;  ///< as Source::read filled them; the rest is not used
};

/// Lock-free queue of rows from one producer to one consumer. Memory is touched only as far as it is used.
class RowRing {
  public:
    /// Rounded up to a power of two.
    explicit RowRing(std::size_t capacity)
        : capacity_(std::bit_ceil(capacity)), rows_(std::make_unique_for_overwrite<Row[]>(capacity_)) {}

    /// Producer: false when there is no room.
    bool push(const Row& row) {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) == capacity_) {
            return false;
        }
        rows_[tail & (capacity_ - 1)] = row;
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }

    /// Consumer: hands every row that is there now to `take`, in order.
    template <typename Take>
    void drain(Take&& take) {
        const std::size_t tail = tail_.load(std::memory_order_acquire);
        for (std::size_t head = head_.load(std::memory_order_relaxed); head != tail; ++head) {
            take(rows_[head & (capacity_ - 1)]);
            head_.store(head + 1, std::memory_order_release);
        }
    }

    std::size_t size() const {
        return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
    }
    std::size_t capacity() const { return capacity_; }

  private:
    const std::size_t capacity_;
    const std::unique_ptr<Row[]> rows_;
    alignas(64) std::atomic<std::size_t> head_{0};
    alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace joulemark::meter

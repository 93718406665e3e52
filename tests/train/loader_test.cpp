// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

/// Sample i is the number i (and the epoch); reading takes a varying time; chosen ones cannot be read.
class Numbers final : public Dataset {
  public:
    explicit Numbers(std::uint32_t size, std::set<std::uint32_t> bad = {})
        : size_(size), bad_(std::move(bad)) {}
    std::uint32_t size() const override { return size_; }
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override {
        std::this_thread::sleep_for(std::chrono::microseconds(index * 7919 % 500));
        ++loaded;
        if (bad_.contains(index)) {
            return Failure{"number " + std::to_string(index) + " is bad", ""};
        }
        return Sample{torch::full({1}, static_cast<std::int64_t>(epoch * 1000 + index), torch::kInt64)};
    }
    Batch collate(const std::vector<Sample>& samples, bool) const override {
        Batch batch;
        std::vector<torch::Tensor> parts;
        for (const Sample& sample : samples) {
            parts.push_back(sample.front());
        }
        batch.target = torch::cat(parts);
        batch.samples = static_cast<std::int64_t>(samples.size());
        return batch;
    }
    std::string name() const override { return "the numbers"; }
    mutable std::atomic<int> loaded = 0;

  private:
    std::uint32_t size_;
    std::set<std::uint32_t> bad_;
};

/// Batches of `batch` consecutive samples of `epochs` passes.
Plan in_order(std::uint32_t size, std::uint32_t batch, std::uint64_t epochs) {
    return [=, at = std::uint32_t{0}, epoch = std::uint64_t{0}]() mutable -> std::optional<BatchPlan> {
        if (at == size) {
            at = 0;
            ++epoch;
        }
        if (epoch == epochs) {
            return std::nullopt;
        }
        BatchPlan plan{epoch, std::vector<std::uint32_t>(std::min(batch, size - at))};
        std::iota(plan.samples.begin(), plan.samples.end(), at);
        at += static_cast<std::uint32_t>(plan.samples.size());
        return plan;
    };
}

std::vector<std::vector<std::int64_t>> read_all(Loader& loader) {
    std::vector<std::vector<std::int64_t>> batches;
    while (const auto batch = loader.next()) {
        const auto count = static_cast<std::size_t>(batch->samples);
        batches.emplace_back(count);
        if (count > 0) {
            std::memcpy(batches.back().data(), batch->target.const_data_ptr(), count * sizeof(std::int64_t));
        }
    }
    return batches;
}

TEST(Loader, GivesTheSameBatchesInOrderWhateverTheThreads) {
    const Numbers numbers(50);
    std::vector<std::vector<std::int64_t>> first;
    for (const int threads : {1, 2, 7}) {
        Loader loader(numbers, in_order(50, 8, 2), {.threads = threads});
        const auto batches = read_all(loader);
        ASSERT_EQ(batches.size(), 14U);
        EXPECT_EQ(batches[0], (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
        EXPECT_EQ(batches[6], (std::vector<std::int64_t>{48, 49}));
        EXPECT_EQ(batches[7].front(), 1000);
        if (threads == 1) {
            first = batches;
        }
        EXPECT_EQ(batches, first);
        EXPECT_FALSE(loader.next());
    }
}

TEST(Loader, ReplacesBadSamplesByTheNextGoodOnesAndNamesEachOnce) {
    const Numbers numbers(10, {2, 3, 9});
    std::mutex mutex;
    std::multiset<std::string> named;
    Loader loader(numbers, in_order(10, 5, 2), {.threads = 3, .report = [&](const std::string& text) {
                                                    const std::lock_guard lock(mutex);
                                                    named.insert(text);
                                                }});
    const auto batches = read_all(loader);
    EXPECT_EQ(batches[0], (std::vector<std::int64_t>{0, 1, 4, 4, 4}));
    EXPECT_EQ(batches[1], (std::vector<std::int64_t>{5, 6, 7, 8, 0}));  // the last one's next is the first
    EXPECT_EQ(batches[2], (std::vector<std::int64_t>{1000, 1001, 1004, 1004, 1004}));
    EXPECT_EQ(named, (std::multiset<std::string>{"number 2 is bad", "number 3 is bad", "number 9 is bad"}));
    EXPECT_EQ(loader.damaged(), (std::vector<std::uint32_t>{2, 3, 9}))
        << "not again in each epoch, nor where 3 is met behind 2 too";
}

TEST(Loader, LeavesBadSamplesOutOfAnEvaluation) {
    const Numbers numbers(6, {0, 1, 4});
    Loader loader(numbers, in_order(6, 2, 1), {.threads = 2, .bad_samples = BadSamples::leave_out});
    EXPECT_EQ(read_all(loader), (std::vector<std::vector<std::int64_t>>{{}, {2, 3}, {5}}));
    EXPECT_EQ(loader.damaged(), (std::vector<std::uint32_t>{0, 1, 4}));
}

TEST(Loader, EndsWithOneSentenceWhenNothingIsReadable) {
    const Numbers numbers(3, {0, 1, 2});
    Loader loader(numbers, in_order(3, 3, 1), {.threads = 2});
    EXPECT_THROW(
        try { loader.next(); } catch (const Error& error) {
            EXPECT_STREQ(error.what(), "none of the 3 samples of the numbers can be read");
            throw;
        },
        Error);
}

TEST(Loader, ReadsNoFurtherAheadThanAllowed) {
    const Numbers numbers(1000);
    Loader loader(numbers, in_order(1000, 10, 1), {.threads = 4, .prefetch = 2});
    ASSERT_TRUE(loader.next());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_LE(numbers.loaded, 30);
}

TEST(Loader, IsReadyWhenTheNextBatchNeedNotBeWaitedFor) {
    const Numbers numbers(20);
    Loader loader(numbers, in_order(20, 10, 1), {.threads = 2});
    for (int batch = 0; batch < 2; ++batch) {
        while (!loader.ready()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_EQ(loader.next()->samples, 10);
    }
    EXPECT_FALSE(loader.ready());
    EXPECT_FALSE(loader.next());
}

TEST(Loader, StopsAtOnceWhileItsThreadsAreReading) {
    const Numbers numbers(1'000'000);
    { const Loader loader(numbers, in_order(1'000'000, 1000, 1), {.threads = 4}); }
    EXPECT_LT(numbers.loaded, 1000);
}

TEST(Loader, TellsThatAPlanFailed) {
    const Numbers numbers(8);
    int batches = 0;
    const Plan plan = [&]() -> std::optional<BatchPlan> {
        if (++batches > 2) {
            throw std::bad_alloc();
        }
        return BatchPlan{0, {1, 2}};
    };
    Loader loader(numbers, plan, {.threads = 3});
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    EXPECT_THROW(loader.next(), std::bad_alloc);
}

}  // namespace
}  // namespace joulemark::train

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meter/row_ring.h"
#include "sensors/source.h"

namespace joulemark::meter {

/// Energy as one metric of one device tells it, added up as samples arrive and in constant memory.
/// A counter is interpolated between its readings; power is integrated by the trapezoid rule. A missing
/// reading is bridged by a counter and left out of an integral.
class EnergyLine {
  public:
    static constexpr std::size_t window_count = 2;

    EnergyLine(bool counter, std::int64_t max_gap_ns) : counter_(counter), max_gap_ns_(max_gap_ns) {}

    void add(std::int64_t time_ns, double value);

    /// A window begins or ends at `time_ns`. Edges come in order of time, possibly before the samples that
    /// tell the energy at them.
    void edge(std::int64_t time_ns, bool begin, std::size_t window);

    /// Energy of all closed spans of `window`; an edge later than the last sample counts as if it were at
    /// it. Nothing when there were never two samples.
    std::optional<double> energy_j(std::size_t window) const;

  private:
    struct Edge {
        std::int64_t time_ns;
        bool begin;
        std::size_t window;
    };
    struct Window {
        double at_begin = 0, sum = 0;
    };
    static void settle(std::array<Window, window_count>& windows, const Edge& edge, double energy);

    bool counter_;
    std::int64_t max_gap_ns_;
    std::deque<Edge> waiting_;
    std::array<Window, window_count> windows_{};
    std::int64_t last_ns_ = 0;
    double last_ = 0;      ///< the last reading
    double energy_j_ = 0;  ///< since the first sample
    std::uint64_t samples_ = 0;
};

/// What the end-of-run summary tells, without reading the run files again. Fed by the writer thread.
class Totals {
  public:
    /// One device's energy over the whole command.
    struct Entry {
        std::string device, component;
        std::string method = {};  ///< of the source: counter | sampled | estimated | simulated
        std::optional<double> counter_j = {}, integrated_j = {};
        std::optional<double> epochs_j = {};  ///< over all complete epochs
        std::optional<double> best() const { return counter_j ? counter_j : integrated_j; }
    };
    struct Epochs {
        std::uint64_t count = 0;
        double seconds = 0;
    };

    Totals(const std::vector<sensors::Device>& devices,
           const std::vector<std::unique_ptr<sensors::Source>>& sources, std::int64_t max_gap_ns);

    void add(const Row& row);
    void command_edge(std::int64_t time_ns, bool begin);
    /// Edges of epochs as one rank sees them: the one that marks first.
    void epoch_edge(std::int64_t time_ns, bool begin, int rank);

    std::vector<Entry> entries() const;
    Epochs epochs() const { return epochs_; }

  private:
    struct Line {
        std::size_t value;  ///< where the reading stands in a row
        std::size_t device;
        std::string method;
        bool counter;
        EnergyLine energy;
    };
    void edge(std::int64_t time_ns, bool begin, std::size_t window);

    const std::vector<sensors::Device>& devices_;
    std::vector<Line> lines_;
    std::vector<std::vector<std::size_t>> lines_of_source_;
    Epochs epochs_;
    std::optional<int> epoch_rank_;
    std::optional<std::int64_t> epoch_start_ns_;
};

}  // namespace joulemark::meter

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

#include "core/standstill.h"
#include "meter/message.h"
#include "meter/row_ring.h"
#include "sensors/source.h"

namespace joulemark::meter {

/// Energy as one metric of one device tells it, added up as samples arrive and in constant memory.
/// A counter is interpolated between its readings; power is integrated by the trapezoid rule. A missing
/// reading is bridged by a counter and left out of an integral.
class EnergyLine {
  public:
    static constexpr std::size_t window_count = 2;

    /// What the closed spans of a window came to.
    struct Sum {
        double energy_j = 0;
        double covered_s = 0;  ///< time that the energy is of
        double reach_s = 0;    ///< from each of their edges to the sample nearest to it
        double still_s = 0;    ///< in which a counter showed one value for long, and moved again
        double age_s = 0;      ///< how long it had shown its value at each of the edges
        std::uint64_t resets = 0;  ///< times a counter went backwards: its energy is then a lower bound
    };

    EnergyLine(bool counter, std::int64_t max_gap_ns) : counter_(counter), max_gap_ns_(max_gap_ns) {}

    void add(std::int64_t time_ns, double value);

    /// A window begins or ends at `time_ns`. Edges come in order of time, possibly before the samples that
    /// tell the energy at them.
    void edge(std::int64_t time_ns, bool begin, std::size_t window);

    /// An edge later than the last sample counts as if it were at it. Nothing when there were never two
    /// samples.
    std::optional<Sum> sum(std::size_t window) const;

    double peak() const { return peak_; }  ///< the highest reading
    const Standstill& standstill() const { return standstill_; }

  private:
    struct Edge {
        std::int64_t time_ns;
        bool begin;
        std::size_t window;
    };
    struct Window {
        Sum at_begin, sum;
    };
    static void settle(std::array<Window, window_count>& windows, const Edge& edge, const Sum& at_edge);

    bool counter_;
    std::int64_t max_gap_ns_;
    std::deque<Edge> waiting_;
    std::array<Window, window_count> windows_{};
    std::int64_t last_ns_ = 0;
    double last_ = 0;  ///< the last reading
    std::int64_t changed_ns_ = 0;  ///< when it was first seen
    double peak_ = 0;
    Standstill standstill_;
    Sum total_;  ///< since the first sample; its reach and age are not used
    std::uint64_t samples_ = 0;
};

/// What the end-of-run summary tells, without reading the run files again. Fed by the writer thread.
class Totals {
  public:
    /// One device's energy over the whole command.
    struct Entry {
        std::string device, component;
        std::string method = {};  ///< of the source of the best: counter | sampled | estimated | simulated
        std::optional<double> counter_j = {}, integrated_j = {};
        std::string doubt = {};  ///< why the counter is not believed, as what it did; "": it is
        double covered_s = 0;    ///< time of the command that the best is of
        std::optional<double> epochs_j = {};  ///< over all complete epochs; nothing when not all of it is covered
        std::optional<double> best() const { return counter_j && doubt.empty() ? counter_j : integrated_j; }
        /// Whether readings cover so much of that time that the energy is that of all of it.
        bool covers(double command_s) const { return covered_s >= least_coverage * command_s; }
    };
    static constexpr double least_coverage = 0.95;
    struct Epochs {
        std::uint64_t count = 0;
        double seconds = 0;
        std::uint64_t aborted = 0;  ///< counted in neither
    };

    /// The rates are those asked for, of fast and of slow sources.
    Totals(const std::vector<sensors::Device>& devices,
           const std::vector<std::unique_ptr<sensors::Source>>& sources, double rate_hz, double energy_rate_hz);

    void add(const Row& row);
    void command_edge(std::int64_t time_ns, bool begin);
    /// Edges of epochs as one rank sees them: the one that marks first.
    void epoch_edge(std::int64_t time_ns, Message::Event event, int rank);

    /// Devices whose sensors tell some energy, plausible or not.
    std::vector<Entry> entries() const;
    Epochs epochs() const { return epochs_; }

  private:
    struct Line {
        std::size_t value;  ///< where the reading stands in a row
        std::size_t device;
        const sensors::Source* source;
        bool counter;
        EnergyLine energy;
    };
    /// What one device tells of one window.
    struct Reading {
        const Line* counter = nullptr;
        const Line* power = nullptr;
        std::optional<EnergyLine::Sum> counted = {}, integrated = {};
    };
    Reading reading(std::size_t device, std::size_t window) const;
    std::string doubt(const Reading& reading, const sensors::Device& device, double duration_s) const;
    void edge(std::int64_t time_ns, bool begin, std::size_t window);

    const std::vector<sensors::Device>& devices_;
    std::vector<Line> lines_;
    std::vector<std::vector<std::size_t>> lines_of_source_;
    Epochs epochs_;
    double command_s_ = 0;
    std::int64_t command_start_ns_ = 0;
    std::optional<int> epoch_rank_;
    std::optional<std::int64_t> epoch_start_ns_;
};

}  // namespace joulemark::meter

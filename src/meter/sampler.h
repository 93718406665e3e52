// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "meter/run_writer.h"
#include "sensors/source.h"

namespace joulemark::meter {

struct SamplingRates {
    double rate_hz = 10;        ///< of all sources but slow ones
    double energy_rate_hz = 1;  ///< of slow sources
    /// Slow sources are read less often when that would cost more than this share of one processor, all
    /// slow sources together; their readings at region edges stay. 0: never.
    double slow_cpu_share = 0.004;
};

/// Reads the sources of a machine: the fast ones in turn on one thread, every slow one on its own, all on
/// absolute deadlines of the clock. A read that overruns its period makes the sampler skip, never drift or
/// queue.
class Sampler {
  public:
    /// `sources` and `writer` must outlive it.
    Sampler(std::shared_ptr<Clock> clock, const std::vector<std::unique_ptr<sensors::Source>>& sources,
            RunWriter& writer, const SamplingRates& rates);
    ~Sampler();
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    /// Takes a first sample of everything, then goes on by itself. Throws what the clock throws when it has
    /// no place for one of the threads; then none is left.
    void start();
    /// A region's edge: fast sources are read before it returns; slow ones are told to read, and waited for
    /// only where time stands still meanwhile (a held simulated clock).
    void edge();
    /// A last sample of everything, and the end of the threads. False when a sensor does not return from its
    /// read: its thread cannot end, so nothing may be destroyed any more and the process has to _exit.
    bool stop();

    struct Statistics {
        double driver_s = 0;                             ///< inside reads, all threads together
        std::uint64_t late = 0;                          ///< ticks skipped because reading took too long
        std::map<std::string, double> achieved_hz = {};  ///< "nvml.gpu0": reads on the period, edges apart
        std::map<std::string, double> jitter_s = {};  ///< root mean square of how late those reads began
    };
    Statistics statistics() const;  ///< after `stop` that was true

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace joulemark::meter

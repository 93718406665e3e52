// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/profile.h"

namespace joulemark::sim {

/// The laws that simulated training obeys. Analysis is tested by whether it finds these numbers again, so the
/// formulas (docs/simulation.md) are exact and pure. A knee of 0 means a power law over the whole range.
struct Truth {
    double epoch_time_s = 0;    ///< one GPU, no limits, `samples`, `reference_batch`
    double samples = 1281167;   ///< what epoch_time_s holds for
    double gpu_exponent = 0.9;  ///< time ~ gpus^-gpu_exponent
    double floor_s = 0;         ///< added to the time, whatever the configuration
    double cap_exponent = 0.7;  ///< time ~ (cap / knee)^-cap_exponent below the knee
    double cap_knee_w = 0;
    double clock_exponent = 0.6;  ///< time ~ (clock / knee)^-clock_exponent below the knee
    double clock_knee_mhz = 0;
    double batch_exponent = 0.05;  ///< time ~ (local batch / reference_batch)^-batch_exponent
    double reference_batch = 128;
    double warmup_factor = 1.15;  ///< warm-up epochs take this much longer
    double noise_pct = 1;         ///< sd of the logarithm of an epoch's time, in per cent
    double run_noise_pct = 0.5;   ///< the same, once per run

    double full_power_w = 0;            ///< one GPU, no limits
    double power_clock_exponent = 1.2;  ///< (power - idle) ~ (clock / maximum)^power_clock_exponent
    double power_gpu_exponent = 0.05;   ///< (power - idle) ~ gpus^-power_gpu_exponent: less use of each
    double power_noise_pct = 0.5;       ///< sd of the logarithm of (power - idle), once per run

    double final_error = 0.24;     ///< top-1 error approached after many epochs
    double batch_knee = 8192;      ///< global batch beyond which the error worsens
    double batch_error = 0.015;    ///< by this much per doubling
    double quality_noise = 0.002;  ///< sd of the error

    /// Defaults for an accelerator: its epoch time and full power.
    explicit Truth(const Profile& profile)
        : epoch_time_s(profile.epoch_time_s), full_power_w(profile.full_power_w) {}
};

/// A JSON object of the names above; what is left out keeps its default. Throws bad_input on an unknown
/// key, a value that is not a number, or one out of range. `origin` names the text in the message.
Truth parse_truth(const std::string& json, const std::string& origin, const Profile& profile);

/// One configuration. `power_cap_w` and `sm_clock_mhz` are the limits in force, also when none was set.
struct Operating {
    double gpus = 1;
    double power_cap_w = 0;
    double sm_clock_mhz = 0;
    double local_batch = 128;
    double samples = 1281167;

    /// One GPU without limits, `truth.samples`, `truth.reference_batch`.
    static Operating unlimited(const Truth& truth, const Profile& profile);
};

/// Multipliers of one epoch, 1 without noise. Each is the exponential of a normal deviate, so medians keep
/// the truth and the logarithms, which power laws are fitted to, are unbiased.
struct Noise {
    double time = 1;
    double power = 1;
};

/// Deterministic: the same (seed, run, epoch) give the same noise on every machine.
Noise noise(const Truth& truth, std::uint64_t seed, std::uint64_t run, std::uint64_t epoch);

/// Seconds of one full epoch: `floor_s` plus the product of the power laws, times the noise.
double epoch_time_s(const Truth& truth, const Profile& profile, const Operating& at, const Noise& with = {});

/// Watts of one GPU in the compute phase, had it no power limit.
double natural_power_w(const Truth& truth, const Profile& profile, const Operating& at,
                       const Noise& with = {});

/// A part of an epoch: computing, communicating (all-reduce waits; only with several GPUs), evaluating.
struct Phase {
    double fraction;     ///< of the epoch's time; the fractions of an epoch add up to 1
    double power_share;  ///< of the compute phase's power above idle
    double busy_pct;
};
std::vector<Phase> phases(double gpus);

/// Watts of one GPU in a phase: never above the cap, and the cap itself where the natural power is above it.
double phase_power_w(const Truth& truth, const Profile& profile, const Operating& at, const Phase& phase,
                     const Noise& with = {});

/// Joules of one GPU over one full epoch.
double epoch_energy_j(const Truth& truth, const Profile& profile, const Operating& at,
                      const Noise& with = {});

/// After `epoch` full epochs (counted from 0).
struct Quality {
    double loss;
    double top1_error;
};
Quality quality(const Truth& truth, double global_batch, std::uint64_t seed, std::uint64_t epoch);

/// Standard normal deviate number `index` of stream `seed`: written out, because those of the standard
/// library differ between implementations.
double normal(std::uint64_t seed, std::uint64_t index);
/// A well-mixed 64-bit number from two.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace joulemark::sim

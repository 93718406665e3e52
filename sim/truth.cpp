// SPDX-License-Identifier: Apache-2.0
#include "sim/truth.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace joulemark::sim {
namespace {

/// The keys a truth file may have, and the smallest value each can take (infinitely small for exponents).
struct Key {
    const char* name;
    double Truth::*value;
    double minimum;
    bool minimum_allowed;
};

constexpr double any = -1e300;
constexpr Key keys[] = {
    {"epoch_time_s", &Truth::epoch_time_s, 0, false},
    {"samples", &Truth::samples, 0, false},
    {"gpu_exponent", &Truth::gpu_exponent, any, true},
    {"floor_s", &Truth::floor_s, 0, true},
    {"cap_exponent", &Truth::cap_exponent, any, true},
    {"cap_knee_w", &Truth::cap_knee_w, 0, true},
    {"clock_exponent", &Truth::clock_exponent, any, true},
    {"clock_knee_mhz", &Truth::clock_knee_mhz, 0, true},
    {"batch_exponent", &Truth::batch_exponent, any, true},
    {"reference_batch", &Truth::reference_batch, 0, false},
    {"warmup_factor", &Truth::warmup_factor, 0, false},
    {"noise_pct", &Truth::noise_pct, 0, true},
    {"run_noise_pct", &Truth::run_noise_pct, 0, true},
    {"full_power_w", &Truth::full_power_w, 0, false},
    {"power_clock_exponent", &Truth::power_clock_exponent, any, true},
    {"power_gpu_exponent", &Truth::power_gpu_exponent, any, true},
    {"power_noise_pct", &Truth::power_noise_pct, 0, true},
    {"final_error", &Truth::final_error, 0, true},
    {"batch_knee", &Truth::batch_knee, 0, false},
    {"batch_error", &Truth::batch_error, 0, true},
    {"quality_noise", &Truth::quality_noise, 0, true},
};

/// Power law up to the knee, flat beyond; without a knee, relative to `maximum` over the whole range.
double limited(double limit, double knee, double maximum, double exponent) {
    if (knee > 0) {
        return std::pow(std::min(limit / knee, 1.0), -exponent);
    }
    return std::pow(limit / maximum, -exponent);
}

double uniform(std::uint64_t bits) {
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

// Streams of random numbers, so that one kind of noise does not shift another.
enum Stream : std::uint64_t { stream_epoch = 1, stream_run, stream_power, stream_error, stream_loss };

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    // SplitMix64 (Steele, Lea, Flood 2014), b steps of its golden-ratio increment from a.
    std::uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

double normal(std::uint64_t seed, std::uint64_t index) {
    const std::uint64_t bits = mix(seed, index);
    return std::sqrt(-2 * std::log(uniform(bits))) *
           std::cos(2 * std::numbers::pi * uniform(mix(bits, index)));
}

Truth parse_truth(const std::string& json, const std::string& origin, const Profile& profile) {
    const auto document = nlohmann::json::parse(json, nullptr, false);
    if (!document.is_object()) {
        throw bad_input("{} is not a JSON object of ground-truth numbers such as {{\"gpu_exponent\": 0.9}}",
                        origin);
    }
    Truth truth(profile);
    for (const auto& [name, value] : document.items()) {
        const Key* key = std::ranges::find(keys, name, &Key::name);
        if (key == std::end(keys)) {
            throw bad_input("{}: unknown key \"{}\"; docs/simulation.md lists the keys of the ground truth",
                            origin, name);
        }
        if (!value.is_number()) {
            throw bad_input("{}: \"{}\" has to be a number, not {}", origin, name, value.dump());
        }
        const double number = value.get<double>();
        if (number < key->minimum || (number == key->minimum && !key->minimum_allowed)) {
            throw bad_input("{}: \"{}\" has to be {} {}, not {}", origin, name,
                            key->minimum_allowed ? "at least" : "above", key->minimum, number);
        }
        truth.*key->value = number;
    }
    return truth;
}

Operating Operating::unlimited(const Truth& truth, const Profile& profile) {
    return {1, profile.limit_max_w, profile.clock_max_mhz, truth.reference_batch, truth.samples};
}

Noise noise(const Truth& truth, std::uint64_t seed, std::uint64_t run, std::uint64_t epoch) {
    const auto deviate = [&](Stream stream, std::uint64_t index, double pct) {
        return std::exp(pct / 100 * normal(mix(mix(seed, stream), run), index));
    };
    return {deviate(stream_epoch, epoch, truth.noise_pct) * deviate(stream_run, 0, truth.run_noise_pct),
            deviate(stream_power, 0, truth.power_noise_pct)};
}

double epoch_time_s(const Truth& truth, const Profile& profile, const Operating& at, const Noise& with) {
    const double work = truth.epoch_time_s * at.samples / truth.samples;
    const double spread = std::pow(at.gpus, -truth.gpu_exponent);
    const double batch = std::pow(at.local_batch / truth.reference_batch, -truth.batch_exponent);
    const double cap = limited(at.power_cap_w, truth.cap_knee_w, profile.limit_max_w, truth.cap_exponent);
    const double clock =
        limited(at.sm_clock_mhz, truth.clock_knee_mhz, profile.clock_max_mhz, truth.clock_exponent);
    return (work * spread * batch * cap * clock + truth.floor_s) * with.time;
}

double natural_power_w(const Truth& truth, const Profile& profile, const Operating& at, const Noise& with) {
    const double dynamic = truth.full_power_w - profile.idle_power_w;
    return profile.idle_power_w +
           dynamic * std::pow(at.sm_clock_mhz / profile.clock_max_mhz, truth.power_clock_exponent) *
               std::pow(at.gpus, -truth.power_gpu_exponent) * with.power;
}

std::vector<Phase> phases(double gpus) {
    constexpr int rounds = 8;
    constexpr double evaluation = 0.06;
    const double communication = 0.12 * (1 - 1 / gpus);
    std::vector<Phase> all;
    for (int i = 0; i < rounds; ++i) {
        all.push_back({(1 - evaluation - communication) / rounds, 1, 99});
        if (communication > 0) {
            all.push_back({communication / rounds, 0.75, 96});
        }
    }
    all.push_back({evaluation, 0.6, 85});
    return all;
}

double phase_power_w(const Truth& truth, const Profile& profile, const Operating& at, const Phase& phase,
                     const Noise& with) {
    const double idle = profile.idle_power_w;
    const double wanted = idle + (natural_power_w(truth, profile, at, with) - idle) * phase.power_share;
    return std::min(wanted, at.power_cap_w);
}

double epoch_energy_j(const Truth& truth, const Profile& profile, const Operating& at, const Noise& with) {
    double power = 0;
    for (const Phase& phase : phases(at.gpus)) {
        power += phase.fraction * phase_power_w(truth, profile, at, phase, with);
    }
    return power * epoch_time_s(truth, profile, at, with);
}

Quality quality(const Truth& truth, double global_batch, std::uint64_t seed, std::uint64_t epoch) {
    const double learned = 1 - std::exp(-static_cast<double>(epoch + 1) / 20);
    const double penalty = truth.batch_error * std::max(0.0, std::log2(global_batch / truth.batch_knee));
    const double error = 0.999 + (truth.final_error + penalty - 0.999) * learned +
                         truth.quality_noise * normal(mix(seed, stream_error), epoch);
    const double loss = 6.9 - (6.9 - 4 * truth.final_error - 2 * penalty) * learned +
                        0.01 * normal(mix(seed, stream_loss), epoch);
    return {std::max(loss, 0.0), std::clamp(error, 0.0, 1.0)};
}

}  // namespace joulemark::sim

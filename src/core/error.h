// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace joulemark {

/// Exit codes of every command. `run` and `tune` return the child's own status instead, and 125 when
/// Joulemark itself failed before the child began.
enum class ExitCode : int { ok = 0, check_failed = 1, bad_input = 2, environment = 3, before_child = 125 };

/// Ends a command. Thrown where the problem is known, caught once in main, which prints what() as the
/// one sentence the user sees: what is wrong, where, and what to do.
class Error : public std::runtime_error {
  public:
    Error(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
    ExitCode code() const { return code_; }

  private:
    ExitCode code_;
};

/// The user's input is wrong: exit 2.
template <typename... Args>
[[nodiscard]] Error bad_input(fmt::format_string<Args...> format, Args&&... args) {
    return Error(ExitCode::bad_input, fmt::format(format, std::forward<Args>(args)...));
}

/// The machine cannot do it (no permission, no device, disk full): exit 3.
template <typename... Args>
[[nodiscard]] Error environment_error(fmt::format_string<Args...> format, Args&&... args) {
    return Error(ExitCode::environment, fmt::format(format, std::forward<Args>(args)...));
}

/// An expected failure, as a value: why something is not there and what the user can do about it.
struct Failure {
    std::string reason;
    std::string remedy;
};

/// A value, or the reason there is none.
template <typename T>
class Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}           // NOLINT: implicit
    Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: implicit

    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() { return std::get<0>(state_); }
    const T& operator*() const { return std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Failure& failure() const { return std::get<1>(state_); }

  private:
    std::variant<T, Failure> state_;
};

}  // namespace joulemark

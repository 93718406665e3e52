// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::train {

// Generous limits: beyond them no machine of today trains the model, and it would take long, or all memory,
// to find out.
constexpr std::int64_t most_units = 65'536;  ///< of channels, features, points of a side
constexpr std::int64_t most_layers = 1'000;  ///< or other repeats

/// A model's own settings, `--set NAME=VALUE`. The model asks for each with its default; `finish` then
/// refuses those that nobody asked for, naming the ones there are.
class HyperParameters {
  public:
    /// Throws bad_input for text that is not NAME=VALUE, or a name given twice.
    explicit HyperParameters(const std::vector<std::string>& settings = {});

    /// Throw bad_input when the given text is not such a value, or out of range.
    std::int64_t integer(const std::string& name, std::int64_t fallback, std::int64_t minimum,
                         std::int64_t maximum = most_units);
    std::vector<std::int64_t> integers(const std::string& name, std::vector<std::int64_t> fallback,
                                       std::int64_t minimum, std::int64_t maximum);
    double real(const std::string& name, double fallback, double minimum, double maximum);
    /// One of `allowed`; any text where that is empty.
    std::string text(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& allowed = {});
    bool flag(const std::string& name, bool fallback);

    void finish(std::string_view model) const;

    /// What the model asked for so far, with the values it was given: defaults are no different when written
    /// out.
    const std::map<std::string, std::string>& values() const { return values_; }

  private:
    const std::string* find(const std::string& name);
    template <typename Value>
    Value answer(const std::string& name, Value value);
    std::map<std::string, std::string> given_;
    std::vector<std::string> known_;
    std::map<std::string, std::string> values_;
};

}  // namespace joulemark::train

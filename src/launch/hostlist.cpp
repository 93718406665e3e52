// SPDX-License-Identifier: Apache-2.0
#include "launch/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "core/csv.h"

namespace joulemark::launch {
namespace {

constexpr std::size_t most_hosts = 100'000;
using Names = std::vector<std::string>;

/// Cuts `text` at commas outside brackets. Nothing when brackets do not match or nest.
std::optional<std::vector<std::string_view>> parts(std::string_view text) {
    std::vector<std::string_view> result;
    bool inside = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i == text.size() || (text[i] == ',' && !inside)) {
            result.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        } else if (text[i] == '[' || text[i] == ']') {
            if (inside == (text[i] == '[')) {
                return std::nullopt;
            }
            inside = !inside;
        }
    }
    return inside ? std::nullopt : std::optional(result);
}

/// "001-003,7" -> 001 002 003 7. The width of the first number is kept.
std::optional<Names> numbers(std::string_view ranges) {
    Names result;
    const auto list = parts(ranges);
    for (const std::string_view range : *list) {
        const std::string_view first = range.substr(0, range.find('-'));
        const std::string_view last = first.size() == range.size() ? first : range.substr(first.size() + 1);
        const auto from = csv::integer(first);
        const auto to = csv::integer(last);
        if (!from || !to || *from < 0 || *to < *from ||
            *to - *from >= static_cast<std::int64_t>(most_hosts)) {
            return std::nullopt;
        }
        for (std::int64_t number = *from; number <= *to; ++number) {
            result.push_back(fmt::format("{:0{}}", number, first.size()));
        }
    }
    return result;
}

std::optional<Names> expand(std::string_view pattern) {
    const std::size_t open = pattern.find('[');
    if (open == std::string_view::npos) {
        return pattern.empty() ? std::nullopt : std::optional(Names{std::string(pattern)});
    }
    const std::size_t close = pattern.find(']', open);
    const auto middles = numbers(pattern.substr(open + 1, close - open - 1));
    const std::string_view tail = pattern.substr(close + 1);
    const auto ends = tail.empty() ? std::optional(Names{""}) : expand(tail);
    if (!middles || !ends || middles->size() * ends->size() > most_hosts) {
        return std::nullopt;
    }
    Names result;
    for (const std::string& middle : *middles) {
        for (const std::string& end : *ends) {
            result.push_back(std::string(pattern.substr(0, open)) + middle + end);
        }
    }
    return result;
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view list) {
    std::vector<std::string> hosts;
    const auto patterns = parts(list);
    if (!patterns) {
        return {};
    }
    for (const std::string_view pattern : *patterns) {
        const auto names = expand(pattern);
        if (!names || hosts.size() + names->size() > most_hosts) {
            return {};
        }
        hosts.insert(hosts.end(), names->begin(), names->end());
    }
    return hosts;
}

std::optional<int> count_on_node(std::string_view counts, int node) {
    std::int64_t nodes = 0;
    while (!counts.empty() && node >= 0) {
        const std::string_view entry = counts.substr(0, counts.find(','));
        counts.remove_prefix(std::min(counts.size(), entry.size() + 1));
        const std::size_t times = entry.find("(x");
        const auto count = csv::integer(entry.substr(0, times));
        const auto repeat = times == std::string_view::npos
                                ? std::optional<std::int64_t>(1)
                                : csv::integer(entry.substr(times + 2, entry.size() - times - 3));
        if (!count || !repeat || *count < 1 || *count > 1'000'000 || *repeat < 1) {
            return std::nullopt;
        }
        nodes += *repeat;
        if (node < nodes) {
            return static_cast<int>(*count);
        }
    }
    return std::nullopt;
}

}  // namespace joulemark::launch

// SPDX-License-Identifier: Apache-2.0
#include "meter/message.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/csv.h"
#include "core/run_format.h"

namespace joulemark::meter {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> event_names{"begin", "end", "abort", "config", "note", "lost"};

Failure malformed(std::string_view what) {
    return {std::string(what), "see docs/schema.md, Marking protocol"};
}

std::optional<double> number(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) {
        return std::nullopt;
    }
    const double value = found->get<double>();
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> integer(const json& object, const char* key) {
    const auto value = number(object, key);
    if (!value || std::abs(*value) >= 9.2e18) {
        return std::nullopt;
    }
    return object[key].is_number_integer() ? object[key].get<std::int64_t>() : std::llround(*value);
}

std::string string(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string cell(std::optional<double> value) {
    return value ? csv::text(*value) : "";
}

}  // namespace

Result<Message> parse_message(std::string_view text) {
    const json object = json::parse(text, nullptr, false);
    if (!object.is_object()) {
        return malformed("it is not a JSON object");
    }
    const auto event = std::ranges::find(event_names, string(object, "event"));
    if (event == event_names.end()) {
        return malformed("its event is none of begin, end, abort, config, note, lost");
    }
    Message message;
    message.event = static_cast<Message::Event>(event - event_names.begin());
    message.name = string(object, "name");
    if (message.edge() && message.name.empty()) {
        if (object.contains("name")) {
            return malformed("its name is empty or no text");
        }
        message.name = "epoch";
    }
    if (message.name.starts_with(run_format::own_prefix)) {
        return malformed("names that start with 'joulemark.' are the meter's own");
    }
    message.index = integer(object, "index");
    message.time_ns = integer(object, "t");
    const auto rank = integer(object, "rank").value_or(0);
    if (rank < 0 || rank > std::numeric_limits<int>::max()) {
        return malformed("its rank is no rank");
    }
    message.rank = static_cast<int>(rank);
    message.samples = number(object, "samples");
    message.updates = number(object, "updates");
    message.tokens = number(object, "tokens");
    message.loss = number(object, "loss");
    if (const auto quality = object.find("quality"); quality != object.end() && quality->is_object()) {
        message.quality_name = string(*quality, "name");
        message.quality = number(*quality, "value");
        message.quality_direction = string(*quality, "direction");
    }
    if (const auto data = object.find("data"); data != object.end() && data->is_object()) {
        message.data = data->dump(-1, ' ', false, json::error_handler_t::replace);
    } else if (message.event == Message::Event::config || message.event == Message::Event::note) {
        return malformed("the data of a config or note are no JSON object");
    }
    if (message.event == Message::Event::lost) {
        const auto count = integer(object, "count").value_or(0);
        if (count < 1) {
            return malformed("it tells of lost messages without their count");
        }
        message.count = static_cast<std::uint64_t>(count);
    }
    message.source = "socket";
    return message;
}

std::string to_json(const Message& message) {
    json object{{"event", event_names[static_cast<std::size_t>(message.event)]}, {"rank", message.rank}};
    const auto put = [&](const char* key, const auto& value) {
        if (value) {
            object[key] = *value;
        }
    };
    if (!message.name.empty()) {
        object["name"] = message.name;
    }
    put("index", message.index);
    put("t", message.time_ns);
    put("samples", message.samples);
    put("updates", message.updates);
    put("tokens", message.tokens);
    put("loss", message.loss);
    if (message.quality) {
        object["quality"] = {{"name", message.quality_name},
                             {"value", *message.quality},
                             {"direction", message.quality_direction}};
    }
    if (message.event == Message::Event::lost) {
        object["count"] = message.count;
    }
    if (!message.data.empty()) {
        object["data"] = json::parse(message.data, nullptr, false);
    }
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string to_csv(const Message& message, std::int64_t time_ns) {
    const std::array<std::string, run_format::region_columns.size()> cells{
        std::to_string(time_ns),
        std::string(event_names[static_cast<std::size_t>(message.event)]),
        csv::quote(message.name),
        message.index ? std::to_string(*message.index) : "",
        std::to_string(message.rank),
        cell(message.samples),
        cell(message.updates),
        cell(message.tokens),
        cell(message.loss),
        csv::quote(message.quality_name),
        cell(message.quality),
        csv::quote(message.quality_direction),
        message.source,
        csv::quote(message.data)};
    std::string line = cells.front();
    for (std::size_t i = 1; i < cells.size(); ++i) {
        line += ',';
        line += cells[i];
    }
    return line + '\n';
}

int drop_negative_counts(Message& message) {
    int dropped = 0;
    for (auto* count : {&message.samples, &message.updates, &message.tokens}) {
        if (count->value_or(0) < 0) {
            count->reset();
            ++dropped;
        }
    }
    return dropped;
}

bool MessageIndex::Numbers::insert(std::int64_t number) {
    const auto after = spans_.upper_bound(number);
    const auto before = after == spans_.begin() ? spans_.end() : std::prev(after);
    if (before != spans_.end() && number < before->second) {
        return false;
    }
    const bool meets_after = after != spans_.end() && after->first == number + 1;
    const std::int64_t end = meets_after ? after->second : number + 1;
    if (meets_after) {
        spans_.erase(after);
    }
    if (before != spans_.end() && before->second == number) {
        before->second = end;
    } else {
        spans_.emplace(number, end);
    }
    return true;
}

std::int64_t MessageIndex::of(const Message& message) {
    Count& count = counts_[{message.name, message.rank}];
    if (message.event == Message::Event::begin) {
        const std::int64_t index = message.index.value_or(count.next);
        repeated_ += count.used.insert(index) ? 0 : 1;
        count.open.push_back(index);
        count.next = index + 1;
        return index;
    }
    const auto last = message.index ? std::find(count.open.rbegin(), count.open.rend(), *message.index)
                                    : count.open.rbegin();
    // An end without a begin is an epoch whose begin got lost: it takes a number of its own.
    const std::int64_t index = message.index ? *message.index : last != count.open.rend() ? *last : count.next;
    if (last != count.open.rend()) {
        count.open.erase(std::prev(last.base()));
    } else {
        count.used.insert(index);
    }
    count.next = std::max(count.next, index + 1);
    return index;
}

}  // namespace joulemark::meter

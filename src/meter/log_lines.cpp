// SPDX-License-Identifier: Apache-2.0
#include "meter/log_lines.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/csv.h"
#include "core/error.h"

namespace joulemark::meter {
namespace {

using nlohmann::json;

constexpr std::string_view mllog_prefix = ":::MLLOG ";

/// MLPerf's intervals, the region each becomes, and the metadata that numbers it.
struct Interval {
    std::string_view start, stop, region;
    const char* number;
};
constexpr std::array intervals{
    Interval{"init_start", "init_stop", "init", nullptr},
    Interval{"run_start", "run_stop", "run", nullptr},
    Interval{"epoch_start", "epoch_stop", "epoch", "epoch_num"},
    Interval{"block_start", "block_stop", "block", "first_epoch_num"},
    Interval{"eval_start", "eval_stop", "eval", "epoch_num"},
};

Message config(const char* key, double value) {
    Message message;
    message.event = Message::Event::config;
    message.source = "mllog";
    message.data = json{{key, value}}.dump();
    return message;
}

/// What a group of a line matched, as a number.
std::optional<double> number(const std::cmatch& match, std::optional<std::size_t> group) {
    return group && match[*group].matched ? csv::number(match[*group].str()) : std::nullopt;
}

}  // namespace

void MllogReader::read(std::string_view line, std::vector<Message>& messages) {
    const std::size_t at = line.find(mllog_prefix);  // launchers put the rank in front
    if (at == std::string_view::npos) {
        return;
    }
    const json object = json::parse(line.substr(at + mllog_prefix.size()), nullptr, false);
    if (!object.is_object() || !object.contains("key") || !object["key"].is_string()) {
        return;
    }
    const auto key = object["key"].get<std::string>();
    const auto value = object.contains("value") && object["value"].is_number()
                           ? std::optional(object["value"].get<double>())
                           : std::nullopt;
    if (key == "train_samples" && value) {
        train_samples_ = value;
        messages.push_back(config("dataset_samples", *value));
    } else if (key == "global_batch_size" && value) {
        messages.push_back(config("global_batch", *value));
    } else if (key == "eval_accuracy" && value) {
        accuracy_ = value;
    }
    for (const Interval& interval : intervals) {
        if (key != interval.start && key != interval.stop) {
            continue;
        }
        Message message;
        message.event = key == interval.start ? Message::Event::begin : Message::Event::end;
        message.name = interval.region;
        message.source = "mllog";
        const auto metadata = object.find("metadata");
        if (interval.number != nullptr && metadata != object.end() && metadata->is_object() &&
            metadata->contains(interval.number) && (*metadata)[interval.number].is_number_integer()) {
            message.index = (*metadata)[interval.number].get<std::int64_t>();
        }
        if (message.event == Message::Event::end) {
            if (interval.region == "epoch") {
                message.samples = train_samples_;
            }
            if (accuracy_) {
                message.quality_name = "eval_accuracy";
                message.quality = std::exchange(accuracy_, std::nullopt);
                message.quality_direction = "higher";
            }
        }
        messages.push_back(std::move(message));
    }
}

EpochRegexReader::EpochRegexReader(const std::string& pattern, Line line) : pattern_(pattern), line_(line) {
    // std::regex has no named groups: their names are taken out, and their numbers noted.
    std::string plain;
    std::optional<std::size_t> epoch_group;
    std::size_t group = 0;
    bool in_class = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        plain += pattern[i];
        if (pattern[i] == '\\' && i + 1 < pattern.size()) {
            plain += pattern[++i];
        } else if (pattern[i] == '[' || pattern[i] == ']') {
            in_class = pattern[i] == '[';
        } else if (pattern[i] == '(' && !in_class) {
            const std::string_view rest = std::string_view(pattern).substr(i + 1);
            const std::size_t open = rest.starts_with("?<") ? 2 : rest.starts_with("?P<") ? 3 : 0;
            const std::size_t close = rest.find('>');
            if (open != 0 && close != std::string_view::npos) {
                const std::string_view name = rest.substr(open, close - open);
                ++group;
                if (name == "loss") {
                    loss_group_ = group;
                } else if (name == "samples") {
                    samples_group_ = group;
                } else if (name == "epoch") {
                    epoch_group = group;
                } else {
                    throw bad_input("{}: a group can be named epoch, loss or samples, not '{}'", option(), name);
                }
                i += close + 1;
            } else if (!rest.starts_with('?')) {
                epoch_groups_.push_back(++group);
            }
        }
    }
    if (epoch_group) {
        epoch_groups_ = {*epoch_group};
    }
    try {
        // libstdc++'s breadth-first matcher: no pattern takes exponential time, which the command would wait for.
        regex_ = std::regex(plain, std::regex::ECMAScript | std::regex_constants::__polynomial);
    } catch (const std::regex_error& error) {
        throw bad_input("{} is no regular expression: {}", option(), error.what());
    }
}

std::string EpochRegexReader::option() const {
    return fmt::format("{} '{}'", line_ == Line::at_end ? "--epoch-end-regex" : "--epoch-regex", pattern_);
}

std::optional<std::int64_t> EpochRegexReader::epoch_of(const std::cmatch& match) const {
    for (const std::size_t group : epoch_groups_) {
        if (const auto number = match[group].matched ? csv::integer(match[group].str()) : std::nullopt) {
            return number;
        }
    }
    return std::nullopt;
}

void EpochRegexReader::start(std::vector<Message>& messages) {
    if (line_ == Line::at_end) {
        begin(messages);
    }
}

void EpochRegexReader::read(std::string_view line, std::vector<Message>& messages) {
    // libstdc++ matches by recursion: a long line would overflow the stack of the thread that reads.
    constexpr std::size_t longest = 1024;
    line = line.substr(0, longest);
    std::cmatch match;
    if (!std::regex_search(line.data(), line.data() + line.size(), match, regex_)) {
        return;
    }
    const Values values{number(match, loss_group_), number(match, samples_group_)};
    const auto epoch = epoch_of(match);
    if (epoch && std::exchange(epoch_, epoch) == epoch) {
        repeated_ = {values.loss ? values.loss : repeated_.loss,
                     values.samples ? values.samples : repeated_.samples};
        return;
    }
    const Values repeated = std::exchange(repeated_, {});
    if (line_ == Line::at_end) {
        end(values, messages);
    } else if (open_) {
        end({repeated.loss ? repeated.loss : values.loss, repeated.samples ? repeated.samples : values.samples},
            messages);
    }
    begin(messages);
}

void EpochRegexReader::finish(std::vector<Message>& messages) {
    if (open_ && line_ == Line::at_begin) {
        end(repeated_, messages);
    }
}

void EpochRegexReader::begin(std::vector<Message>& messages) {
    Message& begin = messages.emplace_back();
    begin.event = Message::Event::begin;
    begin.name = "epoch";
    begin.source = "regex";
    open_ = true;
}

void EpochRegexReader::end(const Values& values, std::vector<Message>& messages) {
    Message& end = messages.emplace_back();
    end.event = Message::Event::end;
    end.name = "epoch";
    end.source = "regex";
    end.loss = values.loss;
    end.samples = values.samples;
    open_ = false;
}

}  // namespace joulemark::meter

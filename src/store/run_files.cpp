// SPDX-License-Identifier: Apache-2.0
#include "store/run_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "core/files.h"
#include "core/run_format.h"
#include "store/document_shape.h"
#include "store/mean.h"

namespace joulemark::store {
namespace {

enum Role : int { role_none = -1, role_time = -2, role_device = -3, role_read = -4 };

/// A row of samples holds numbers and identifiers: no quotes, so fields are views of the line.
void split_plain(std::string_view line, std::vector<std::string_view>& fields) {
    fields.clear();
    for (std::size_t at = 0;;) {
        const std::size_t end = std::min(line.find(',', at), line.size());
        fields.push_back(line.substr(at, end - at));
        if (end == line.size()) {
            return;
        }
        at = end + 1;
    }
}

/// A bit mask may be written in hexadecimal.
std::optional<double> mask(std::string_view field) {
    if (!field.starts_with("0x")) {
        return csv::number(field);
    }
    std::uint64_t bits = 0;
    const auto [end, status] = std::from_chars(field.data() + 2, field.data() + field.size(), bits, 16);
    if (status != std::errc{} || end != field.data() + field.size()) {
        return std::nullopt;
    }
    return static_cast<double>(bits);
}

Warning damaged_lines(const std::filesystem::path& path, std::size_t count, std::size_t first,
                      std::string_view what) {
    return {"damaged_lines",
            fmt::format("{}: {} line{} skipped that {} no {}, the first is line {}", path.filename().string(),
                        count, count == 1 ? "" : "s", count == 1 ? "is" : "are", what, first)};
}

/// Sum of the parts that are there.
struct Sum {
    std::optional<double> total;
    void add(std::optional<double> part) {
        if (part) {
            total = total.value_or(0) + *part;
        }
    }
};

/// One region while its edges come in.
struct Gathering {
    std::optional<std::int64_t> start_ns, end_ns;
    std::int64_t begins = 0, ends = 0;
    bool aborted = false;
    std::map<std::int64_t, std::int64_t> open;  ///< begins without an end, by rank
    Sum samples, updates, tokens;
    Mean loss, quality;
    std::string quality_name, quality_direction, source;
};

class MarkReader {
  public:
    MarkReader(const std::vector<std::string>& header, std::int64_t latest_ns) : latest_ns_(latest_ns) {
        for (std::size_t column = 0; column < header.size(); ++column) {
            columns_[header[column]] = column;
        }
    }

    bool complete() const { return columns_.contains("time_ns") && columns_.contains("event"); }

    /// False for a line that is none of regions.csv.
    bool take(const std::vector<std::string>& fields) {
        if (fields.size() != columns_.size()) {
            return false;
        }
        const auto field = [&](const char* name) -> std::string_view {
            const auto found = columns_.find(name);
            return found == columns_.end() ? std::string_view() : std::string_view(fields[found->second]);
        };
        const auto time = csv::integer(field("time_ns"));
        if (!time || *time < 0 || *time > latest_ns_) {
            return false;
        }
        const std::string_view event = field("event");
        if (event == "config" || event == "note") {
            auto data = nlohmann::json::parse(field("data"), nullptr, false);
            if (!data.is_object()) {
                return false;
            }
            if (event == "config") {
                marks_.config.update(data);
            } else {
                marks_.notes.push_back(std::move(data));
            }
            return true;
        }
        const auto index =
            field("index").empty() ? std::optional<std::int64_t>(0) : csv::integer(field("index"));
        if ((event != "begin" && event != "end" && event != "abort") || field("name").empty() || !index) {
            return false;
        }
        const std::int64_t rank = csv::integer(field("rank")).value_or(0);
        Gathering& region = turn_of(rank, event == "begin", regions_[{std::string(field("name")), *index}]);
        std::int64_t& open = region.open[rank];
        region.source = field("source");
        if (event == "begin") {
            ++region.begins;
            ++open;
            region.start_ns = std::min(region.start_ns.value_or(*time), *time);
            return true;
        }
        ++region.ends;
        open -= open > 0 ? 1 : 0;
        region.end_ns = std::max(region.end_ns.value_or(*time), *time);
        if (event == "abort") {
            region.aborted = true;
            return true;
        }
        const auto samples = count(field("samples"));
        region.samples.add(samples);
        region.updates.add(count(field("updates")));
        region.tokens.add(count(field("tokens")));
        const double weight =
            samples && *samples > 0 ? *samples : 1;  // a part that tells no samples counts as one
        region.loss.add(csv::number(field("loss")), weight);
        if (const auto quality = csv::number(field("quality"))) {
            region.quality.add(quality, weight);
            region.quality_name = field("quality_name");
            region.quality_direction = field("quality_direction");
        }
        return true;
    }

    Marks finish(std::vector<Warning>& warnings) {
        std::map<std::string, std::int64_t> last;  // index of each name
        for (const auto& [key, turns] : regions_) {
            last[key.first] = key.second;
        }
        for (const auto& [key, turns] : regions_) {
            const auto& [name, index] = key;
            keep(name, index, turns.front(), warnings);
            const std::int64_t renumbered = last[name] + 1;
            for (std::size_t turn = 1; turn < turns.size(); ++turn) {
                keep(name, ++last[name], turns[turn], warnings);
            }
            if (turns.size() > 1) {
                warnings.push_back(
                    {"repeated_index",
                     fmt::format("region {} {} was marked {} times by one rank: the repeats are regions of "
                                 "their own, numbered from {}",
                                 name, index, turns.size(), renumbered)});
            }
        }
        if (negative_ > 0) {
            warnings.push_back({"negative_counts",
                                fmt::format("{} count{} of samples, updates or tokens below zero: left out",
                                            negative_, negative_ == 1 ? "" : "s")});
        }
        std::ranges::stable_sort(marks_.regions, {}, &RegionRecord::start_ns);
        return std::move(marks_);
    }

  private:
    /// Ranks share a region; a rank that begins again what it has ended begins another one.
    static Gathering& turn_of(std::int64_t rank, bool begins, std::vector<Gathering>& turns) {
        std::size_t turn = turns.size();
        while (turn > 0 && !turns[turn - 1].open.contains(rank)) {
            --turn;
        }
        // One beyond the latest of this rank, which goes on unless it has ended.
        if (turn > 0 && !(begins && turns[turn - 1].open.at(rank) == 0)) {
            --turn;
        }
        return turn < turns.size() ? turns[turn] : turns.emplace_back();
    }

    std::optional<double> count(std::string_view field) {
        const auto value = csv::number(field);
        if (value && *value < 0) {
            ++negative_;
            return std::nullopt;
        }
        return value;
    }

    void keep(const std::string& name, std::int64_t index, const Gathering& from,
              std::vector<Warning>& warnings) {
        if (!from.start_ns) {
            warnings.push_back({"end_without_begin",
                                fmt::format("region {} {} has an end and no begin: left out", name, index)});
            return;
        }
        if (from.ends > 0 && *from.end_ns < *from.start_ns) {
            warnings.push_back({"end_before_begin",
                                fmt::format("region {} {} ends before it begins: left out", name, index)});
            return;
        }
        RegionRecord region;
        region.name = name;
        region.index = index;
        region.start_ns = *from.start_ns;
        region.open = from.aborted || from.ends < from.begins;
        region.end_ns = from.ends < from.begins ? 0 : *from.end_ns;
        region.ranks = static_cast<std::int64_t>(from.open.size());
        region.samples = from.samples.total;
        region.updates = from.updates.total;
        region.tokens = from.tokens.total;
        region.loss = from.loss.value();
        region.quality = from.quality.value();
        region.quality_name = from.quality_name;
        region.quality_direction = from.quality_direction;
        region.source = from.source;
        marks_.regions.push_back(std::move(region));
    }

    std::int64_t latest_ns_;
    std::map<std::string, std::size_t, std::less<>> columns_;
    /// By name and index; more than one where a rank used an index again.
    std::map<std::pair<std::string, std::int64_t>, std::vector<Gathering>> regions_;
    std::size_t negative_ = 0;
    Marks marks_;
};

}  // namespace

std::optional<nlohmann::json> read_json(const std::filesystem::path& file, const nlohmann::json& shape,
                                        std::vector<Warning>& warnings) {
    const auto content = files::read(file);
    if (!content) {
        return std::nullopt;
    }
    auto parsed = nlohmann::json::parse(*content, nullptr, false);
    if (!parsed.is_object()) {
        warnings.push_back({"damaged_file",
                            fmt::format("{} is no JSON object: taken as missing", file.filename().string())});
        return std::nullopt;
    }
    if (const auto damaged = keep_to_shape(parsed, shape); !damaged.empty()) {
        warnings.push_back(
            {"damaged_file",
             fmt::format("{}: {}{} is not of the kind it should be: taken as missing",
                         file.filename().string(), damaged.front(),
                         damaged.size() == 1 ? "" : fmt::format(" (and {} more)", damaged.size() - 1))});
    }
    return parsed;
}

SampleReader::SampleReader(const std::filesystem::path& path, sensors::File file, std::int64_t latest_ns)
    : path_(path), latest_ns_(latest_ns) {
    if (!std::filesystem::exists(path)) {
        return;
    }
    lines_.emplace(path.string());
    std::string_view line;
    if (!lines_->next(line)) {
        return;
    }
    split_plain(line, fields_);
    for (const std::string_view name : fields_) {
        if (name == run_format::sample_columns[0]) {
            roles_.push_back(role_time);
        } else if (name == run_format::sample_columns[1]) {
            roles_.push_back(role_read);
        } else if (name == run_format::sample_columns[2]) {
            roles_.push_back(role_device);
        } else if (const auto metric = sensors::metric_named(file, name)) {
            roles_.push_back(static_cast<int>(metrics_.size()));
            metrics_.push_back(*metric);
        } else {
            roles_.push_back(role_none);
        }
    }
}

bool SampleReader::parse(std::string_view line, SampleRow& row) {
    split_plain(line, fields_);
    if (fields_.size() != roles_.size()) {
        return false;
    }
    row.values.assign(metrics_.size(), std::numeric_limits<double>::quiet_NaN());
    row.device = {};
    row.read_ns = 0;
    std::optional<std::int64_t> time;
    for (std::size_t column = 0; column < fields_.size(); ++column) {
        const int role = roles_[column];
        if (role == role_time) {
            time = csv::integer(fields_[column]);
        } else if (role == role_read) {
            row.read_ns = std::max<std::int64_t>(0, csv::integer(fields_[column]).value_or(0));
        } else if (role == role_device) {
            row.device = fields_[column];
        } else if (role >= 0 && !fields_[column].empty()) {
            const auto value = mask(fields_[column]);
            if (!value) {
                return false;
            }
            row.values[static_cast<std::size_t>(role)] = std::isfinite(*value) ? *value : std::nan("");
        }
    }
    row.time_ns = time.value_or(-1);
    return row.time_ns >= 0 && row.time_ns <= latest_ns_ && !row.device.empty();
}

bool SampleReader::next(SampleRow& row) {
    std::string_view line;
    while (lines_ && lines_->next(line)) {
        ++rows_;
        if (parse(line, row)) {
            return true;
        }
        if (skipped_++ == 0) {
            first_skipped_ = lines_->line_number();
        }
    }
    return false;
}

std::optional<Warning> SampleReader::damage() const {
    if (skipped_ == 0) {
        return std::nullopt;
    }
    return damaged_lines(path_, skipped_, first_skipped_, "sample");
}

Marks read_marks(const std::filesystem::path& file, std::int64_t latest_ns, std::vector<Warning>& warnings) {
    if (!std::filesystem::exists(file)) {
        return {};
    }
    csv::LineReader lines(file.string());
    std::string_view line;
    std::vector<std::string> fields;
    if (!lines.next(line)) {
        return {};
    }
    csv::split(line, fields);
    MarkReader reader(fields, latest_ns);
    if (!reader.complete()) {
        warnings.push_back(
            {"damaged_file", fmt::format("{} has no columns time_ns and event: no region is read",
                                         file.filename().string())});
        return {};
    }
    std::size_t rows = 0, skipped = 0, first_skipped = 0;
    while (lines.next(line)) {
        ++rows;
        csv::split(line, fields);
        if (!reader.take(fields) && skipped++ == 0) {
            first_skipped = lines.line_number();
        }
    }
    if (skipped > 0) {
        warnings.push_back(damaged_lines(file, skipped, first_skipped, "mark"));
    }
    Marks marks = reader.finish(warnings);
    marks.rows = rows;
    return marks;
}

}  // namespace joulemark::store

// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <zlib.h>

#include "core/error.h"
#include "core/units.h"

namespace joulemark::report {
namespace {

using nlohmann::json;

/// JSON that can stand inside <script>: "<" appears only in strings, where the escape means the same.
std::string script_safe(const json& document) {
    const std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size() + text.size() / 64);
    for (const char c : text) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

void append_numbers(std::string& out, std::string_view key, const std::vector<double>& values) {
    fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
    for (std::size_t i = 0; i < values.size(); ++i) {
        out += i == 0 ? "" : ",";
        if (std::isfinite(values[i])) {
            fmt::format_to(std::back_inserter(out), "{:.5g}", values[i]);
        } else {
            out += "null";
        }
    }
    out += ']';
}

/// Times relative to the series' first bin, which start_ns places on the host's clock.
std::string series_json(const store::Series& series) {
    const std::int64_t start = series.time_ns.empty() ? 0 : series.time_ns.front();
    std::string out = fmt::format("{{\"start_ns\":{},\"time_s\":[", start);
    for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
        fmt::format_to(std::back_inserter(out), "{}{:.12g}", i == 0 ? "" : ",", seconds(series.time_ns[i] - start));
    }
    out += ']';
    append_numbers(out, "minimum", series.minimum);
    append_numbers(out, "mean", series.mean);
    append_numbers(out, "maximum", series.maximum);
    out += '}';
    return out;
}

std::string data_block(std::string_view id, std::string_view type, std::string_view content) {
    return fmt::format("<script type=\"{}\" id=\"{}\">{}</script>\n", type, id, content);
}

}  // namespace

std::string gzip(std::string_view bytes) {
    z_stream stream{};
    constexpr int gzip_header = 15 + 16;
    if (deflateInit2(&stream, 9, Z_DEFLATED, gzip_header, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        throw environment_error("traces could not be compressed: zlib has no memory; free some and try again");
    }
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);  // in one step: deflateBound promises that it fits
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string base64(std::string_view bytes) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        unsigned group = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            out += j <= count ? alphabet[group >> (18 - 6 * j) & 63] : '=';
        }
    }
    return out;
}

std::string html(const Model& model, std::string_view page) {
    std::map<std::string, std::vector<const store::Series*>> by_run;
    for (const store::Series& series : model.traces) {
        by_run[series.run].push_back(&series);
    }
    json index = json::array();
    std::string blocks;
    for (const auto& [run, traces] : by_run) {
        const std::string id = fmt::format("joulemark-traces-{}", index.size());
        json names = json::array();
        std::string content = "[";
        for (const store::Series* series : traces) {
            names.push_back({{"host", series->host}, {"device", series->device}, {"metric", series->metric}});
            content += (content.size() == 1 ? "" : ",") + series_json(*series);
        }
        content += ']';
        index.push_back({{"run", run}, {"block", id}, {"series", std::move(names)}});
        blocks += data_block(id, "application/gzip;base64", base64(gzip(content)));
    }
    const json document = {{"analysis", model.analysis},       {"traces", std::move(index)},
                           {"study", model.study},             {"environment", model.environment},
                           {"generated", model.generated}};

    static constexpr std::string_view marker = "<!--joulemark:data-->";
    const std::size_t at = page.find(marker);
    if (at == std::string_view::npos) {
        throw environment_error("the page built into this binary has no place for data: build web/ again");
    }
    return fmt::format("{}{}{}{}", page.substr(0, at),
                       data_block("joulemark-model", "application/json", script_safe(document)), blocks,
                       page.substr(at + marker.size()));
}

}  // namespace joulemark::report

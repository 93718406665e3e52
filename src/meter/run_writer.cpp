// SPDX-License-Identifier: Apache-2.0
#include "meter/run_writer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/run_format.h"
#include "core/streams.h"

namespace joulemark::meter {
namespace {

constexpr auto flush_period = std::chrono::milliseconds(500);
constexpr std::array sample_file_names{run_format::gpu_file, run_format::cpu_file, run_format::node_file};

template <typename Header>
std::string header_line(const Header& fixed, const std::vector<sensors::Metric>& metrics) {
    std::string line;
    for (const auto name : fixed) {
        line += line.empty() ? "" : ",";
        line += name;
    }
    for (const auto metric : metrics) {
        line += ',';
        line += sensors::info(metric).name;
    }
    return line + '\n';
}

template <typename Number>
void append_number(std::string& text, Number number) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

void RowChannel::push(const Row& row) {
    while (!ring_.push(row)) {
        if (!writer_.simulated_) {
            lost_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        writer_.wake();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (ring_.size() * 2 >= ring_.capacity()) {
        writer_.wake();
    }
}

RunWriter::RunWriter(std::filesystem::path folder, const nlohmann::json& run,
                     const std::vector<std::unique_ptr<sensors::Source>>& sources, Totals& totals,
                     bool simulated)
    : folder_(std::move(folder)), totals_(totals), simulated_(simulated) {
    files::make_directories(folder_);
    if (std::filesystem::exists(folder_ / run_format::run_file)) {
        throw environment_error("{} already holds a run: choose another --run-id or --name",
                                folder_.string());
    }
    files::write_atomically(folder_ / run_format::run_file,
                            run.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');

    for (const auto& source : sources) {
        for (const auto metric : source->info().metrics) {
            auto& columns = sample_files_[static_cast<std::size_t>(sensors::info(metric).file)].columns;
            if (std::ranges::find(columns, metric) == columns.end()) {
                columns.push_back(metric);
            }
        }
    }
    for (std::size_t i = 0; i < sample_files_.size(); ++i) {
        std::ranges::sort(sample_files_[i].columns);
        sample_files_[i].file.emplace(folder_ / sample_file_names[i]);
        sample_files_[i].file->append(header_line(run_format::sample_columns, sample_files_[i].columns), 0);
    }
    regions_.emplace(folder_ / run_format::regions_file);
    regions_->append(header_line(run_format::region_columns, {}), 0);

    for (const auto& source : sources) {
        const auto& metrics = source->info().metrics;
        if (metrics.empty() || metrics.size() > max_row_values) {
            throw std::logic_error("source " + source->info().name + " has an unsupported number of metrics");
        }
        Layout layout{.file = static_cast<std::size_t>(sensors::info(metrics.front()).file),
                      .device = source->info().device};
        for (const auto column : sample_files_[layout.file].columns) {
            const auto found = std::ranges::find(metrics, column);
            layout.value_of_column.push_back(
                found == metrics.end() ? -1 : static_cast<int>(found - metrics.begin()));
            layout.flags.push_back(sensors::info(column).behaviour == sensors::Behaviour::flags);
        }
        layouts_.push_back(std::move(layout));
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

RunWriter::~RunWriter() {
    stop();
}

RowChannel& RunWriter::channel(std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    channels_.push_back(std::unique_ptr<RowChannel>(new RowChannel(*this, capacity)));
    return *channels_.back();
}

void RunWriter::message(const Message& message, std::int64_t time_ns) {
    const std::scoped_lock lock(mutex_);
    messages_.emplace_back(message, time_ns);
}

void RunWriter::wake() {
    if (woken_.exchange(true, std::memory_order_relaxed)) {
        return;
    }
    // Without the mutex, which a sampling thread must not wait for: a wake-up that gets lost costs half a
    // second at most, and the ring has room for more than that. Simulated time waits, and may not be slow.
    if (simulated_) {
        const std::scoped_lock lock(mutex_);
    }
    work_.notify_one();
}

void RunWriter::loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock lock(mutex_);
            work_.wait_for(lock, stop, flush_period,
                           [this] { return woken_.load(std::memory_order_relaxed); });
        }
        pass();
    }
    pass();
}

void RunWriter::pass() {
    woken_.store(false, std::memory_order_relaxed);
    std::vector<std::pair<Message, std::int64_t>> messages;
    std::vector<RowChannel*> channels;
    {
        const std::scoped_lock lock(mutex_);
        messages.swap(messages_);
        for (const auto& channel : channels_) {
            channels.push_back(channel.get());
        }
    }
    // Edges first: the samples taken for them are in the rings already, and tell the energy at them.
    for (const auto& [message, time_ns] : messages) {
        regions_->append(to_csv(message, time_ns));
        ++rows_;
        if (message.edge() && message.name == run_format::command_region) {
            totals_.command_edge(time_ns, message.event == Message::Event::begin);
        } else if (message.edge() && message.name == "epoch") {
            totals_.epoch_edge(time_ns, message.event, message.rank);
        }
    }
    for (RowChannel* channel : channels) {
        channel->ring_.drain([this](const Row& row) { write_row(row); });
    }
    for (SampleFile& sample_file : sample_files_) {
        sample_file.file->flush();
        report_failure(*sample_file.file);
    }
    regions_->flush();
    report_failure(*regions_);
}

void RunWriter::write_row(const Row& row) {
    totals_.add(row);
    const Layout& layout = layouts_[row.source];
    line_.clear();
    append_number(line_, row.time_ns);
    line_ += ',';
    append_number(line_, row.read_ns);
    line_ += ',';
    line_ += layout.device;
    for (std::size_t column = 0; column < layout.value_of_column.size(); ++column) {
        line_ += ',';
        const int index = layout.value_of_column[column];
        const double value = index < 0 ? std::nan("") : row.values[static_cast<std::size_t>(index)];
        if (std::isnan(value)) {
            continue;
        }
        if (layout.flags[column]) {
            append_number(line_, static_cast<std::uint64_t>(value));
        } else {
            append_number(line_, value);
        }
    }
    line_ += '\n';
    sample_files_[layout.file].file->append(line_);
    ++rows_;
}

void RunWriter::report_failure(const AppendFile& file) {
    if (file.error() == 0 || failure_reported_) {
        return;
    }
    failure_reported_ = true;
    warnings_.push_back(fmt::format("cannot write {}: {}; the command goes on, measurements may be lost",
                                    file.path().string(), std::strerror(file.error())));
    say(fmt::format("joulemark: {}", warnings_.back()));
}

void RunWriter::stop() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
}

RunWriter::Counts RunWriter::counts() const {
    Counts counts{.rows = rows_, .lost = regions_->unwritten()};
    for (const auto& sample_file : sample_files_) {
        counts.lost += sample_file.file->unwritten();
    }
    for (const auto& channel : channels_) {
        counts.lost += channel->lost_.load(std::memory_order_relaxed);
    }
    return counts;
}

bool RunWriter::write_end(const nlohmann::json& end) {
    try {
        files::write_atomically(folder_ / run_format::end_file,
                                end.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
        return true;
    } catch (const Error& error) {
        warnings_.emplace_back(error.what());
        return false;
    }
}

}  // namespace joulemark::meter

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "sensors/backend.h"

namespace joulemark::sensors {

/// A tree of tests/fixtures/sysfs, some files of which may refuse to open: file modes do not stop root.
class FixtureTree : public FileTree {
  public:
    /// An absolute path names a tree elsewhere.
    explicit FixtureTree(const std::filesystem::path& name, std::set<std::string> refused = {})
        : FileTree(std::filesystem::path(JOULEMARK_FIXTURES) / "sysfs" / name),
          refused_(std::move(refused)) {}

    Opened open(const std::string& path) const override {
        return refused_.contains(path) ? Opened{files::Descriptor(), EACCES} : FileTree::open(path);
    }

  private:
    std::set<std::string> refused_;
};

/// A copy of such a tree that a test may write to; gone with the object.
class WritableTree {
  public:
    explicit WritableTree(const std::string& name) {
        std::string pattern = (std::filesystem::temp_directory_path() / "joulemark-XXXXXX").string();
        root_ = mkdtemp(pattern.data());
        std::filesystem::copy(std::filesystem::path(JOULEMARK_FIXTURES) / "sysfs" / name, root_,
                              std::filesystem::copy_options::recursive);
    }
    ~WritableTree() { std::filesystem::remove_all(root_); }
    WritableTree(const WritableTree&) = delete;
    WritableTree& operator=(const WritableTree&) = delete;

    FixtureTree tree() const { return FixtureTree(root_); }
    void write(const std::string& path, const std::string& text) const {
        std::ofstream(root_ / path) << text << '\n';
    }

  private:
    std::filesystem::path root_;
};

/// The whole catalogue over a tree, as on a machine without GPU drivers, whatever this one has.
inline Machine discover_without_gpus(const Options& options, const FileTree& files,
                                     const Environment& environment = {}) {
    setenv("JOULEMARK_NVML", "/nonexistent", 1);
    return discover(options, files, environment);
}

/// What one backend finds in a tree.
struct Found {
    Machine machine;

    Found(Backend backend, const FileTree& files, const Options& options = {},
          const Environment& environment = {}) {
        machine.clock = std::make_shared<MonotonicClock>();
        Discovery discovery{options, files, environment, machine};
        backend(discovery);
    }

    const SensorReport* report(const std::string& name) const {
        for (const SensorReport& report : machine.reports) {
            if (report.name == name) {
                return &report;
            }
        }
        return nullptr;
    }
    /// "used" | "available" | "unavailable", or "" without a report.
    std::string status(const std::string& name) const {
        return report(name) == nullptr ? "" : report(name)->status;
    }

    Source& source(const std::string& device) const {
        for (const auto& source : machine.sources) {
            if (source->info().device == device) {
                return *source;
            }
        }
        throw std::runtime_error("no source of " + device);
    }
    std::vector<std::string> sources() const {
        std::vector<std::string> names;
        for (const auto& source : machine.sources) {
            names.push_back(source->info().device);
        }
        return names;
    }
};

inline std::vector<double> read(Source& source) {
    std::vector<double> values(source.info().metrics.size(), -1);
    source.read(values);
    return values;
}

}  // namespace joulemark::sensors

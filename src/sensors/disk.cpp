// SPDX-License-Identifier: Apache-2.0
//
// Bytes read from the node's own disks. Network file systems are not among them: their bytes pass the
// network.
#include <limits>

#include "sensors/backend.h"
#include "sensors/byte_counter.h"

namespace joulemark::sensors {
namespace {

constexpr const char* block_devices = "sys/block";

class DiskSource final : public Source {
  public:
    DiskSource(SourceInfo info, ByteCounter read) : Source(std::move(info)), read_(std::move(read)) {
        read_.total();
    }
    void read(std::span<double> values) noexcept override {
        values[0] = read_.total().value_or(std::numeric_limits<double>::quiet_NaN());
    }

  private:
    ByteCounter read_;
};

}  // namespace

void discover_disk(Discovery& discovery) {
    constexpr std::size_t sectors_read =
        2;                                // field of .../stat, see the kernel's Documentation/block/stat.rst
    constexpr double sector_bytes = 512;  // whatever the disk's own
    const FileTree& files = discovery.files;
    ByteCounter bytes;
    std::string disks;
    for (const std::string& name : files.entries(block_devices)) {
        const std::string path = fmt::format("{}/{}", block_devices, name);
        if (!files.exists(path + "/device")) {
            continue;  // a loop, RAID or mapper device: what it reads is read from others
        }
        auto opened = open_number(files, path + "/stat");
        if (auto* file = std::get_if<OpenFile>(&opened)) {
            bytes.add(std::move(*file), sectors_read, sector_bytes);
            disks += " " + name;
        }
    }
    if (bytes.empty()) {
        discovery.unavailable("disk node", "disk read", "node", {"no disk is seen here", ""});
        return;
    }
    SourceInfo info;
    info.name = "disk";
    info.device = "node";
    info.metrics = {Metric::node_disk_read_bytes};
    info.method = "counter";
    info.scope = "node";
    info.origin = files.shown(block_devices);
    discovery.add({.id = "node", .file = File::node, .name = "", .component = "node"});
    discovery.use(std::make_unique<DiskSource>(std::move(info), std::move(bytes)), "sum over" + disks);
}

}  // namespace joulemark::sensors

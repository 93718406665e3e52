// SPDX-License-Identifier: Apache-2.0
//
// Wall power of the node from its management controller, by IPMI's DCMI extension over /dev/ipmi0. Slow: a
// read takes milliseconds to tenths of a second, and the controller refreshes about once a second.
#include "sensors/ipmi.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "sensors/backend.h"

namespace joulemark::sensors {
namespace {

constexpr const char* device_file = "dev/ipmi0";
constexpr int answer_timeout_ms = 1000;
constexpr unsigned char group_extension = 0x2c;  // network function, and + 1 for its answers
constexpr unsigned char get_power_reading = 0x02;
constexpr unsigned char dcmi = 0xdc;

/// A conversation with the controller. Keeps the device open.
class Controller {
  public:
    explicit Controller(files::Descriptor device) : device_(std::move(device)) {}

    std::optional<double> power_w() noexcept {
        std::array<unsigned char, 4> data{dcmi, 0x01, 0x00, 0x00};  // mode: system power statistics
        ipmi_system_interface_addr address{};
        address.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE;
        address.channel = IPMI_BMC_CHANNEL;
        ipmi_req request{};
        request.addr = reinterpret_cast<unsigned char*>(&address);
        request.addr_len = sizeof address;
        request.msgid = ++message_;
        request.msg.netfn = group_extension;
        request.msg.cmd = get_power_reading;
        request.msg.data = data.data();
        request.msg.data_len = data.size();
        if (ioctl(device_.get(), IPMICTL_SEND_COMMAND, &request) != 0) {
            return std::nullopt;
        }
        // An answer that came too late for its own read is passed over.
        pollfd ready{device_.get(), POLLIN, 0};
        while (poll(&ready, 1, answer_timeout_ms) == 1) {
            std::array<unsigned char, 64> answer{};
            ipmi_addr from{};
            ipmi_recv received{};
            received.addr = reinterpret_cast<unsigned char*>(&from);
            received.addr_len = sizeof from;
            received.msg.data = answer.data();
            received.msg.data_len = answer.size();
            if (ioctl(device_.get(), IPMICTL_RECEIVE_MSG_TRUNC, &received) != 0) {
                return std::nullopt;
            }
            if (received.msgid == message_ && received.msg.netfn == group_extension + 1) {
                return dcmi_power_w(std::span(answer).first(received.msg.data_len));
            }
        }
        return std::nullopt;
    }

  private:
    files::Descriptor device_;
    long message_ = 0;
};

class IpmiSource final : public Source {
  public:
    IpmiSource(SourceInfo info, Controller controller)
        : Source(std::move(info)), controller_(std::move(controller)) {}
    void read(std::span<double> values) noexcept override {
        values[0] = controller_.power_w().value_or(std::numeric_limits<double>::quiet_NaN());
    }

  private:
    Controller controller_;
};

Failure cannot_open(const FileTree& files, int error) {
    const std::string path = files.shown(device_file);
    if (error == ENOENT) {
        return {path + " does not exist: no management controller, or its driver is not loaded",
                "on a bare-metal server: sudo modprobe -a ipmi_si ipmi_devintf"};
    }
    return {fmt::format("{} cannot be opened: {}", path, std::strerror(error)),
            error == EACCES || error == EPERM ? "sudo chmod o+r " + path : ""};
}

}  // namespace

std::optional<double> dcmi_power_w(std::span<const std::uint8_t> answer) {
    constexpr std::size_t shortest = 19;
    constexpr std::uint8_t measuring = 0x40;
    if (answer.size() < shortest || answer[0] != 0 || answer[1] != dcmi || (answer[18] & measuring) == 0) {
        return std::nullopt;
    }
    const int watts = answer[2] + 256 * answer[3];
    return watts > 0 ? std::optional<double>(watts) : std::nullopt;
}

void discover_ipmi(Discovery& discovery) {
    if (discovery.machine.simulated) {
        return;
    }
    const std::string name = "ipmi node";
    const std::string scope = "node wall";
    FileTree::Opened opened = discovery.files.open(device_file);
    if (!opened.file) {
        discovery.unavailable(name, "power", scope, cannot_open(discovery.files, opened.error));
        return;
    }
    Controller controller(std::move(opened.file));
    if (!controller.power_w()) {
        discovery.unavailable(
            name, "power", scope,
            {"the management controller gives no DCMI power reading", "check: ipmitool dcmi power reading"});
        return;
    }
    if (std::ranges::any_of(discovery.machine.sources,
                            [&](const auto& source) { return source->info().scope == scope; })) {
        discovery.available(name, "power", scope, "an ACPI meter of the same is read, and is quicker");
        return;
    }
    discovery.add({.id = "node", .file = File::node, .name = "", .component = "node"});
    SourceInfo info;
    info.name = "ipmi";
    info.device = "node";
    info.metrics = {Metric::node_power_w};
    info.method = "sampled";
    info.scope = scope;
    info.origin = discovery.files.shown(device_file);
    info.slow = true;
    info.native_period_s = 1;
    discovery.use(std::make_unique<IpmiSource>(std::move(info), std::move(controller)),
                  "wall power by the management controller (DCMI); it contains everything in the node");
}

}  // namespace joulemark::sensors

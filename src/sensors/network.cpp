// SPDX-License-Identifier: Apache-2.0
//
// Bytes through the node's network: Ethernet interfaces and InfiniBand ports. The node's, not the job's:
// where several jobs share it, theirs are contained.

#include "sensors/backend.h"
#include "sensors/byte_counter.h"

namespace joulemark::sensors {
namespace {

constexpr const char* interfaces = "sys/class/net";
constexpr const char* host_adapters = "sys/class/infiniband";

class NetworkSource final : public Source {
  public:
    NetworkSource(SourceInfo info, ByteCounter received, ByteCounter sent)
        : Source(std::move(info)), received_(std::move(received)), sent_(std::move(sent)) {
        received_.total();
        sent_.total();
    }
    void read(std::span<double> values) noexcept override {
        values[0] = received_.total().value_or(gap);
        values[1] = sent_.total().value_or(gap);
    }

  private:
    ByteCounter received_;
    ByteCounter sent_;
};

/// Both directions of one link, or neither.
bool add_link(const FileTree& files, const std::string& receive, const std::string& send,
              double bytes_per_unit, ByteCounter& received, ByteCounter& sent) {
    auto in = open_number(files, receive);
    auto out = open_number(files, send);
    if (!std::holds_alternative<OpenFile>(in) || !std::holds_alternative<OpenFile>(out)) {
        return false;
    }
    received.add(std::get<OpenFile>(std::move(in)), 0, bytes_per_unit);
    sent.add(std::get<OpenFile>(std::move(out)), 0, bytes_per_unit);
    return true;
}

void use(Discovery& discovery, const char* directory, std::vector<Metric> metrics, ByteCounter received,
         ByteCounter sent, const std::string& links) {
    SourceInfo info;
    info.name = "network";
    info.device = "node";
    info.metrics = std::move(metrics);
    info.method = "counter";
    info.scope = "node";
    info.origin = discovery.files.shown(directory);
    discovery.add({.id = "node", .file = File::node, .name = "", .component = "node"});
    discovery.use(std::make_unique<NetworkSource>(std::move(info), std::move(received), std::move(sent)),
                  "sum over" + links);
}

void discover_ethernet(Discovery& discovery) {
    constexpr std::uint64_t infiniband_type = 32;  // ARPHRD_INFINIBAND: its bytes pass an InfiniBand port
    const FileTree& files = discovery.files;
    ByteCounter received;
    ByteCounter sent;
    std::string links;
    for (const std::string& name : files.entries(interfaces)) {
        const std::string path = fmt::format("{}/{}", interfaces, name);
        const bool physical =
            files.exists(path + "/device");  // bridges, tunnels and loopback carry what others carry too
        if (physical && files.number(path + "/type") != infiniband_type &&
            add_link(files, path + "/statistics/rx_bytes", path + "/statistics/tx_bytes", 1, received,
                     sent)) {
            links += " " + name;
        }
    }
    if (received.empty()) {
        discovery.unavailable("network node", "ethernet", "node",
                              {"no physical network interface is seen here", ""});
        return;
    }
    use(discovery, interfaces, {Metric::node_ethernet_rx_bytes, Metric::node_ethernet_tx_bytes},
        std::move(received), std::move(sent), links);
}

void discover_infiniband(Discovery& discovery) {
    constexpr double bytes_per_word = 4;  // the ports count 32-bit words
    const FileTree& files = discovery.files;
    ByteCounter received;
    ByteCounter sent;
    std::string links;
    for (const std::string& adapter : files.entries(host_adapters)) {
        const std::string ports = fmt::format("{}/{}/ports", host_adapters, adapter);
        for (const std::string& port : files.entries(ports)) {
            const std::string path = fmt::format("{}/{}/counters", ports, port);
            if (add_link(files, path + "/port_rcv_data", path + "/port_xmit_data", bytes_per_word, received,
                         sent)) {
                links += fmt::format(" {}:{}", adapter, port);
            }
        }
    }
    if (received.empty()) {
        discovery.unavailable("network node", "infiniband", "node", {"no InfiniBand port is seen here", ""});
        return;
    }
    use(discovery, host_adapters, {Metric::node_infiniband_rx_bytes, Metric::node_infiniband_tx_bytes},
        std::move(received), std::move(sent), links);
}

}  // namespace

void discover_network(Discovery& discovery) {
    discover_ethernet(discovery);
    discover_infiniband(discovery);
}

}  // namespace joulemark::sensors

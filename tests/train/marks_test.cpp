// SPDX-License-Identifier: Apache-2.0
#include "engine/marks.h"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "temporary_folder.h"

namespace joulemark::train {
namespace {

/// A meter's end of the socket, named in JOULEMARK_SOCKET while it lives.
class Receiver {
  public:
    Receiver() : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = folder_.path() / "s";
        std::strcpy(address.sun_path, path.c_str());
        EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        setenv("JOULEMARK_SOCKET", path.c_str(), 1);
    }
    ~Receiver() { unsetenv("JOULEMARK_SOCKET"); }
    nlohmann::json next() {
        char text[65536];
        const auto length = recv(socket_.get(), text, sizeof text, MSG_DONTWAIT);
        return length < 0 ? nlohmann::json()
                          : nlohmann::json::parse(std::string(text, static_cast<std::size_t>(length)));
    }
    void close() { socket_.reset(); }

  private:
    TemporaryFolder folder_;
    files::Descriptor socket_;
};

TEST(Marks, SendsTheMessagesOfTheProtocol) {
    Receiver meter;
    const Marks marks(3);
    marks.begin("epoch", 2, 123);
    RegionCounts counts;
    counts.samples = 64;
    counts.updates = 4;
    counts.loss = 0.1;
    counts.quality = Quality{"top1_error", 0.25, "lower"};
    marks.end("epoch", 2, 456, counts);
    marks.config({{"local_batch", 16}});
    EXPECT_EQ(meter.next(),
              nlohmann::json::parse(R"({"event":"begin","name":"epoch","index":2,"t":123,"rank":3})"));
    EXPECT_EQ(meter.next(),
              nlohmann::json::parse(R"({"event":"end","name":"epoch","index":2,"t":456,"rank":3,"samples":64,
        "updates":4,"loss":0.1,"quality":{"name":"top1_error","value":0.25,"direction":"lower"}})"));
    const auto config = meter.next();
    EXPECT_EQ(config["event"], "config");
    EXPECT_EQ(config["data"]["local_batch"], 16);
    EXPECT_GT(config["t"], 0);
}

TEST(Marks, DoNothingWithoutAMeterOrWhenItIsGone) {
    unsetenv("JOULEMARK_SOCKET");
    Marks(0).begin("epoch", 0, 0);
    Receiver meter;
    const Marks marks(0);
    meter.close();
    marks.begin("epoch", 0, 0);
    marks.note({{"text", "\xff broken text"}});
}

}  // namespace
}  // namespace joulemark::train

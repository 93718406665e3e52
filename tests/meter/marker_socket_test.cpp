// SPDX-License-Identifier: Apache-2.0
#include "meter/marker_socket.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakes.h"

namespace joulemark::meter {
namespace {

class MarkerSocketTest : public testing::Test {
  protected:
    void send(const std::string& text) const {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(socket_.path(), address.sun_path);
        const files::Descriptor sender(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(sendto(sender.get(), text.data(), text.size(), 0,
                         reinterpret_cast<const sockaddr*>(&address), sizeof address),
                  static_cast<ssize_t>(text.size()));
    }
    const TemporaryFolder folder_;
    MonotonicClock clock_;
    std::vector<Message> taken_;
    MarkerSocket socket_{folder_.path(), clock_,
                         [this](Message message, std::int64_t) { taken_.push_back(std::move(message)); }};
};

TEST_F(MarkerSocketTest, TakesMessagesInOrderAndOutlivesGarbage) {
    send(R"({"event":"begin","name":"a"})");
    send("garbage");
    send("");
    send(R"({"event":"note","data":{"text":")" + std::string(max_message_bytes, 'x') + "\"}}");
    send(R"({"event":"end","name":"a"})");
    socket_.stop();
    ASSERT_EQ(taken_.size(), 2U);
    EXPECT_EQ(taken_[0].event, Message::Event::begin);
    EXPECT_EQ(taken_[1].event, Message::Event::end);
    EXPECT_EQ(socket_.malformed(), 3U);
    EXPECT_EQ(socket_.first_complaint(), "it is not a JSON object");
}

TEST_F(MarkerSocketTest, TakesTheLongestMessage) {
    std::string text = R"({"event":"note","data":{"text":")";
    text += std::string(max_message_bytes - text.size() - 3, 'x') + "\"}}";
    ASSERT_EQ(text.size(), max_message_bytes);
    send(text);
    socket_.stop();
    EXPECT_EQ(taken_.size(), 1U);
    EXPECT_EQ(socket_.malformed(), 0U);
}

TEST_F(MarkerSocketTest, RemovesWhatKilledMetersLeft) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, nullptr, 0);  // its number is nobody's now
    const std::string dead = folder_ / ("joulemark-" + std::to_string(child) + "-5.sock");
    const std::string own = folder_ / ("joulemark-" + std::to_string(getpid()) + "-5.sock");
    const std::string other = folder_ / "other.sock";
    for (const std::string& path : {dead, own, other}) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(path, address.sun_path);
        const files::Descriptor left(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    const MarkerSocket next(folder_.path(), clock_, [](Message, std::int64_t) {});
    EXPECT_FALSE(std::filesystem::exists(dead));
    EXPECT_TRUE(std::filesystem::exists(own)) << "a meter that just begins";
    EXPECT_TRUE(std::filesystem::exists(other));
    EXPECT_TRUE(listens(socket_.path()));
    EXPECT_FALSE(listens(own));
}

TEST_F(MarkerSocketTest, IsForThisUserOnly) {
    struct stat status {};
    ASSERT_EQ(stat(socket_.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(MarkerSocketTest, ASenderForwardsWhatItWasGiven) {
    Message message;
    message.event = Message::Event::end;
    message.name = "epoch";
    message.rank = 3;
    message.loss = 0.5;
    MarkerSender(socket_.path()).send(message);
    socket_.stop();
    ASSERT_EQ(taken_.size(), 1U);
    EXPECT_EQ(taken_[0].rank, 3);
    EXPECT_EQ(taken_[0].loss, 0.5);
}

TEST_F(MarkerSocketTest, ASenderTellsWhatDidNotGetThrough) {
    Message message;
    message.data = R"({"text":")" + std::string(8 << 20, 'x') + "\"}";  // longer than any datagram
    MarkerSender sender(socket_.path());
    sender.send(message);
    sender.send(message);
    message.data = "{}";
    sender.send(message);
    socket_.stop();
    ASSERT_EQ(taken_.size(), 3U);
    EXPECT_EQ(taken_[0].event, Message::Event::lost);
    EXPECT_EQ(taken_[0].count + taken_[1].count, 2U);
    EXPECT_EQ(taken_[2].event, Message::Event::note) << "nothing is told twice";
    EXPECT_EQ(socket_.malformed(), 0U);
}

TEST(MarkerSocket, GoesAwayWithItsObject) {
    const TemporaryFolder folder;
    MonotonicClock clock;
    std::string path;
    {
        const MarkerSocket socket(folder.path(), clock, [](Message, std::int64_t) {});
        path = socket.path();
        EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    MarkerSender(path).send(Message{});  // nobody there: no failure
}

}  // namespace
}  // namespace joulemark::meter

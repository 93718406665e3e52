// SPDX-License-Identifier: Apache-2.0
//
// The two things the simulation asks of the kernel: byte locks, which a dead process gives back by itself,
// and futexes, by which sleepers are told to look again (a lost signal costs only their timeout).
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <limits>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace joulemark::sim {

inline constexpr std::int64_t free_deadline = std::numeric_limits<std::int64_t>::max();

/// Bytes that stand for locks, far behind the data.
inline constexpr off_t state_byte = off_t{1} << 60;
inline constexpr off_t seat_byte(std::size_t seat) {
    return state_byte + 1 + static_cast<off_t>(seat);
}

/// Open file description locks: they go with the last descriptor, so also after kill -9; unlike POSIX locks,
/// they do not go when some other descriptor of the file is closed.
inline int byte_lock(int fd, int command, short type, off_t byte, short* found = nullptr) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    int status = 0;
    do {
        status = fcntl(fd, command, &lock);
    } while (status != 0 && errno == EINTR);
    if (found != nullptr) {
        *found = lock.l_type;
    }
    return status;
}
inline void lock_byte(int fd, off_t byte) {
    byte_lock(fd, F_OFD_SETLKW, F_WRLCK, byte);
}
inline bool try_lock_byte(int fd, off_t byte) {
    return byte_lock(fd, F_OFD_SETLK, F_WRLCK, byte) == 0;
}
inline void unlock_byte(int fd, off_t byte) {
    byte_lock(fd, F_OFD_SETLK, F_UNLCK, byte);
}
/// Whether another open file description holds the byte.
inline bool byte_is_locked(int fd, off_t byte) {
    short found = F_UNLCK;
    return byte_lock(fd, F_OFD_GETLK, F_WRLCK, byte, &found) == 0 && found != F_UNLCK;
}

inline void futex_signal(std::atomic<std::uint32_t>& word) {
    word.fetch_add(1);
    syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

/// Waits while the word has the value, at most until the time of CLOCK_MONOTONIC.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t until_ns) {
    const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace joulemark::sim

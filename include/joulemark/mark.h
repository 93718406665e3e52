/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the meter (joulemark run -- PROGRAM) where epochs and other regions of a program begin and end:
 *
 *     for (int epoch = 0; epoch < epochs; ++epoch) {
 *         joulemark_begin("epoch");
 *         ... train ...
 *         joulemark_result result = JOULEMARK_RESULT;
 *         result.samples = samples_of_this_rank;
 *         result.loss = loss;
 *         joulemark_end_with("epoch", &result);
 *     }
 *
 * One header for C99 and C++, Linux, no library. Without the variable JOULEMARK_SOCKET every function returns at
 * once. A message is one datagram of a few microseconds; a meter that does not take it costs 0.1 s once and
 * then nothing, and never fails the program. All functions may be called from any thread. A message that
 * does not get through, or is longer than 64 KiB, is lost; the meter counts and reports it.
 */
#ifndef JOULEMARK_MARK_H
#define JOULEMARK_MARK_H

#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L /* -std=c99 hides clocks and sockets; works when included first */
#endif

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a region came to. Start from JOULEMARK_RESULT, in which nothing is known (NAN). */
typedef struct joulemark_result {
    double samples; /* processed by this rank */
    double updates; /* forward/backward passes of this rank */
    double tokens;  /* processed by this rank */
    double loss;
    const char* quality_name; /* "top1_error"; NULL: none */
    double quality;
    int higher_is_better; /* direction of the quality */
} joulemark_result;

#define JOULEMARK_RESULT {NAN, NAN, NAN, NAN, NULL, NAN, 0}

/* -- Implementation: everything up to the next line of this kind -- */

enum { joulemark_unopened_ = 0, joulemark_off_ = -1 };

/* The connected socket plus one, or one of the two values above. One per source file that marks. */
static int joulemark_socket_ = joulemark_unopened_;
static int joulemark_stuck_ = 0;      /* the last message did not get through in time */
static unsigned joulemark_lost_ = 0; /* messages that did not get through, and that the meter does not know of */

static inline int joulemark_open_(void) {
    int known = __atomic_load_n(&joulemark_socket_, __ATOMIC_ACQUIRE);
    if (known != joulemark_unopened_) {
        return known;
    }
    int opened = joulemark_off_;
    const char* path = getenv("JOULEMARK_SOCKET");
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (path != NULL && path[0] != '\0' && strlen(path) < sizeof address.sun_path) {
        memcpy(address.sun_path, path, strlen(path));
        const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const struct timeval patience = {0, 100000};
        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
            connect(fd, (const struct sockaddr*)&address, sizeof address) == 0) {
            opened = fd + 1;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    if (!__atomic_compare_exchange_n(&joulemark_socket_, &known, opened, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (opened > 0) {
            close(opened - 1); /* another thread was first */
        }
        return known;
    }
    return opened;
}

static inline int joulemark_rank_(void) {
    static const char* const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        const char* value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return atoi(value);
        }
    }
    return 0;
}

/* Appends to text[capacity] and gives the new length. Text that does not fit is cut. */
static inline size_t joulemark_put_(char* text, size_t length, size_t capacity, const char* part) {
    while (*part != '\0' && length + 1 < capacity) {
        text[length++] = *part++;
    }
    text[length] = '\0';
    return length;
}

static inline size_t joulemark_put_string_(char* text, size_t length, size_t capacity, const char* value) {
    enum { longest = 250 };
    size_t bytes = strlen(value);
    if (bytes > longest) {
        for (bytes = longest; bytes > 0 && ((unsigned char)value[bytes] & 0xC0) == 0x80; --bytes) {
        }
    }
    length = joulemark_put_(text, length, capacity, "\"");
    for (size_t i = 0; i < bytes; ++i) {
        const unsigned char c = (unsigned char)value[i];
        char escaped[8] = {(char)c, '\0'};
        if (c == '"' || c == '\\') {
            escaped[0] = '\\';
            escaped[1] = (char)c;
        } else if (c < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)c);
        }
        length = joulemark_put_(text, length, capacity, escaped);
    }
    return joulemark_put_(text, length, capacity, "\"");
}

static inline size_t joulemark_put_number_(char* text, size_t length, size_t capacity, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.17g", value);
    for (char* c = digits; *c != '\0'; ++c) {
        if (*c == ',') {
            *c = '.'; /* the program's locale is not JSON's */
        }
    }
    return joulemark_put_(text, length, capacity, digits);
}

static inline size_t joulemark_put_member_(char* text, size_t length, size_t capacity, const char* key, double value) {
    if (!isfinite(value)) {
        return length;
    }
    length = joulemark_put_(text, length, capacity, ",\"");
    length = joulemark_put_(text, length, capacity, key);
    length = joulemark_put_(text, length, capacity, "\":");
    return joulemark_put_number_(text, length, capacity, value);
}

static inline void joulemark_tell_lost_(int fd) {
    const unsigned lost = __atomic_exchange_n(&joulemark_lost_, 0, __ATOMIC_RELAXED);
    if (lost > 0) {
        char text[64];
        const int length = snprintf(text, sizeof text, "{\"event\":\"lost\",\"count\":%u}", lost);
        if (send(fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            __atomic_fetch_add(&joulemark_lost_, lost, __ATOMIC_RELAXED);
        }
    }
}

/* data: a JSON object, or NULL */
static inline void joulemark_send_(const char* event, const char* name, const joulemark_result* result,
                                   const char* data) {
    const int saved_errno = errno;
    const int opened = joulemark_open_();
    if (opened <= 0) {
        errno = saved_errno;
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char text[2048];
    const size_t capacity = sizeof text;
    char head[96];
    snprintf(head, sizeof head, "{\"event\":\"%s\",\"t\":%lld,\"rank\":%d", event,
             (long long)now.tv_sec * 1000000000LL + now.tv_nsec, joulemark_rank_());
    size_t length = joulemark_put_(text, 0, capacity, head);
    if (name != NULL) {
        length = joulemark_put_(text, length, capacity, ",\"name\":");
        length = joulemark_put_string_(text, length, capacity, name);
    }
    if (result != NULL) {
        length = joulemark_put_member_(text, length, capacity, "samples", result->samples);
        length = joulemark_put_member_(text, length, capacity, "updates", result->updates);
        length = joulemark_put_member_(text, length, capacity, "tokens", result->tokens);
        length = joulemark_put_member_(text, length, capacity, "loss", result->loss);
        if (result->quality_name != NULL && isfinite(result->quality)) {
            length = joulemark_put_(text, length, capacity, ",\"quality\":{\"name\":");
            length = joulemark_put_string_(text, length, capacity, result->quality_name);
            length = joulemark_put_member_(text, length, capacity, "value", result->quality);
            length = joulemark_put_(text, length, capacity,
                                    result->higher_is_better ? ",\"direction\":\"higher\"}" : ",\"direction\":\"lower\"}");
        }
    }
    char close_text[] = "}";
    char data_key[] = ",\"data\":";
    struct iovec parts[4] = {{text, length}, {close_text, 1}, {close_text, 0}, {close_text, 0}};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (data != NULL) {
        parts[1].iov_base = data_key;
        parts[1].iov_len = sizeof data_key - 1;
        parts[2].iov_base = (void*)(size_t)data; /* sendmsg only reads it */
        parts[2].iov_len = strlen(data);
        parts[3].iov_len = 1;
        message.msg_iovlen = 4;
    }
    const int stuck = __atomic_load_n(&joulemark_stuck_, __ATOMIC_RELAXED);
    if (sendmsg(opened - 1, &message, MSG_NOSIGNAL | (stuck ? MSG_DONTWAIT : 0)) >= 0) {
        __atomic_store_n(&joulemark_stuck_, 0, __ATOMIC_RELAXED);
        joulemark_tell_lost_(opened - 1);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        __atomic_store_n(&joulemark_stuck_, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&joulemark_lost_, 1, __ATOMIC_RELAXED);
    } else if (errno == ECONNREFUSED || errno == ENOENT || errno == ENOTCONN || errno == ECONNRESET) {
        __atomic_store_n(&joulemark_socket_, (int)joulemark_off_, __ATOMIC_RELEASE); /* the meter is gone */
    } else {
        __atomic_fetch_add(&joulemark_lost_, 1, __ATOMIC_RELAXED); /* too long: tell at once, it may be the last */
        joulemark_tell_lost_(opened - 1);
    }
    errno = saved_errno;
}

/* -- Functions -- */

/* A region begins: "epoch", "eval", "block" of steps, or any other name. */
static inline void joulemark_begin(const char* name) { joulemark_send_("begin", name, NULL, NULL); }

static inline void joulemark_end(const char* name) { joulemark_send_("end", name, NULL, NULL); }

static inline void joulemark_end_with(const char* name, const joulemark_result* result) {
    joulemark_send_("end", name, result, NULL);
}

/* The region is left before its end: its time is kept, and it counts for nothing. One that is never ended, because
 * the program ends first, is left out as well. */
static inline void joulemark_abort(const char* name) { joulemark_send_("abort", name, NULL, NULL); }

/* Configuration the meter cannot know, as a JSON object: {"local_batch": 64, "precision": "bf16"}.
 * docs/schema.md lists the keys that analysis understands. */
static inline void joulemark_config(const char* json_object) { joulemark_send_("config", NULL, NULL, json_object); }

/* Anything worth keeping with the run, as a JSON object. */
static inline void joulemark_note(const char* json_object) { joulemark_send_("note", NULL, NULL, json_object); }

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* JOULEMARK_MARK_H */

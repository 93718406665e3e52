// SPDX-License-Identifier: Apache-2.0
#include "data/token_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "data/digest.h"

namespace joulemark::train {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;  // of text, per thread and round

static_assert(std::endian::native == std::endian::little);
struct CacheHeader {
    std::array<char, 8> magic = {'J', 'M', 'T', 'O', 'K', 'E', 'N', '1'};
    std::uint64_t text_bytes = 0;
    std::int64_t text_time_ns = 0;  ///< last change, since 1970
    std::uint64_t vocabulary = 0;   ///< WordPiece::hash
    std::uint64_t token_bytes = 0;  ///< 2 or 4
    std::uint64_t tokens = 0;
    std::array<std::uint64_t, 2> reserved{};
};
static_assert(sizeof(CacheHeader) == 64);

/// The header that a cache of this text and vocabulary must have, its number of tokens apart.
CacheHeader expected_header(const std::filesystem::path& text, const WordPiece& vocabulary) {
    struct stat status {};
    if (stat(text.c_str(), &status) != 0) {
        throw bad_input("cannot read the text {}: {}", text.string(), std::strerror(errno));
    }
    constexpr std::int64_t ns_per_s = 1'000'000'000;
    CacheHeader header;
    header.text_bytes = static_cast<std::uint64_t>(status.st_size);
    header.text_time_ns = status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec;
    header.vocabulary = vocabulary.hash();
    header.token_bytes = vocabulary.size() <= std::numeric_limits<std::uint16_t>::max() ? 2 : 4;
    return header;
}

std::filesystem::path cache_path(const std::filesystem::path& text, const std::filesystem::path& folder,
                                 const CacheHeader& header) {
    const auto name = fmt::format("{}.{:016x}.tokens", text.filename().string(), header.vocabulary);
    return (folder.empty() ? text.parent_path() : folder) / name;
}

/// The number of tokens when `bytes` is a whole cache with this header.
std::optional<std::size_t> tokens_in(std::string_view bytes, const CacheHeader& expected) {
    CacheHeader header;
    if (bytes.size() < sizeof header) {
        return std::nullopt;
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    CacheHeader same = expected;
    same.tokens = header.tokens;
    if (std::memcmp(&same, &header, sizeof header) != 0 ||
        bytes.size() != sizeof header + header.tokens * header.token_bytes) {
        return std::nullopt;
    }
    return header.tokens;
}

/// The file that becomes the cache, locked against other ranks. The kernel lets go of the lock when its
/// holder dies, so nobody waits for ever; where a file system has no locks every rank makes a file of its
/// own.
class Draft {
  public:
    explicit Draft(const std::filesystem::path& final_path)
        : final_path_(final_path), path_(final_path.string() + ".draft") {
        do {
            file_ = files::Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
            if (!file_) {
                throw failed();
            }
            if (!lock()) {
                unlink(path_.c_str());
                path_ += ".XXXXXX";
                file_ = files::Descriptor(mkostemp(path_.data(), O_CLOEXEC));
                if (!file_) {
                    throw failed();
                }
            }
            // Who had the lock before may have made this very file the cache, or thrown it away.
        } while (!is_still_there());
        if (ftruncate(file_.get(), 0) != 0) {
            throw failed();
        }
    }
    ~Draft() {
        if (file_) {
            unlink(path_.c_str());
        }
    }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    void write(const void* data, std::size_t size) {
        const char* bytes = static_cast<const char*>(data);
        while (size > 0) {
            const ssize_t wrote = ::write(file_.get(), bytes, size);
            if (wrote < 0 && errno == EINTR) {
                continue;
            }
            if (wrote < 0) {
                throw failed();
            }
            bytes += wrote;
            size -= static_cast<std::size_t>(wrote);
        }
    }

    /// Makes it the cache, whole and on disk.
    void finish(const CacheHeader& header) {
        if (pwrite(file_.get(), &header, sizeof header, 0) != sizeof header || fsync(file_.get()) != 0 ||
            rename(path_.c_str(), final_path_.c_str()) != 0) {
            throw failed();
        }
        file_.reset();
    }

  private:
    bool lock() const {
        while (flock(file_.get(), LOCK_EX) != 0) {
            if (errno != EINTR) {
                return false;
            }
        }
        return true;
    }

    bool is_still_there() const {
        struct stat mine {};
        struct stat there {};
        return fstat(file_.get(), &mine) == 0 && stat(path_.c_str(), &there) == 0 &&
               mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
    }

    Error failed() const {
        return environment_error("cannot write the token cache {}: {}; --set cache=DIR puts it elsewhere",
                                 final_path_.string(), std::strerror(errno));
    }

    std::filesystem::path final_path_;
    std::string path_;
    files::Descriptor file_;
};

/// The ids of some lines, as they stand in the file.
template <typename Id>
std::vector<Id> encode_lines(std::string_view lines, TextEncoder& encoder, TokenId separator) {
    std::vector<Id> encoded;
    std::vector<TokenId> line_ids;
    for_each_line(lines, [&](std::string_view line) {
        line_ids.clear();
        encoder.encode(line, line_ids);
        if (!line_ids.empty()) {
            line_ids.push_back(separator);
            encoded.insert(encoded.end(), line_ids.begin(), line_ids.end());
        }
    });
    return encoded;
}

/// Several threads encode, each some lines; they are written in order. Gives the number of tokens.
template <typename Id>
std::size_t encode_text(const std::filesystem::path& text, const WordPiece& vocabulary, int threads,
                        Draft& draft) {
    TextFile file(text);
    std::vector<TextEncoder> encoders(static_cast<std::size_t>(threads), TextEncoder(vocabulary));
    std::size_t tokens = 0;
    std::vector<std::future<std::vector<Id>>> round;
    do {
        round.clear();
        for (TextEncoder& encoder : encoders) {
            const std::string_view lines = file.next(block_bytes);
            if (lines.empty()) {
                break;
            }
            round.push_back(std::async(std::launch::async, encode_lines<Id>, lines, std::ref(encoder),
                                       vocabulary.separator));
        }
        for (auto& part : round) {
            const std::vector<Id> ids = part.get();
            draft.write(ids.data(), ids.size() * sizeof(Id));
            tokens += ids.size();
        }
    } while (!round.empty());
    return tokens;
}

}  // namespace

TokenCache::TokenCache(MappedFile file, std::size_t tokens, bool wide)
    : file_(std::move(file)), tokens_(tokens) {
    const char* ids = file_.bytes().data() + sizeof(CacheHeader);
    if (wide) {
        wide_ = reinterpret_cast<const std::uint32_t*>(ids);
    } else {
        narrow_ = reinterpret_cast<const std::uint16_t*>(ids);
    }
}

TokenCache TokenCache::open(const std::filesystem::path& text, const WordPiece& vocabulary,
                            const std::filesystem::path& folder, int threads) {
    CacheHeader header = expected_header(text, vocabulary);
    const std::filesystem::path path = cache_path(text, folder, header);
    const bool wide = header.token_bytes == sizeof(std::uint32_t);
    const auto existing = [&]() -> std::optional<TokenCache> {
        if (!std::filesystem::exists(path)) {
            return std::nullopt;
        }
        MappedFile file(path);
        const auto tokens = tokens_in(file.bytes(), header);
        return tokens ? std::optional(TokenCache(std::move(file), *tokens, wide)) : std::nullopt;
    };
    if (auto cache = existing()) {
        return std::move(*cache);
    }
    if (!folder.empty()) {
        files::make_directories(folder);
    }
    Draft draft(path);
    if (auto cache = existing()) {  // made while this rank waited for the lock
        return std::move(*cache);
    }
    draft.write(&header, sizeof header);
    header.tokens = wide ? encode_text<std::uint32_t>(text, vocabulary, threads, draft)
                         : encode_text<std::uint16_t>(text, vocabulary, threads, draft);
    if (header.tokens == 0) {
        throw bad_input("the text {} holds no words", text.string());
    }
    draft.finish(header);
    auto made = existing();
    if (!made) {
        throw environment_error("the token cache {} was taken away while it was made", path.string());
    }
    return std::move(*made);
}

std::string TokenCache::digest() const {
    constexpr std::size_t most = 65'536;
    const std::size_t count = std::min(most, tokens_);
    Digest digest;
    digest.add(tokens_);
    for (std::size_t i = 0; i < count; ++i) {
        digest.add((*this)[i * tokens_ / count]);
    }
    return digest.text();
}

}  // namespace joulemark::train

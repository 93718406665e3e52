// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace joulemark::train {

/// A whole file in memory, read by the kernel as it is used; ranks of a node share it.
class MappedFile {
  public:
    /// Throws bad_input naming the file and the cause when it cannot be read.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;

    std::string_view bytes() const { return {data_, size_}; }

  private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A text of UTF-8 in pieces of whole lines.
class TextFile {
  public:
    /// Throws bad_input: not readable, in UTF-16, or nothing but white space in it.
    explicit TextFile(const std::filesystem::path& path);

    /// The next lines, about `bytes` of them, empty at the end. Throws bad_input naming the file and the byte
    /// at which it is no text in UTF-8.
    std::string_view next(std::size_t bytes);

  private:
    std::filesystem::path path_;
    MappedFile file_;
    std::size_t at_ = 0;
};

/// Calls `use` with every line of `text` that holds more than white space.
template <typename Use>
void for_each_line(std::string_view text, Use&& use) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
            use(line);
        }
        text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
    }
}

}  // namespace joulemark::train

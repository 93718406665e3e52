// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "engine/whole_number.h"

namespace joulemark::train {
namespace {

constexpr const char* metadata_key = "__metadata__";
constexpr std::uint64_t longest_header = 100'000'000;  // the reference implementation's limit

struct Type {
    at::ScalarType type;
    const char* name;
};
constexpr std::array<Type, 10> types = {{{at::kFloat, "F32"},
                                         {at::kDouble, "F64"},
                                         {at::kBFloat16, "BF16"},
                                         {at::kHalf, "F16"},
                                         {at::kLong, "I64"},
                                         {at::kInt, "I32"},
                                         {at::kShort, "I16"},
                                         {at::kChar, "I8"},
                                         {at::kByte, "U8"},
                                         {at::kBool, "BOOL"}}};

const char* type_name(at::ScalarType type) {
    const auto found = std::ranges::find(types, type, &Type::type);
    if (found == types.end()) {
        throw environment_error("safetensors cannot hold {} tensors here", c10::toString(type));
    }
    return found->name;
}

/// An open safetensors file; every failure names it.
class Reader {
  public:
    explicit Reader(const std::filesystem::path& path)
        : path_(path.string()), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        struct stat status {};
        if (!file_ || fstat(file_.get(), &status) != 0) {
            throw bad_input("cannot read {}: {}", path_, std::strerror(errno));
        }
        if (!S_ISREG(status.st_mode)) {
            throw bad_input("{} is not a safetensors file", path_);
        }
        size_ = static_cast<std::uint64_t>(status.st_size);
    }

    SafeTensors read() {
        std::uint64_t length = 0;
        if (size_ < sizeof length) {
            throw bad_input("{} is not a safetensors file, or was cut", path_);
        }
        read_at(0, &length, sizeof length);
        if (length > longest_header || length > size_ - sizeof length) {
            throw bad_input("{} is not a safetensors file, or was cut", path_);
        }
        std::string text(length, '\0');
        read_at(sizeof length, text.data(), length);
        data_ = sizeof length + length;
        const auto header = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
        if (!header.is_object()) {
            throw bad_input("{} is not a safetensors file: its header is no JSON object", path_);
        }
        SafeTensors result;
        std::uint64_t last = 0;
        for (const auto& [name, entry] : header.items()) {
            if (name == metadata_key) {
                for (const auto& [key, value] : entry.items()) {
                    result.metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
                }
            } else {
                result.tensors[name] = tensor(name, entry, last);
            }
        }
        if (last != size_ - data_) {
            throw bad_input("{} has {} bytes after its last tensor: it was damaged", path_,
                            size_ - data_ - last);
        }
        return result;
    }

  private:
    /// `end_of_data`: the furthest that a tensor has reached so far.
    torch::Tensor tensor(const std::string& name, const nlohmann::json& entry,
                         std::uint64_t& end_of_data) const {
        std::string type_text;
        std::vector<std::int64_t> shape;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        try {
            type_text = entry.at("dtype").get<std::string>();
            for (const nlohmann::json& size : entry.at("shape")) {
                shape.push_back(whole_number(size));
            }
            const nlohmann::json& both = entry.at("data_offsets");
            begin = static_cast<std::uint64_t>(whole_number(both.at(0), 0));
            end = static_cast<std::uint64_t>(whole_number(both.at(1), 0));
        } catch (const std::exception&) {
            throw bad_input("{}: the header's entry of tensor {} is damaged", path_, name);
        }
        const auto type = std::ranges::find(types, type_text, &Type::name);
        if (type == types.end()) {
            throw bad_input("{}: tensor {} is of type {}, which is not supported here", path_, name,
                            type_text);
        }
        if (begin > end || end > size_ - data_) {
            throw bad_input("{} ends before its tensor {} does: the file was cut", path_, name);
        }
        std::uint64_t expected = c10::elementSize(type->type);
        for (const std::int64_t size : shape) {
            if (size < 0 || __builtin_mul_overflow(expected, static_cast<std::uint64_t>(size), &expected)) {
                expected = ~std::uint64_t{0};
                break;
            }
        }
        if (expected != end - begin) {
            throw bad_input("{}: tensor {} has {} bytes, which is not what its shape takes", path_, name,
                            end - begin);
        }
        end_of_data = std::max(end_of_data, end);
        torch::Tensor result = torch::empty(shape, type->type);
        read_at(data_ + begin, result.mutable_data_ptr(), end - begin);
        return result;
    }

    void read_at(std::uint64_t offset, void* target, std::uint64_t bytes) const {
        auto* at = static_cast<char*>(target);
        while (bytes > 0) {
            const ssize_t got = pread(file_.get(), at, bytes, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0) {
                throw bad_input("cannot read {}: {}", path_,
                                got < 0 ? std::strerror(errno) : "it became shorter");
            }
            at += got;
            offset += static_cast<std::uint64_t>(got);
            bytes -= static_cast<std::uint64_t>(got);
        }
    }

    std::string path_;
    files::Descriptor file_;
    std::uint64_t size_ = 0;
    std::uint64_t data_ = 0;
};

std::string shape_text(const torch::Tensor& tensor) {
    return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

/// "missing: a, b and 7 more", or nothing.
void describe(std::string& sentence, const char* what, const std::vector<std::string>& names) {
    constexpr std::size_t shown = 4;
    if (names.empty()) {
        return;
    }
    const std::span first(names.data(), std::min(shown, names.size()));
    sentence += fmt::format("{}{}: {}", sentence.empty() ? "" : "; ", what, fmt::join(first, ", "));
    if (names.size() > shown) {
        sentence += fmt::format(" and {} more", names.size() - shown);
    }
}

}  // namespace

NamedTensors state_of(const torch::nn::Module& module) {
    NamedTensors state;
    for (const auto& entry : module.named_parameters()) {
        state.emplace_back(entry.key(), entry.value());
    }
    for (const auto& entry : module.named_buffers()) {
        state.emplace_back(entry.key(), entry.value());
    }
    return state;
}

NamedTensors trained_parameters(const torch::nn::Module& module) {
    NamedTensors parameters;
    for (const auto& entry : module.named_parameters()) {
        if (entry.value().requires_grad()) {
            parameters.emplace_back(entry.key(), entry.value());
        }
    }
    return parameters;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) {
        header[metadata_key] = metadata;
    }
    std::vector<torch::Tensor> dense;
    std::uint64_t end = 0;
    for (const auto& [name, tensor] : tensors) {
        dense.push_back(tensor.detach().to(torch::kCPU).contiguous());
        const std::uint64_t begin = end;
        end += dense.back().nbytes();
        header[name] = {{"dtype", type_name(tensor.scalar_type())},
                        {"shape", tensor.sizes().vec()},
                        {"data_offsets", {begin, end}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
    const std::uint64_t length = text.size();
    std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), sizeof length}, text};
    for (const torch::Tensor& tensor : dense) {
        parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    }
    files::write_atomically(path, parts);
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
    return Reader(path).read();
}

void copy_state(const NamedTensors& wanted, const std::map<std::string, torch::Tensor>& given,
                const std::string& source) {
    std::vector<std::string> missing;
    std::vector<std::string> shapes;
    std::map<std::string, torch::Tensor> left = given;
    for (const auto& [name, tensor] : wanted) {
        const auto found = left.find(name);
        if (found == left.end()) {
            missing.push_back(name);
        } else if (found->second.sizes() != tensor.sizes()) {
            shapes.push_back(
                fmt::format("{} is {} instead of {}", name, shape_text(found->second), shape_text(tensor)));
        }
        if (found != left.end()) {
            left.erase(found);
        }
    }
    std::vector<std::string> left_over;
    for (const auto& [name, tensor] : left) {
        left_over.push_back(name);
    }
    std::string differences;
    describe(differences, "of another shape", shapes);
    describe(differences, "missing", missing);
    describe(differences, "not part of this model", left_over);
    if (!differences.empty()) {
        throw bad_input("{} does not fit the model - {}", source, differences);
    }
    const torch::NoGradGuard no_grad;
    for (const auto& [name, tensor] : wanted) {
        torch::Tensor target = tensor;
        target.copy_(given.at(name));
    }
}

}  // namespace joulemark::train

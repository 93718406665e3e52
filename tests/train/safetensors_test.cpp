// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/files.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SafeTensorsTest : public testing::Test {
  protected:
    std::string error_of(const std::string& content) const {
        std::ofstream(path_, std::ios::binary) << content;
        try {
            read_safetensors(path_);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            EXPECT_THAT(error.what(), HasSubstr(path_.string()));
            return error.what();
        }
        return "";
    }
    /// A file of this header and as many bytes of data.
    static std::string file(const std::string& header, std::size_t bytes) {
        std::string content(8, '\0');
        content[0] = static_cast<char>(header.size());
        return content + header + std::string(bytes, '\0');
    }
    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_.path() / "x.safetensors";
};

TEST_F(SafeTensorsTest, ReadsWhatItWrote) {
    const NamedTensors tensors = {{"b", torch::randn({2, 3}, torch::kFloat64).t()},
                                  {"a", torch::arange(5)},
                                  {"half", torch::randn({4}).to(torch::kBFloat16)},
                                  {"flag", torch::tensor({true, false})},
                                  {"none", torch::empty({0, 3})},
                                  {"scalar", torch::tensor(2.5F)}};
    write_safetensors(path_, tensors, {{"model", "x"}});
    const SafeTensors read = read_safetensors(path_);
    EXPECT_EQ(read.metadata, (Metadata{{"model", "x"}}));
    ASSERT_EQ(read.tensors.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
        EXPECT_TRUE(read.tensors.at(name).equal(tensor)) << name;
        EXPECT_EQ(read.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    }
}

TEST_F(SafeTensorsTest, NamesWhatIsWrongWithAFile) {
    EXPECT_THAT(error_of("x"), HasSubstr("is not a safetensors file"));
    EXPECT_THAT(error_of(std::string(64, 'x')), HasSubstr("is not a safetensors file"));
    EXPECT_THAT(error_of(file("[1]", 0)), HasSubstr("no JSON object"));
    const std::string two = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    EXPECT_EQ(error_of(file(two, 8)), "");
    EXPECT_THAT(error_of(file(two, 9)), HasSubstr("has 1 bytes after its last tensor"));
    for (const char* offsets : {"[0,1e30]", "[0,8.0]", "[-8,0]", "[0]", "[0,18446744073709551615]"}) {
        const std::string header =
            R"({"t":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(offsets) + "}}";
        EXPECT_THAT(error_of(file(header, 8)), HasSubstr("entry of tensor t is damaged")) << offsets;
    }
    EXPECT_THAT(error_of(file(R"({"t":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8)),
                HasSubstr("entry of tensor t is damaged"));
    EXPECT_THAT(error_of(file(two, 7)), HasSubstr("ends before its tensor t"));
    EXPECT_THAT(error_of(file(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
                HasSubstr("tensor t has 8"));
    EXPECT_THAT(error_of(file(R"({"t":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)),
                HasSubstr("its shape"));
    EXPECT_THAT(error_of(file(R"({"t":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", 8)),
                HasSubstr("of type F4"));
    EXPECT_THAT(error_of(file(R"({"t":{"dtype":"F32"}})", 8)), HasSubstr("entry of tensor t"));
}

TEST(CopyState, NamesWhatDiffersAndChangesNothingThen) {
    const NamedTensors wanted = {
        {"a", torch::zeros({2})}, {"b", torch::zeros({3})}, {"c", torch::zeros({1})}};
    try {
        copy_state(wanted, {{"a", torch::ones({2})}, {"b", torch::ones({4, 1})}, {"d", torch::ones({1})}},
                   "file");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr("file does not fit"), HasSubstr("b is [4, 1] instead of [3]"),
                          HasSubstr("missing: c"), HasSubstr("not part of this model: d")));
    }
    EXPECT_EQ(wanted[0].second.sum().item<double>(), 0);
    copy_state(wanted,
               {{"a", torch::ones({2}, torch::kFloat64)}, {"b", torch::ones({3})}, {"c", torch::ones({1})}},
               "");
    EXPECT_EQ(wanted[0].second.sum().item<double>(), 2);
}

}  // namespace
}  // namespace joulemark::train

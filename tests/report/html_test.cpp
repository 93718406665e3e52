// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/error.h"

namespace joulemark::report {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view shell = "<html><!--joulemark:data--></html>";

/// The content of the element with this id.
std::string element(const std::string& page, const std::string& id) {
    const std::string open = "id=\"" + id + "\">";
    const std::size_t begin = page.find(open) + open.size();
    return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string unbase64(std::string_view text) {
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0;
    int held = 0;
    for (const char c : text) {
        if (c == '=') {
            break;
        }
        bits = bits << 6 | static_cast<unsigned>(alphabet.find(c));
        if ((held += 6) >= 8) {
            bytes += static_cast<char>(bits >> (held -= 8) & 255);
        }
    }
    return bytes;
}

std::string gunzip(std::string_view bytes) {
    z_stream stream{};
    inflateInit2(&stream, 15 + 16);
    std::string out(1 << 20, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    inflateEnd(&stream);
    return out;
}

TEST(Html, KeepsTheDocumentReadableAndUnableToLeaveItsElement) {
    const json analysis = {{"runs", {{{"run", "</script><script>alert(1)</script><!--"}, {"energy_j", nullptr}}}}};
    const std::string page = html({analysis, nullptr, nullptr, nullptr, {}}, shell);
    EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
    EXPECT_EQ(json::parse(element(page, "joulemark-model")).at("analysis"), analysis);
}

TEST(Html, WritesWhatJsonCannotSayAsAbsent) {
    const json analysis = {{"nan", std::nan("")}, {"infinite", std::numeric_limits<double>::infinity()}, {"text", "\xff"}};
    const json read = json::parse(element(html({analysis, nullptr, nullptr, nullptr, {}}, shell), "joulemark-model"));
    EXPECT_TRUE(read["analysis"]["nan"].is_null());
    EXPECT_TRUE(read["analysis"]["infinite"].is_null());
    EXPECT_EQ(read["analysis"]["text"], "\xEF\xBF\xBD");
}

TEST(Html, TracesComeBackAsTheyWere) {
    constexpr std::int64_t uptime_of_years = 100'000'000'000'000'000;
    const store::Series series{"run", "host", "gpu0", "power_w", {uptime_of_years, uptime_of_years + 100'000'000},
                               {1.5, std::nan("")}, {250.25, std::nan("")}, {300, std::nan("")}};
    const std::string page = html({{}, nullptr, nullptr, nullptr, {series}}, shell);
    const json index = json::parse(element(page, "joulemark-model")).at("traces");
    ASSERT_EQ(index.size(), 1u);
    EXPECT_EQ(index[0]["run"], "run");
    EXPECT_EQ(index[0]["series"], json::parse(R"([{"host":"host","device":"gpu0","metric":"power_w"}])"));
    const json traces = json::parse(gunzip(unbase64(element(page, index[0]["block"]))));
    EXPECT_EQ(traces, json::parse(R"([{"start_ns":100000000000000000,"time_s":[0,0.1],"minimum":[1.5,null],)"
                                  R"("mean":[250.25,null],"maximum":[300,null]}])"));
}

TEST(Html, EachRunHasABlockOfItsOwn) {
    const store::Series a{"a", "h", "gpu0", "power_w", {}, {}, {}, {}};
    const store::Series b{"b", "h", "gpu0", "power_w", {}, {}, {}, {}};
    const std::string page = html({{}, nullptr, nullptr, nullptr, {a, b, a}}, shell);
    const json index = json::parse(element(page, "joulemark-model")).at("traces");
    ASSERT_EQ(index.size(), 2u);
    EXPECT_EQ(index[0]["series"].size(), 2u);
    EXPECT_NE(index[0]["block"], index[1]["block"]);
}

TEST(Html, PageWithoutAPlaceForDataIsRefused) {
    EXPECT_THROW(html({}, "<html></html>"), Error);
}

TEST(Html, ThePageInTheBinaryHasAPlaceForData) {
    if (const auto built = page()) {
        EXPECT_THAT(std::string(*built), HasSubstr("<!--joulemark:data-->"));
        EXPECT_THAT(std::string(*built), HasSubstr("default-src 'none'"));
        EXPECT_TRUE(built->ends_with("</html>\n"));
    }
}

TEST(Base64, VectorsOfRfc4648) {
    EXPECT_EQ(base64(""), "");
    EXPECT_EQ(base64("f"), "Zg==");
    EXPECT_EQ(base64("fo"), "Zm8=");
    EXPECT_EQ(base64("foo"), "Zm9v");
    EXPECT_EQ(base64("foob"), "Zm9vYg==");
    EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace joulemark::report

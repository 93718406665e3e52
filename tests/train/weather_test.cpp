// SPDX-License-Identifier: Apache-2.0
#include "data/weather.h"

#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <hdf5.h>

#include "engine/registry.h"
#include "models/afno.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using torch::Tensor;

// Two years of 5 and 4 times, 2 channels, 9 x 16 points, the first stored in one piece and the second in
// compressed chunks: tests/reference/weather.py --era5.
const std::filesystem::path era5 = std::filesystem::path(JOULEMARK_FIXTURES) / "train/era5";

Tensor sample(const WeatherDataset& data, std::uint32_t index) {
    auto loaded = data.load(index, 0);
    EXPECT_TRUE(loaded) << loaded.failure().reason;
    return loaded->front();
}

/// What that script writes: element (t, c, y, x) of year k.
float value(int year, std::int64_t t, std::int64_t c, std::int64_t y, std::int64_t x) {
    return static_cast<float>(1000 * c + 100 * year + 10 * t) + 0.5F * static_cast<float>(y) +
           0.03125F * static_cast<float>(x * (c + 1));
}

TEST(Era5, SamplesAreConsecutiveTimesOfOneYear) {
    const auto data = Era5Weather::open(era5 / "train", 1, 4);
    EXPECT_EQ(data->grid().height, 8);  // of 9
    EXPECT_EQ(data->grid().latitudes, 9);
    EXPECT_EQ(data->grid().width, 16);
    ASSERT_EQ(data->size(), 4U + 3U);
    for (const auto& [index, year, time] : {std::tuple{0, 0, 0}, {3, 0, 3}, {4, 1, 0}, {6, 1, 2}}) {
        const Tensor fields = sample(*data, static_cast<std::uint32_t>(index));
        ASSERT_EQ(fields.sizes(), (std::vector<std::int64_t>{2, 2, 8, 16}));
        for (const std::int64_t step : {0, 1}) {
            EXPECT_EQ(fields[step][1][7][15].item<float>(), value(year, time + step, 1, 7, 15));
            EXPECT_EQ(fields[step][0][2][3].item<float>(), value(year, time + step, 0, 2, 3));
        }
    }
    EXPECT_EQ(Era5Weather::open(era5 / "train", 2, 4)->size(), 3U + 2U);
    const Batch batch = data->collate({Sample{sample(*data, 5)}, Sample{sample(*data, 0)}}, false);
    EXPECT_EQ(batch.samples, 2);
    EXPECT_TRUE(batch.inputs.front()[0].equal(sample(*data, 5)));
    EXPECT_TRUE(batch.inputs.front()[1].equal(sample(*data, 0)));
}

TEST(Era5, StatisticsAreThoseOfTheFieldsWhereNoneAreGiven) {
    const TemporaryFolder none;
    const auto data = Era5Weather::open(era5 / "train", 1, 4);
    const WeatherStatistics computed = data->statistics(none.path());
    std::vector<Tensor> first;
    for (std::uint32_t i = 0; i < data->size(); ++i) {
        first.push_back(sample(*data, i)[0].to(torch::kFloat64));
    }
    const Tensor all = torch::stack(first);  // [times, C, H, W]
    EXPECT_TRUE(computed.mean.allclose(all.mean({0, 2, 3}).to(torch::kFloat32), 1e-5));
    EXPECT_TRUE(computed.sd.allclose(all.std({0, 2, 3}, /*unbiased=*/false).to(torch::kFloat32), 1e-4));
    EXPECT_TRUE(computed.climatology.allclose(all.mean(0).to(torch::kFloat32), 1e-5));
}

TEST(Era5, StatisticsComeFromFilesWhereThereAreSome) {
    const auto data = Era5Weather::open(era5 / "train", 1, 4);
    const WeatherStatistics given = data->statistics(era5);  // era5/stats/*.npy
    EXPECT_TRUE(given.mean.equal(torch::tensor({3.0F, 4.0F})));
    EXPECT_TRUE(given.sd.equal(torch::tensor({0.5F, 2.0F})));
    EXPECT_EQ(given.climatology.sizes(), (std::vector<std::int64_t>{2, 8, 16}));
    EXPECT_EQ(given.climatology[1][7][15].item<float>(), 9 * 16 + 7 * 16 + 15);
}

TEST(Era5, StatisticsComeInPairs) {
    const TemporaryFolder folder;
    const auto data = Era5Weather::open(era5 / "train", 1, 4);
    std::filesystem::create_directories(folder.path() / "stats");
    std::filesystem::copy(era5 / "stats/global_stds.npy", folder.path() / "stats/global_stds.npy");
    EXPECT_THROW(data->statistics(folder.path()), Error);
}

/// A year of two fields of 4 x 4 points; the value at channel `hole` of time 1 is none.
void write_year(const std::filesystem::path& path, std::int64_t hole) {
    constexpr std::array<hsize_t, 4> shape = {2, 2, 4, 4};
    std::vector<float> values(64, 1);
    if (hole >= 0) {
        values[static_cast<std::size_t>(32 + 16 * hole + 5)] = std::numeric_limits<float>::quiet_NaN();
    }
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(4, shape.data(), nullptr);
    const hid_t data =
        H5Dcreate2(file, "fields", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
}

TEST(Era5, NamesFileAndChannelOfAValueThatIsNone) {
    const TemporaryFolder folder;
    write_year(folder.path() / "2001.h5", 1);
    const auto data = Era5Weather::open(folder.path(), 1, 4);
    const auto loaded = data->load(0, 0);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.failure().reason, testing::HasSubstr("2001.h5: channel 1 of time 1 holds"));
}

TEST(Era5, PassesOverAFileThatIsCut) {
    const TemporaryFolder folder;
    write_year(folder.path() / "2001.h5", -1);
    write_year(folder.path() / "2002.h5", -1);
    EXPECT_EQ(Era5Weather::open(folder.path(), 1, 4)->size(), 2U);
    std::filesystem::resize_file(folder.path() / "2001.h5", 1000);
    {
        const auto data = Era5Weather::open(folder.path(), 1, 4);
        EXPECT_EQ(data->size(), 1U);
        EXPECT_THAT(data->problems(), testing::ElementsAre(testing::HasSubstr("2001.h5 cannot be opened")));
    }  // a file that is open already the library does not open anew
    std::filesystem::resize_file(folder.path() / "2002.h5", 1000);
    EXPECT_THROW(Era5Weather::open(folder.path(), 1, 4), Error);
}

TEST(SyntheticWeather, MovesEastAndIsNormalised) {
    const WeatherGrid grid{.channels = 3, .height = 16, .width = 32, .latitudes = 17};
    const SyntheticWeather data(grid, 2, 40, 0, 7);
    const Tensor fields = sample(data, 5);
    EXPECT_TRUE(fields[1].equal(fields[0].roll(1, -1)));
    EXPECT_TRUE(fields[2].equal(fields[0].roll(2, -1)));
    EXPECT_TRUE(fields.equal(sample(data, 5)));
    EXPECT_FALSE(fields[0].equal(sample(data, 6)[0]));
    EXPECT_NEAR(fields.mean().item<double>(), 0, 0.1);
    EXPECT_NEAR(fields.std().item<double>(), 1, 0.35);
}

TEST(WeatherGrid, WeightsFollowTheCosineOfLatitude) {
    const WeatherGrid grid;  // 720 of 721 rows
    const Tensor weights = grid.latitude_weights();
    EXPECT_NEAR(weights.mean().item<double>(), 1, 1e-5);
    EXPECT_NEAR(weights[0].item<double>(), 0, 1e-5);
    EXPECT_NEAR((weights[120] / weights[360]).item<double>(), 0.5, 1e-5);  // 60 degrees north and the equator
}

TEST(Afno, HasThePublishedNumberOfParametersAndNames) {
    AfnoConfig config;
    config.depth = 1;  // the others are the same
    const AfnoNet one(config);
    std::int64_t parameters = 0;
    for (const Tensor& parameter : one->parameters()) {
        parameters += parameter.numel();
    }
    std::int64_t block = 0;
    for (const Tensor& parameter : one->named_children()["blocks"]->parameters()) {
        block += parameter.numel();
    }
    EXPECT_EQ(parameters + 11 * block, 74'691'840);
    EXPECT_EQ(find_model("fourcastnet").parameters, 74'691'840);
    const auto named = one->named_parameters();
    for (const char* name :
         {"pos_embed", "patch_embed.proj.weight", "blocks.0.norm1.weight", "blocks.0.filter.w1",
          "blocks.0.filter.b2", "blocks.0.mlp.fc2.bias", "norm.bias", "head.weight"}) {
        EXPECT_TRUE(named.contains(name)) << name;
    }
}

/// The workload on one sample of `data` whose network is silenced: it predicts zeros, the mean.
TEST(FourCastNet, RatesTheForecastByLatitudeInTheDatasUnits) {
    Options options;
    options.model = "fourcastnet";
    options.dataset = era5.string();
    HyperParameters settings({"patch=4", "embed=8", "depth=1", "blocks=2", "channel=1"});
    const auto workload = find_model("fourcastnet").make(options, settings, nullptr);
    {
        const torch::NoGradGuard no_grad;
        workload->module().named_parameters()["head.weight"].zero_();
    }
    EXPECT_EQ(workload->quality_name(), "channel1_rmse");
    const auto& data = dynamic_cast<const WeatherDataset&>(workload->training_data());
    const Tensor fields = sample(data, 2);
    const Outcome outcome = workload->forward(data.collate({Sample{fields}}, false));
    EXPECT_NEAR(outcome.loss.item<double>(), 1, 1e-5);  // |0 - y| / |y|

    double squares = 0;
    double forecast2 = 0;
    double truth2 = 0;
    double product = 0;
    double weights = 0;
    for (std::int64_t y = 0; y < 8; ++y) {
        const double weight = std::cos((90 - 180.0 * static_cast<double>(y) / 8) * M_PI / 180);
        for (std::int64_t x = 0; x < 16; ++x) {
            const double truth = fields[1][1][y][x].item<double>();
            const auto climate = static_cast<double>(9 * 16 + y * 16 + x);
            const double prediction = 4;  // stats/global_means.npy
            squares += weight * (truth - prediction) * (truth - prediction);
            forecast2 += weight * (prediction - climate) * (prediction - climate);
            truth2 += weight * (truth - climate) * (truth - climate);
            product += weight * (prediction - climate) * (truth - climate);
            weights += weight;
        }
    }
    const double rmse = std::sqrt(squares / weights);
    EXPECT_NEAR(outcome.quality_sum.item<double>(), rmse, 1e-4 * rmse);
    EXPECT_EQ(workload->further_names(), std::vector<std::string>{"channel1_acc"});
    EXPECT_NEAR(outcome.further_sums[0].item<double>(), product / std::sqrt(forecast2 * truth2), 1e-4);
}

}  // namespace
}  // namespace joulemark::train

// Chunks of codec autoencoder, whose models the environment names.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/integration_hdf5/hdf5_file.h"
#include "tests/unit_models/level_models.h"
#include "tests/unit_models/small_models.h"

namespace {

using namespace quern::hdf5_test;

class HDF5Models : public Hdf5FilterTest {
 protected:
  static constexpr std::uint32_t kAutoencoder = 5, kStencil = 3, kWrittenOnce = 32;

  void SetUp() override {
    Hdf5FilterTest::SetUp();
    model_ = path_ + ".qmodel";
    levels_ = path_ + "_levels.qmodel";
    write_file(model_, quern::models::write_block_model(quern::models::test::cosine_model({1, 16, 16}, 5)));
    write_file(levels_, quern::models::write_level_model(quern::models::test::larger_model()));
  }
  static void write_file(const std::string& path, const quern::Vector<std::uint8_t>& bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void TearDown() override {
    unsetenv("QUERN_MODELS");  // NOLINT(concurrency-mt-unsafe): no other thread runs
    std::remove(model_.c_str());
    std::remove(levels_.c_str());
    Hdf5FilterTest::TearDown();
  }
  static void name_models(const std::string& paths) {
    ASSERT_EQ(setenv("QUERN_MODELS", paths.c_str(), 1), 0);  // NOLINT(concurrency-mt-unsafe)
  }
  herr_t read(std::vector<float>& values) {
    reopen();
    return H5Dread(open("x"), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }

  std::string model_;   ///< of codec autoencoder
  std::string levels_;  ///< of codec stencil
};

TEST_F(HDF5Models, FirstOneEncodes_AndEveryOneDecodes) {
  std::vector<float> values(64 * 64), back(values.size());
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      values[static_cast<std::size_t>(64 * y + x)] = static_cast<float>(40 * std::sin(x * 0.3) * std::cos(y * 0.2));
  name_models(model_);
  {
    const Id dataset = create("x", H5T_NATIVE_FLOAT, {64, 64},
                              chunked({64, 64}, request(QUERN_BOUND_ABS, 0.5, kAutoencoder, kWrittenOnce)));
    ASSERT_TRUE(dataset.ok()) << error_text();
    ASSERT_GE(quern_hdf5_write(dataset, QUERN_F32, values.data(), 1), 0) << error_text();
  }
  ASSERT_GE(read(back), 0) << error_text();
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_LE(std::abs(back[i] - values[i]), 0.5) << i;

  unsetenv("QUERN_MODELS");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_LT(read(back), 0);
  EXPECT_TRUE(reason_has("model"));
  name_models(":" + model_ + "x");
  EXPECT_LT(read(back), 0);
  EXPECT_TRUE(reason_has("x, which cannot be read"));
  std::ofstream(model_ + "x") << "no model";
  EXPECT_LT(read(back), 0);
  EXPECT_TRUE(reason_has("is no model of codec"));
  std::remove((model_ + "x").c_str());
  name_models(":" + model_ + ":" + model_);
  EXPECT_GE(read(back), 0) << error_text();
}

TEST_F(HDF5Models, EachCodec_EncodesWithTheFirstOfItsKind) {
  std::vector<float> values(64 * 64), back(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(40 * std::sin(static_cast<double>(i % 64) * 0.3) *
                                   std::cos(static_cast<double>(i / 64) * 0.2));
  for (const std::uint32_t codec : {kAutoencoder, kStencil})
    for (const std::string& models : {levels_ + ":" + model_, model_ + ":" + levels_}) {
      SCOPED_TRACE(std::to_string(codec) + " " + models);
      name_models(models);
      const std::string name = "x" + std::to_string(codec) + (models.starts_with(levels_) ? "l" : "m");
      {
        const Id dataset = create(name.c_str(), H5T_NATIVE_FLOAT, {64, 64},
                                  chunked({64, 64}, request(QUERN_BOUND_ABS, 0.5, codec, kWrittenOnce)));
        ASSERT_TRUE(dataset.ok()) << error_text();
        ASSERT_GE(quern_hdf5_write(dataset, QUERN_F32, values.data(), 1), 0) << error_text();
      }
      reopen();
      ASSERT_GE(H5Dread(open(name.c_str()), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0)
          << error_text();
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_LE(std::abs(back[i] - values[i]), 0.5) << i;
      if (codec != kAutoencoder) continue;
      // It is the model of blocks that encodes: without it nothing is read.
      name_models(levels_);
      reopen();
      EXPECT_LT(H5Dread(open(name.c_str()), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0);
      EXPECT_TRUE(reason_has("model"));
    }
}

}  // namespace

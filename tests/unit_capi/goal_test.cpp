// Goals and targets through the C interface: what the report says of the codec, and that targets are met.
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include <quern/compress.h>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

bool compress_array(const ArrayView& array, const CompressOptions& options, ByteSink& sink) {
  return compress(array, options, builtin_codecs(), Execution{}, sink).ok();
}

class Goal : public ::testing::Test {
 protected:
  Goal() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const auto x = static_cast<float>(i % 60), y = static_cast<float>(i / 60);
      // Noise that no linear prediction finds: ratios then fall evenly with the bound.
      const std::uint32_t hash = (static_cast<std::uint32_t>(i) + 1) * 2654435761u;
      const auto noise = static_cast<float>((hash ^ hash >> 15) * 2246822519u >> 16) / 65536;
      values_[i] = 20 * std::sin(0.1F * x) * std::cos(0.03F * y) + noise;
    }
    for (std::size_t i = 0; i < quern_codec_count(); ++i) {
      quern_codec_info info = QUERN_CODEC_INFO_INIT;
      EXPECT_EQ(quern_codec_get(i, &info), QUERN_OK);
      ids_[info.name] = info.id;
    }
  }

  quern_array array() { return make_array(QUERN_F32, {10, 40, 60}, values_.data()); }

  quern_report compress(const char* wanted) {
    const auto params = make_params(wanted);
    const quern_array input = array();
    quern_report report = QUERN_REPORT_INIT;
    std::uint64_t size = 0;
    stream_.resize(values_.size() * 8);
    EXPECT_EQ(quern_compress(context_.get(), params.get(), &input, stream_.data(), stream_.size(), &size, &report),
              QUERN_OK)
        << quern_last_error(context_.get());
    stream_.resize(size);
    // What decodes it is told neither goal nor codec.
    EXPECT_EQ(quern_verify(context_.get(), &input, stream_.data(), size, nullptr), QUERN_OK);
    quern_stream_info info = QUERN_STREAM_INFO_INIT;
    EXPECT_EQ(quern_inspect(stream_.data(), size, &info), QUERN_OK);
    EXPECT_EQ(info.codec_id, report.codec_id);
    EXPECT_EQ(report.output_bytes, size);
    return report;
  }

  double measured_psnr() {
    std::vector<float> back(values_.size());
    quern_array output = make_array(QUERN_F32, {10, 40, 60}, back.data());
    EXPECT_EQ(quern_decompress(context_.get(), stream_.data(), stream_.size(), &output), QUERN_OK);
    double sum = 0, low = values_[0], high = values_[0];
    for (std::size_t i = 0; i < back.size(); ++i) {
      sum += std::pow(static_cast<double>(values_[i]) - back[i], 2);
      low = std::min<double>(low, values_[i]);
      high = std::max<double>(high, values_[i]);
    }
    return 20 * std::log10(high - low) - 10 * std::log10(sum / static_cast<double>(back.size()));
  }

  std::vector<float> values_ = std::vector<float>(24000);
  std::vector<std::uint8_t> stream_;
  std::map<std::string, int> ids_;
  ContextHandle context_ = make_context();
};

TEST_F(Goal, RatioIsTheDefault_AndTheSmallest) {
  const quern_report chosen = compress("rel=1e-3");
  EXPECT_EQ(chosen.codec_reason, QUERN_REASON_SMALLEST);
  std::uint64_t least = UINT64_MAX;
  for (const char* codec : {"lorenzo", "stencil"}) {
    const quern_report report = compress((std::string("rel=1e-3 codec=") + codec).c_str());
    EXPECT_EQ(report.codec_reason, QUERN_REASON_ASKED_FOR);
    EXPECT_EQ(report.codec_id, ids_.at(codec));
    least = std::min(least, report.output_bytes);
  }
  EXPECT_EQ(chosen.output_bytes, least);
}

TEST_F(Goal, Speed_NeverRunsTheSlowCodec) {
  for (const char* bound : {"rel=1e-3", "psnr=60", "ratio=8", "pwrel=1e-2"}) {
    const quern_report report = compress((std::string("goal=speed ") + bound).c_str());
    EXPECT_EQ(report.codec_id, ids_.at("lorenzo"));
    EXPECT_EQ(report.codec_reason, QUERN_REASON_FASTEST);
  }
}

TEST_F(Goal, Psnr_MeasuresUnderEveryBound) {
  const quern_report report = compress("goal=psnr rel=1e-3");
  EXPECT_EQ(report.codec_reason, QUERN_REASON_BEST_QUALITY);
  EXPECT_NEAR(report.psnr_db, measured_psnr(), 1e-6);
}

TEST_F(Goal, Targets_AreMetWithEveryCodec) {
  for (const char* codec : {"auto", "stencil", "lorenzo"}) {
    const std::string with = std::string(" codec=") + codec;
    const quern_report report = compress(("psnr=55" + with).c_str());
    EXPECT_GE(measured_psnr(), 55);
    EXPECT_LE(measured_psnr(), 55.3);
    EXPECT_NEAR(report.psnr_db, measured_psnr(), 1e-6);
    compress(("ratio=8" + with).c_str());
    const double ratio = static_cast<double>(values_.size() * 4) / static_cast<double>(stream_.size());
    EXPECT_GE(ratio, 8);
    EXPECT_LE(ratio, 8 * 1.03);
  }
}

// Large enough for the search to ask the estimator.
TEST_F(Goal, Targets_HaveTheBytesOfTheCppInterface) {
  std::vector<float> values;
  while (values.size() < 72000) values.insert(values.end(), values_.begin(), values_.end());
  const quern_array input = make_array(QUERN_F32, {20, 60, 60}, values.data());
  for (const auto& [setting, bound] : {std::pair{"psnr=60", ErrorBound{BoundKind::psnr, 60}},
                                       std::pair{"ratio=12", ErrorBound{BoundKind::ratio, 12}}}) {
    std::vector<std::uint8_t> from_c(values.size() * 5);
    std::uint64_t size = 0;
    const auto params = make_params(setting);
    ASSERT_EQ(quern_compress(context_.get(), params.get(), &input, from_c.data(), from_c.size(), &size, nullptr),
              QUERN_OK);
    from_c.resize(size);
    CompressOptions options;
    options.bound = bound;
    Vector<std::uint8_t> from_cpp;
    VectorSink sink(from_cpp);
    const ArrayView array{values.data(), DType::f32, *Shape::parse("20x60x60")};
    ASSERT_TRUE(compress_array(array, options, sink));
    EXPECT_TRUE(std::equal(from_c.begin(), from_c.end(), from_cpp.begin(), from_cpp.end())) << setting;
  }
}

}  // namespace
}  // namespace quern::testing

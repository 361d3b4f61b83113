// The trials that other compressors were put through: a field of 48^3, its stream cut, flipped and replaced by garbage.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "tests/fuzz/reseal.h"
#include "tests/golden/values.h"
#include "tests/malformed/trial.h"
#include "tests/support/instrumented.h"
#include "tests/support/thorough.h"

namespace quern::malformed {
namespace {

constexpr std::uint64_t kSide = 48;
constexpr std::uint32_t kSeed = 20260;

/// Smooth along all axes with a little noise and a gap in one corner.
testing::OwnedArray field() {
  return golden::values_of(DType::f32, {kSide, kSide, kSide}, [](std::uint64_t i) {
    const auto x = static_cast<double>(i % kSide) - 20;
    const auto y = static_cast<double>(i / kSide % kSide) - 30;
    const auto z = static_cast<double>(i / (kSide * kSide)) - 10;
    if (x > 15 && y > 5 && z > 20) return std::numeric_limits<double>::quiet_NaN();
    return x * x / 8 - y * z / 16 + x + static_cast<double>(golden::noise(1, i, 100)) / 400;
  });
}

struct Trial {
  std::string name;
  Vector<std::uint8_t> bytes;
};

Vector<std::uint8_t> flipped(Vector<std::uint8_t> bytes, std::uint64_t bit) {
  bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  return bytes;
}

std::vector<Trial> make_trials(const Vector<std::uint8_t>& stream) {
  std::mt19937_64 random(kSeed);
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < 14; ++i) {
    const auto kept = static_cast<std::ptrdiff_t>(stream.size() * i / 14);
    trials.push_back({"cut to " + std::to_string(kept), {stream.begin(), stream.begin() + kept}});
  }
  const auto add_flip = [&](const char* where, std::uint64_t bit) {
    trials.push_back({std::string(where) + ", bit " + std::to_string(bit), flipped(stream, bit)});
  };
  const std::uint64_t bits = 8 * stream.size();
  for (std::size_t i = 0; i < 64; ++i) add_flip("head", random() % (8 * 64));
  for (std::size_t i = 0; i < 64; ++i) add_flip("tail", bits - 1 - random() % (8 * 64));
  for (std::size_t i = 0; i < 80; ++i) add_flip("anywhere", random() % bits);
  for (std::size_t i = 0; i < 8; ++i) {
    Vector<std::uint8_t> garbage(stream.size());
    for (std::uint8_t& byte : garbage) byte = static_cast<std::uint8_t>(random());
    // Half of them at least begin as a stream does.
    if (i % 2 == 1) std::copy(stream.begin(), stream.begin() + 12, garbage.begin());
    trials.push_back({"garbage " + std::to_string(i), std::move(garbage)});
  }
  return trials;
}

/// By the name of a codec; behind a space, a layout of stencil.
class FieldTrials : public ::testing::TestWithParam<const char*> {
 protected:
  Vector<std::uint8_t> stream() const {
    const testing::OwnedArray array = field();
    CompressOptions options;
    const std::string name = GetParam();
    const std::size_t space = name.find(' ');
    options.codec = name.substr(0, space);
    if (space != std::string::npos) options.settings = {{"layout", String(std::string_view(name).substr(space + 1))}};
    if (options.codec != "lossless") options.bound = {BoundKind::abs, 0.05};
    Vector<std::uint8_t> bytes;
    VectorSink sink(bytes);
    const auto report = compress(array.view(), options, builtin_codecs(), {}, sink);
    EXPECT_TRUE(report.ok()) << report.status().text();
    Tally whole;
    const auto decoded = decode_strictly("undamaged", bytes, whole);
    EXPECT_TRUE(decoded.ok()) << decoded.status().text();
    return bytes;
  }
};

TEST_P(FieldTrials, DamagedStream_IsRefused) {
  Tally tally;
  for (const Trial& trial : make_trials(stream())) {
    const auto strict = decode_strictly(trial.name, trial.bytes, tally);
    EXPECT_FALSE(strict.ok()) << trial.name << " is accepted; seed " << kSeed;
    if (!testing::kInstrumented || testing::thorough() || tally.trials % 3 == 0)
      try_other_paths(trial.name, trial.bytes, strict);
  }
  EXPECT_EQ(tally.trials, 230u);
  EXPECT_EQ(tally.accepted, 0u);
  std::cout << GetParam() << ", field trials: " << tally.text() << "\n";
}

TEST_P(FieldTrials, DamageBehindRepairedChecksums_GivesDataOrStatus) {
  Tally tally;
  for (const Trial& trial : make_trials(stream())) {
    const auto bytes = fuzz::reseal(trial.bytes);
    const auto strict = decode_strictly(trial.name, bytes, tally);
    // Most of these decode, in every way that there is: one in three takes them all.
    if (testing::thorough() || tally.trials % 3 == 0) try_other_paths(trial.name, bytes, strict);
  }
  EXPECT_EQ(tally.trials, 230u);
  EXPECT_GT(tally.accepted, 0u);
  std::cout << GetParam() << ", field trials with repaired checksums: " << tally.text() << "\n";
}

INSTANTIATE_TEST_SUITE_P(Codecs, FieldTrials,
                         ::testing::Values("lorenzo", "lossless", "stencil raster", "stencil levels", "stencil planes",
                                           "stencil wavelet"));

}  // namespace
}  // namespace quern::malformed

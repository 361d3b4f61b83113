// Decoders of the bounded modes on bytes that no encoder wrote: data or a status, never anything else.
#include <gtest/gtest.h>

#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/tensor.h"
#include "tests/support/instrumented.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;
using Bytes = std::vector<std::uint8_t>;

TEST(HostileBytes, SidesAndChunks_ChangedCutAndMadeUp_GiveDataOrAStatus) {
  const FloatCase now = structured_case(40, 100, 1);
  FloatCase before = structured_case(40, 100, 1);
  for (float& f : before.first) f *= 1.01f;
  for (std::size_t i = 0; i < before.second.size(); ++i) before.second[i] *= i % 5 == 0 ? 1.3f : 1.0f;
  FloatCase damaged = now;
  for (std::size_t i = 0; i < 4000; i += 57) damaged.first[i] = damaged.second[i] = std::bit_cast<float>(0x7fc00001u);
  const TensorDescription description{ElementType::f32, Shape::make(std::vector<std::uint64_t>{40, 100}).value()};
  const Bytes first = bytes_of_floats(damaged.first), second = bytes_of_floats(damaged.second);
  const Bytes base_first = bytes_of_floats(before.first), base_second = bytes_of_floats(before.second);
  const Bytes companion = bytes_of_floats(now.second);
  Bytes direction(first.size());
  update_direction(base_first, companion, direction);
  SerialRunner runner;
  std::mt19937 random(42);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (const Mode mode : {Mode::ebq, Mode::updq, Mode::logq, Mode::blk8, Mode::blk4})
    for (const bool with_base : {false, true}) {
      TensorInputs inputs{mode == Mode::logq ? second : first, {}, companion};
      if (with_base) {
        inputs.base = mode == Mode::logq ? base_second : base_first;
        inputs.direction = direction;
        inputs.base_direction = direction;
      }
      TensorRequest request;
      request.mode = mode;
      request.bound = .05;
      const auto encoded = encode_tensor(description, request, inputs, runner);
      ASSERT_TRUE(encoded.ok()) << encoded.status().text();
      const Bytes side(encoded.value().side.begin(), encoded.value().side.end());
      const auto chunk_span = encoded.value().chunk(0);
      const Bytes chunk(chunk_span.begin(), chunk_span.end());
      TensorInputs known = inputs;
      known.values = {};
      known.base = mode == Mode::logq ? base_second : base_first;
      known.direction = known.base_direction = direction;
      Bytes out(first.size());
      AlignedBuffer scratch;
      const auto decode = [&](const Bytes& s, const Bytes& c) {
        // Copies of exactly that size: a sanitizer sees every byte read beyond them.
        const Bytes side_copy(s), chunk_copy(c);
        const Status status = decode_chunk(description, mode, side_copy, 0, chunk_copy, known, out, scratch);
        ++(status.ok() ? accepted : refused);
        if (!status.ok()) {
          EXPECT_TRUE(status.code() == StatusCode::corrupt || status.code() == StatusCode::truncated ||
                      status.code() == StatusCode::invalid_argument)
              << status.text();
        }
      };
      decode(side, chunk);
      ASSERT_EQ(refused, 0u) << mode_name(mode);
      const int rounds = kInstrumented ? 200 : 1500;
      for (int i = 0; i < rounds; ++i) {
        Bytes s = side, c = chunk;
        Bytes& target = i % 2 == 0 ? s : c;
        for (unsigned k = 0; k <= i % 3u; ++k)
          target[random() % target.size()] = static_cast<std::uint8_t>(i % 5 == 0 ? 255u : random());
        decode(s, c);
        Bytes cut = i % 2 == 0 ? side : chunk;
        cut.resize(random() % cut.size());
        i % 2 == 0 ? decode(cut, chunk) : decode(side, cut);
        Bytes noise(random() % 300);
        for (std::uint8_t& b : noise) b = static_cast<std::uint8_t>(random());
        i % 2 == 0 ? decode(noise, chunk) : decode(side, noise);
      }
      refused = 0;
    }
  EXPECT_GT(accepted, 10u);
}

}  // namespace
}  // namespace quern::testing

// What the bounded modes write does not change: hashes of coded bytes of made-up moments and weights, with and without
// a base, specials and directions, of one chunk and of several, recorded before these modes were made faster.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/tensor.h"

namespace quern::codec::tensor {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Numbers whose spread differs from row to row and from column to column; by exact or rounded-once operations alone,
/// so the same everywhere.
Bytes numbers(std::size_t rows, std::size_t columns, unsigned seed, bool squares) {
  std::mt19937_64 random(seed);
  std::vector<float> column_scales(columns);
  for (float& scale : column_scales) scale = static_cast<float>(1 + random() % 64) * 0x1p-5f;
  Bytes bytes(rows * columns * 4);
  for (std::size_t r = 0; r < rows; ++r) {
    const float row_scale = static_cast<float>(1 + random() % 256) * 0x1p-14f;
    for (std::size_t c = 0; c < columns; ++c) {
      float x = -4;  // the sum of eight is nearly normal
      for (unsigned k = 0; k < 8; ++k) x += static_cast<float>(random() >> 40) * 0x1p-24f;
      x = x * row_scale * column_scales[c];
      if (squares) x = x * x;
      std::memcpy(bytes.data() + 4 * (r * columns + c), &x, 4);
    }
  }
  return bytes;
}

/// Puts values in that no quantizer takes, singly and in runs.
void spoil(Bytes& bytes, unsigned seed, std::uint32_t large) {
  const std::array<std::uint32_t, 8> patterns{0,           0x80000000u, 0x7f800000u, 0xff800000u,
                                              0x7fc00001u, 0x00000001u, 0xffc12345u, large};
  std::mt19937_64 random(seed);
  const std::size_t elems = bytes.size() / 4;
  for (std::size_t i = random() % 50; i < elems; i += 1 + random() % 400) {
    const std::uint32_t pattern = patterns[random() % patterns.size()];
    const std::size_t run = random() % 8 == 0 ? random() % 40 : 1;
    for (std::size_t k = 0; k < run && i < elems; ++k, ++i) std::memcpy(bytes.data() + 4 * i, &pattern, 4);
  }
}

/// A step before: most of each number stays.
Bytes earlier(const Bytes& bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes out(bytes.size());
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    float x = 0;
    std::memcpy(&x, bytes.data() + 4 * i, 4);
    x = x * (1 + static_cast<float>(random() >> 40) * 0x1p-27f);
    std::memcpy(out.data() + 4 * i, &x, 4);
  }
  return out;
}

std::uint64_t hash_of(std::uint64_t hash, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * UINT64_C(0x100000001b3);
  return hash;
}

struct Case {
  std::size_t rows;
  std::size_t columns;
  bool with_base;
  bool spoilt;
  std::array<double, 3> bounds;         ///< of logq, updq, ebq
  std::array<std::uint64_t, 4> bytes;   ///< total, one after the other: side and chunks
  std::array<std::uint64_t, 4> hashes;  ///< logq, updq, ebq, and ebq with directions
};

class Coder {
 public:
  Coder(std::size_t rows, std::size_t columns) {
    const std::uint64_t extents[] = {rows, columns};
    description_ = {ElementType::f32, *TensorShape::make(extents)};
  }

  /// Codes, decodes, and says what was written.
  Bytes code(Mode mode, double bound, TensorInputs inputs, std::uint64_t& bytes, std::uint64_t& hash) {
    SerialRunner runner;
    TensorRequest request;
    request.mode = mode;
    request.bound = bound;
    request.bound_in_deviations = mode == Mode::ebq;
    Bytes while_coding(inputs.values.size());
    const Status coded = encode_tensor(description_, request, inputs, runner, memory_, encoded_, while_coding);
    EXPECT_TRUE(coded.ok()) << coded.text();
    hash = hash_of(UINT64_C(0xcbf29ce484222325), encoded_.side);
    for (std::size_t i = 0; i < encoded_.sizes.size(); ++i) hash = hash_of(hash, encoded_.chunk(i));
    bytes = encoded_.total_bytes();
    Bytes out(inputs.values.size());
    inputs.values = {};
    EXPECT_TRUE(decode_tensor(description_, encoded_, inputs, out, runner, memory_).ok());
    EXPECT_EQ(while_coding, out) << mode_name(mode) << ": what the encoder gives is not what decoding gives";
    return out;
  }

 private:
  TensorDescription description_;
  TensorMemory memory_;
  EncodedTensor encoded_;
};

void run_case(const Case& expected) {
  Bytes second = numbers(expected.rows, expected.columns, 1, true);
  Bytes first = numbers(expected.rows, expected.columns, 2, false);
  Bytes weights = numbers(expected.rows, expected.columns, 3, false);
  TensorInputs base_second, base_first, base_weights;
  const Bytes second_before = earlier(second, 4);
  const Bytes first_before = earlier(first, 5);
  const Bytes weights_before = earlier(weights, 6);
  if (expected.spoilt) {
    constexpr std::uint32_t kLargest = 0x7f7fffffu;
    spoil(second, 7, kLargest);
    spoil(first, 8, kLargest);
    spoil(weights, 9, std::bit_cast<std::uint32_t>(0.5f));
  }
  std::array<std::uint64_t, 4> bytes{};
  std::array<std::uint64_t, 4> hashes{};
  Coder coder(expected.rows, expected.columns);
  TensorInputs inputs;
  inputs.values = second;
  if (expected.with_base) inputs.base = second_before;
  const Bytes decoded_second = coder.code(Mode::logq, expected.bounds[0], inputs, bytes[0], hashes[0]);
  inputs.values = first;
  if (expected.with_base) inputs.base = first_before;
  inputs.companion = decoded_second;
  const Bytes decoded_first = coder.code(Mode::updq, expected.bounds[1], inputs, bytes[1], hashes[1]);
  inputs = {};
  inputs.values = weights;
  if (expected.with_base) inputs.base = weights_before;
  coder.code(Mode::ebq, expected.bounds[2], inputs, bytes[2], hashes[2]);
  Bytes direction(second.size());
  Bytes base_direction(second.size());
  update_direction(decoded_first, decoded_second, direction);
  update_direction(first_before, second_before, base_direction);
  if (expected.with_base) {
    inputs.direction = direction;
    inputs.base_direction = base_direction;
  }
  coder.code(Mode::ebq, expected.bounds[2] * 8, inputs, bytes[3], hashes[3]);
  EXPECT_EQ(bytes, expected.bytes);
  EXPECT_EQ(hashes, expected.hashes) << std::hex << "0x" << hashes[0] << ", 0x" << hashes[1] << ", 0x" << hashes[2]
                                     << ", 0x" << hashes[3];
}

// clang-format off
constexpr Case kCases[] = {
    {700, 1000, false, false, {.05, .05, 1e-3},
     {469492, 629979, 854929, 592887},
     {0x58ece11ccb886ec0, 0xdae3d5e12f2d21f4, 0x458fd950c9c2ba6e, 0xafed80fd0a2ccf03}},
    {700, 1000, true, true, {.05, .05, 1e-3},
     {258926, 308810, 346411, 136909},
     {0x7828ac4860bf031a, 0x578df193f6e423cd, 0x1f449f6d4bb2be43, 0x9aa5647e3c216c7d}},
    {700, 1000, true, false, {.01, .1, 1e-4},
     {167384, 204430, 704938, 445809},
     {0xb0d1facfbe3264e4, 0xd5179a5ef7b7ef63, 0xfc16b482161861db, 0x80501ccede83ad96}},
    {2100, 333, false, true, {.1, .2, 1e-2},
     {401087, 498793, 460702, 218315},
     {0xcb6e06b549bcd03, 0xe3ac2d6a57216a9c, 0x1b336c68927c7802, 0xa7cb6db5eab3e370}},
    {1, 5003, true, true, {.001, .001, 1e-6},
     {7399, 5673, 8334, 6581},
     {0x46ccf2784d775067, 0xa714ba90e34ee6e0, 0xdcb872b0fefb1289, 0x57e495896720c57f}},
    {90, 64, false, true, {4, 4, 4},
     {668, 3033, 189, 165},
     {0x3b55cc588d9eec4, 0xe55568f1a5d13232, 0x46e99d5bd9db6bcf, 0xc87b29eb60d191ec}},
    {3, 70000, true, false, {.02, .02, 1e-1},
     {33368, 146226, 5229, 69},
     {0x41f8b0d91af6c66d, 0x52fcfbe1f4cff53a, 0xadeb7d0b6ecefa4a, 0x5efa94273f0fd0a4}},
};
// clang-format on

TEST(BoundedModes_Bytes, StayWhatTheyWere) {
  for (const Case& expected : kCases) {
    SCOPED_TRACE(testing::Message() << expected.rows << " x " << expected.columns);
    run_case(expected);
  }
}

}  // namespace
}  // namespace quern::codec::tensor

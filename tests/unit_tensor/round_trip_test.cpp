// Every type, size and class of data comes back bit for bit in every mode that takes it, never larger than raw by more
// than the slack, with the same bytes for any number of threads.
#include <gtest/gtest.h>

#include "libcompress/core/task_runner.h"
#include "tests/support/instrumented.h"
#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {
namespace {

Bytes bytes_of(const EncodedTensor& encoded) {
  Bytes all(encoded.side.begin(), encoded.side.end());
  all.insert(all.end(), encoded.bytes.data(), encoded.bytes.data() + encoded.bytes.size());
  return all;
}

/// Encodes, decodes, compares; returns the bytes, or nothing where the mode cannot code the tensor.
Bytes check(const TensorDescription& description, const TensorRequest& request, const TensorInputs& inputs,
            const std::string& what) {
  SerialRunner serial;
  const auto encoded = encode_tensor(description, request, inputs, serial);
  if (!encoded.ok()) {
    EXPECT_EQ(encoded.status().code(), StatusCode::unsupported) << what << ": " << encoded.status().text();
    return {};
  }
  EXPECT_EQ(encoded->ends.size(), description.chunks());
  for (std::size_t i = 0; i < encoded->ends.size(); ++i)
    EXPECT_LE(encoded->chunk(i).size(), description.chunk_bytes(i) + 1) << what;
  TensorInputs known = inputs;
  known.values = {};
  Bytes back(description.bytes(), 0x5a);
  const Status status = decode_tensor(description, *encoded, known, back, serial);
  EXPECT_TRUE(status.ok()) << what << ": " << status.text();
  EXPECT_TRUE(std::equal(back.begin(), back.end(), inputs.values.begin(), inputs.values.end())) << what;
  return bytes_of(*encoded);
}

std::vector<std::size_t> sizes_of(ElementType type) {
  const std::size_t chunk = kChunkBytes / element_bytes(type);
  std::vector<std::size_t> sizes = {0, 1, 2, 31, 33, 255, 257, 1000, 4097, 70001};
  if (testing::kInstrumented) return sizes;
  sizes.push_back(chunk + 1);
  if (type == ElementType::f32 || type == ElementType::bf16)
    for (const std::size_t size : {chunk - 1, chunk, 2 * chunk + 12345}) sizes.push_back(size);
  return sizes;
}

TEST(Tensor_RoundTrip, AllTypesSizesClassesAndModes) {
  for (const ElementType type : kAllTypes)
    for (const std::size_t elems : sizes_of(type))
      for (const char* kind : kAllClasses) {
        const TensorDescription description = description_of(type, elems);
        const Bytes values = make_values(type, elems, kind);
        const Bytes base = drifted(values, element_bytes(type), 9);
        TensorInputs inputs;
        inputs.values = values;
        inputs.base = base;
        const std::string what =
            std::string(kind) + " type " + std::to_string(static_cast<int>(type)) + " elems " + std::to_string(elems);
        TensorRequest request;
        check(description, request, inputs, what + " best");
        for (const Mode mode : {Mode::raw, Mode::planes, Mode::delta}) {
          request.mode = mode;
          check(description, request, inputs, what + " " + mode_name(mode));
        }
      }
}

TEST(Tensor_RoundTrip, WithZstd) {
  TensorRequest request;
  request.zstd_level = 3;
  request.mode = Mode::planes;
  // The same row of noise again and again: nothing for a table, everything for a dictionary.
  Bytes values = make_values(ElementType::u16, 50000, "noise");
  for (std::size_t i = 2000; i < values.size(); ++i) values[i] = values[i - 2000];
  TensorInputs inputs;
  inputs.values = values;
  const TensorDescription description = description_of(ElementType::u16, 50000);
  const Bytes packed = check(description, request, inputs, "zstd");
  EXPECT_LT(packed.size(), values.size() / 10);
  request.zstd_level = 0;
  EXPECT_GT(check(description, request, inputs, "no zstd").size(), values.size() / 2);
  for (const char* kind : kAllClasses) {
    values = make_values(ElementType::f32, 20000, kind);
    inputs.values = values;
    request.zstd_level = 3;
    check(description_of(ElementType::f32, 20000), request, inputs, kind);
  }
}

TEST(Tensor_RoundTrip, AtAnyAddress) {
  const std::size_t elems = 40000;
  const Bytes values = make_values(ElementType::f32, elems, "weights");
  const Bytes base = drifted(values, 4, 2);
  Bytes moved(values.size() + 1), moved_base(values.size() + 3);
  std::copy(values.begin(), values.end(), moved.begin() + 1);
  std::copy(base.begin(), base.end(), moved_base.begin() + 3);
  TensorInputs inputs;
  inputs.values = values;
  inputs.base = base;
  TensorRequest request;
  request.mode = Mode::delta;
  const TensorDescription description = description_of(ElementType::f32, elems);
  const Bytes first = check(description, request, inputs, "aligned");
  inputs.values = std::span(moved).subspan(1);
  inputs.base = std::span(moved_base).subspan(3);
  EXPECT_EQ(check(description, request, inputs, "not aligned"), first);
}

TEST(Tensor_RoundTrip, ThreadsChangeNothing) {
  const std::size_t elems = 5 * kChunkBytes / 4 + 777;
  const Bytes values = make_values(ElementType::f32, elems, "weights");
  const TensorDescription description = description_of(ElementType::f32, elems);
  TensorInputs inputs;
  inputs.values = values;
  const Bytes first = check(description, {}, inputs, "one thread");
  Execution execution;
  execution.threads = 3;
  RunnerHandle runner(execution);
  const auto encoded = encode_tensor(description, {}, inputs, runner.get());
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(bytes_of(*encoded), first);
  Bytes back(values.size());
  ASSERT_TRUE(decode_tensor(description, *encoded, {}, back, runner.get()).ok());
  EXPECT_EQ(back, values);
}

TEST(Tensor_Ratio, PlanesReachTheEntropyOfExponents) {
  // Normal weights: 2.55 bits of exponent where 8 are stored, and a bit of each of the other planes is lost to nothing.
  const std::size_t elems = 1 << 18;
  const Bytes values = make_values(ElementType::bf16, elems, "weights");
  TensorInputs inputs;
  inputs.values = values;
  TensorRequest request;
  request.mode = Mode::planes;
  EXPECT_LT(check(description_of(ElementType::bf16, elems), request, inputs, "bf16").size(), values.size() * 67 / 100);
}

TEST(Tensor_Ratio, ContextsOfThePreviousGroupPay) {
  // Rows of two scales, as moments have: one table needs 27.5 bits an element.
  const std::size_t elems = 1 << 17;
  Bytes values(4 * elems);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < elems; ++i)
    put(values, i, 4, word_of(ElementType::f32, normal(random) * (i / 512 % 2 == 0 ? 1e-3 : 1e-6)));
  TensorInputs inputs;
  inputs.values = values;
  TensorRequest request;
  request.mode = Mode::planes;
  const double bits =
      8.0 * static_cast<double>(check(description_of(ElementType::f32, elems), request, inputs, "rows").size()) /
      static_cast<double>(elems);
  EXPECT_LT(bits, 24 + 3.1);
}

TEST(Tensor_Ratio, BitsThatNeverChangeCostNothing) {
  Bytes values = make_values(ElementType::u16, 100000, "noise");
  for (std::size_t i = 1; i < values.size(); i += 2) values[i] = static_cast<std::uint8_t>((values[i] & 0x55) | 0x0a);
  TensorInputs inputs;
  inputs.values = values;
  TensorRequest request;
  request.mode = Mode::planes;
  EXPECT_LT(check(description_of(ElementType::u16, 100000), request, inputs, "bits").size(), 150000u + 64);
}

}  // namespace
}  // namespace quern::codec::tensor

// Structs of older and newer programs, and what quern_inspect says of damaged bytes.
#include <cstring>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

struct NewerDesc {
  quern_context_desc known = QUERN_CONTEXT_DESC_INIT;
  std::uint64_t unknown = 0;
};

TEST(VersionedStruct, OlderProgram_GetsDefaultsForTheRest) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.struct_size = offsetof(quern_context_desc, runner);
  desc.threads = 2;
  desc.runner.width = 0;
  std::memset(&desc.runner, 0xff, sizeof(desc) - offsetof(quern_context_desc, runner));  // not part of the old struct
  EXPECT_NE(make_context(&desc), nullptr);
}

TEST(VersionedStruct, NewerProgram_IsServedUnlessItAsksForMore) {
  NewerDesc desc;
  desc.known.struct_size = sizeof(desc);
  EXPECT_NE(make_context(&desc.known), nullptr);
  desc.unknown = 1;
  quern_context* context = nullptr;
  EXPECT_EQ(quern_context_create(&desc.known, &context), QUERN_ERROR_UNSUPPORTED);
  EXPECT_EQ(context, nullptr);
}

TEST(VersionedStruct, ForgottenInit_IsRefused) {
  quern_context_desc desc{};
  quern_context* context = nullptr;
  EXPECT_EQ(quern_context_create(&desc, &context), QUERN_ERROR_INVALID_ARGUMENT);
  desc.struct_size = 0xcccccccc;
  EXPECT_EQ(quern_context_create(&desc, &context), QUERN_ERROR_INVALID_ARGUMENT);
  quern_stream_info info{};
  EXPECT_EQ(quern_inspect("x", 1, &info), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(VersionedStruct, OutputOfAnOlderProgram_IsNotWrittenBeyondItsEnd) {
  const auto context = make_context();
  const auto params = make_params("lossless");
  float value = 1;
  const auto stream = compressed(context.get(), params.get(), make_array(QUERN_F32, {1}, &value));
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  info.struct_size = offsetof(quern_stream_info, codec_id);
  info.codec_id = 0xabcd;
  ASSERT_EQ(quern_inspect(stream.data(), stream.size(), &info), QUERN_OK);
  EXPECT_EQ(info.rank, 1u);
  EXPECT_EQ(info.codec_id, 0xabcd);
}

TEST(Inspect, EveryPrefixAndEveryFlippedBit_IsAStatus) {
  const auto context = make_context();
  const auto params = make_params("abs=1e-3 codec=lorenzo");
  std::vector<float> values(1000, 2.5f);
  values[10] = 3;
  const auto stream = compressed(context.get(), params.get(), make_array(QUERN_F32, {10, 100}, values.data()));
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  ASSERT_EQ(quern_inspect(stream.data(), stream.size(), &info), QUERN_OK);
  ASSERT_LT(info.header_bytes, stream.size());
  for (std::uint64_t size = 0; size < info.header_bytes; ++size)
    EXPECT_EQ(quern_inspect(stream.data(), size, &info), QUERN_ERROR_TRUNCATED) << size;
  EXPECT_EQ(quern_inspect(stream.data(), info.header_bytes, &info), QUERN_OK);
  for (std::uint64_t bit = 0; bit < 8 * info.header_bytes; ++bit) {
    auto damaged = stream;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_NE(quern_inspect(damaged.data(), damaged.size(), &info), QUERN_OK) << bit;
  }
}

}  // namespace
}  // namespace quern::testing

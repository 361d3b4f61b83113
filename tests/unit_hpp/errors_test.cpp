// What the wrapper does when a call fails: an Error with the status and a line that says what is wrong. Compiled as
// C++17.
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include <quern/quern.hpp>

namespace {

/// The Error that `body` throws; without one the test fails.
quern::Error thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const quern::Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {QUERN_OK, "nothing was thrown"};
}

std::vector<std::uint8_t> small_stream(quern::Context& context) {
  const std::vector<float> values(60, 1.25f);
  return quern::compress(context, quern::Params("abs=0.1"), quern::ConstArray(values.data(), {3, 4, 5}));
}

TEST(Error, BadParameters_SayWhich) {
  EXPECT_EQ(thrown_by([] { quern::Params("abs=-1"); }).status(), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(thrown_by([] { quern::Params().set("codec", "gzip"); }).status(), QUERN_ERROR_UNKNOWN_CODEC);
  EXPECT_EQ(thrown_by([] { return quern::Params().get("no_such_key"); }).status(), QUERN_ERROR_UNKNOWN_SETTING);
  const quern::Error error = thrown_by([] { quern::Params().bound(77, 1.0); });
  EXPECT_EQ(error.status(), QUERN_ERROR_INVALID_BOUND);
  EXPECT_STREQ(error.name(), "invalid_bound");
  EXPECT_NE(std::strstr(error.what(), "77"), nullptr) << error.what();
}

TEST(Error, ParametersThatFail_KeepWhatTheyHad) {
  quern::Params params("abs=0.5");
  EXPECT_EQ(thrown_by([&] { params.parse("codec=lorenzo abs=nonsense"); }).status(), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(params.get("bound"), "abs=0.5");
  EXPECT_EQ(params.get("codec"), "auto");
}

TEST(Error, ImpossibleArrays_AreRefusedBeforeAnyCall) {
  const float value = 0;
  const std::vector<int> nine(9, 1);
  EXPECT_EQ(thrown_by([&] { quern::Extents(nine.begin(), nine.end()); }).status(), QUERN_ERROR_INVALID_SHAPE);
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_EQ(thrown_by([&] { quern::ConstArray(&value, {huge, huge}); }).status(), QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(thrown_by([&] { quern::ConstArray(&value, {2, 2}, {1}); }).status(), QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(thrown_by([&] { quern::ConstArray(static_cast<const void*>(&value), 7, {1}); }).status(),
            QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(Error, TooLittleRoom_IsDestinationTooSmall) {
  quern::Context context;
  const std::vector<double> values(100, 0.1);
  std::uint8_t room[16];
  const quern::Error error = thrown_by([&] {
    quern::compress_into(context, quern::Params(), quern::ConstArray(values.data(), {100}), room, sizeof(room));
  });
  EXPECT_EQ(error.status(), QUERN_ERROR_DESTINATION_TOO_SMALL);
}

TEST(Error, DamagedAndForeignBytes_SayWhat) {
  quern::Context context;
  std::vector<std::uint8_t> stream = small_stream(context);
  float back[60];
  const quern::Array array(back, {3, 4, 5});
  EXPECT_EQ(thrown_by([&] { return quern::inspect(std::string("not a stream at all")); }).status(),
            QUERN_ERROR_BAD_MAGIC);
  EXPECT_EQ(thrown_by([&] { quern::decompress(context, quern::Bytes(stream.data(), 9), array); }).status(),
            QUERN_ERROR_TRUNCATED);
  stream[stream.size() / 2] ^= 4;
  const quern::Error error = thrown_by([&] { quern::decompress(context, stream, array); });
  EXPECT_EQ(error.status(), QUERN_ERROR_CHECKSUM_MISMATCH);
  EXPECT_STREQ(error.name(), "checksum_mismatch");
  EXPECT_STREQ(error.what(), quern_last_error(context.get()));
}

TEST(Error, AnotherShapeTypeOrBox_IsRefused) {
  quern::Context context;
  const auto stream = small_stream(context);
  float back[60];
  EXPECT_EQ(thrown_by([&] {
              quern::decompress(context, stream, quern::Array(back, {5, 4, 3}));
            }).status(),
            QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(thrown_by([&] { return quern::decompress<double>(context, stream, 60); }).status(),
            QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return quern::decompress<float>(context, stream, 59); }).status(),
            QUERN_ERROR_MEMORY_LIMIT);
  EXPECT_EQ(thrown_by([&] {
              quern::region(context, stream, {0, 0}, {1, 1}, quern::Array(back, {1, 1, 1}));
            }).status(),
            QUERN_ERROR_INVALID_SHAPE);
  EXPECT_THROW(quern::region(context, stream, {0, 0, 0}, {1, 1, 9}, quern::Array(back, {1, 1, 9})), quern::Error);
}

TEST(Error, MemoryLimitOfTheContext_IsKept) {
  quern::Context context(1, 1000);
  const std::vector<double> values(4000, 1.5);
  EXPECT_EQ(thrown_by([&] {
              return quern::compress(context, quern::Params(), quern::ConstArray(values.data(), {1000}, {4}));
            }).status(),
            QUERN_ERROR_MEMORY_LIMIT);
}

TEST(Error, CancelledByProgress_IsAnErrorToo) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.progress = [](void*, std::uint64_t, std::uint64_t) { return 0; };
  quern::Context context(desc);
  const std::vector<float> values(100000, 0.5f);
  EXPECT_EQ(thrown_by([&] {
              return quern::compress(context, quern::Params("abs=0.1"), quern::ConstArray(values.data(), {100000}));
            }).status(),
            QUERN_ERROR_CANCELLED);
}

}  // namespace

// Models that a context is given: streams that name one are written and read, others are refused.
#include <cmath>

#include "tests/unit_capi/handles.h"
#include "tests/unit_models/small_models.h"

namespace quern::testing {
namespace {

Vector<std::uint8_t> model_file() { return models::write_block_model(models::test::cosine_model({1, 16, 16}, 5)); }

std::vector<float> waves() {
  std::vector<float> values(64 * 96);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 96; ++x)
      values[static_cast<std::size_t>(96 * y + x)] = static_cast<float>(40 * std::sin(x * 0.3) * std::cos(y * 0.2));
  return values;
}

struct Given {
  explicit Given(const Vector<std::uint8_t>& file) {
    EXPECT_EQ(quern_context_add_model(context.get(), file.data(), file.size(), id), QUERN_OK)
        << quern_last_error(context.get());
  }
  std::string request() const { return std::string("abs=0.5 codec=autoencoder embed=no model=") + id; }

  ContextHandle context = make_context();
  char id[QUERN_MODEL_ID_SIZE];
};

TEST(Models, StreamWithItsModelOutside_IsWrittenAndReadByContextsThatHaveIt) {
  const Vector<std::uint8_t> file = model_file();
  const Given writer(file), reader(file);
  EXPECT_EQ(std::string(writer.id).size(), QUERN_MODEL_ID_SIZE - 1u);
  EXPECT_STREQ(writer.id, reader.id);
  std::vector<float> values = waves(), back(values.size());
  const quern_array from = make_array(QUERN_F32, {64, 96}, values.data());
  quern_array to = make_array(QUERN_F32, {64, 96}, back.data());
  const auto params = make_params(writer.request().c_str());
  const auto stream = compressed(writer.context.get(), params.get(), from);
  ASSERT_EQ(quern_decompress(reader.context.get(), stream.data(), stream.size(), &to), QUERN_OK)
      << quern_last_error(reader.context.get());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_LE(std::abs(values[i] - back[i]), 0.5) << i;
  EXPECT_EQ(quern_verify(reader.context.get(), &from, stream.data(), stream.size(), nullptr), QUERN_OK);
  const std::uint64_t begin[] = {3, 5}, end[] = {20, 90};
  std::vector<float> box(17 * 85);
  quern_array part = make_array(QUERN_F32, {17, 85}, box.data());
  EXPECT_EQ(quern_decompress_region(reader.context.get(), stream.data(), stream.size(), begin, end, &part), QUERN_OK);
  EXPECT_EQ(box[0], back[3 * 96 + 5]);
}

TEST(Models, ContextWithoutTheModel_SaysSo) {
  const Given writer(model_file());
  std::vector<float> values = waves(), back(values.size());
  const auto params = make_params(writer.request().c_str());
  const quern_array from = make_array(QUERN_F32, {64, 96}, values.data());
  quern_array to = make_array(QUERN_F32, {64, 96}, back.data());
  const auto stream = compressed(writer.context.get(), params.get(), from);
  const ContextHandle without = make_context();
  EXPECT_EQ(quern_decompress(without.get(), stream.data(), stream.size(), &to), QUERN_ERROR_MISSING_MODEL);
  std::vector<std::uint8_t> room(1 << 16);
  std::uint64_t size = 0;
  EXPECT_EQ(quern_compress(without.get(), params.get(), &from, room.data(), room.size(), &size, nullptr),
            QUERN_ERROR_MISSING_MODEL);
  const Given other(models::write_block_model(models::test::cosine_model({8, 8, 8}, 3)));
  EXPECT_EQ(quern_decompress(other.context.get(), stream.data(), stream.size(), &to), QUERN_ERROR_MISSING_MODEL);
}

TEST(Models, Sessions_UseThoseOfTheContextOfEachCall) {
  quern_session* session = nullptr;
  ASSERT_EQ(quern_session_create(nullptr, 0, &session), QUERN_OK);
  const ContextHandle without = make_context();
  std::vector<float> values = waves(), back(values.size());
  const quern_array from = make_array(QUERN_F32, {64, 96}, values.data());
  quern_array to = make_array(QUERN_F32, {64, 96}, back.data());
  std::vector<std::uint8_t> stream(1 << 16);
  for (int step = 0; step < 2; ++step) {
    const Given given(model_file());  // goes before the session does
    const auto params = make_params(given.request().c_str());
    std::uint64_t size = 0;
    EXPECT_EQ(quern_session_compress(without.get(), session, params.get(), &from, stream.data(), stream.size(), &size,
                                     nullptr),
              QUERN_ERROR_MISSING_MODEL);
    ASSERT_EQ(quern_session_compress(given.context.get(), session, params.get(), &from, stream.data(), stream.size(),
                                     &size, nullptr),
              QUERN_OK)
        << quern_last_error(given.context.get());
    EXPECT_EQ(quern_session_decompress(without.get(), session, stream.data(), size, &to), QUERN_ERROR_MISSING_MODEL);
    ASSERT_EQ(quern_session_decompress(given.context.get(), session, stream.data(), size, &to), QUERN_OK)
        << quern_last_error(given.context.get());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_LE(std::abs(values[i] - back[i]), 0.5) << i;
  }
  quern_session_destroy(session);
}

TEST(Models, ModelTwiceAndItsDecodingHalf_AreOne) {
  const models::BlockModel model = models::test::cosine_model({1, 16, 16}, 5);
  const Given both(models::write_block_model(models::decoding_half(model)));
  char id[QUERN_MODEL_ID_SIZE];
  const Vector<std::uint8_t> file = models::write_block_model(model);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(quern_context_add_model(both.context.get(), file.data(), file.size(), id), QUERN_OK);
    EXPECT_STREQ(id, both.id);
  }
  std::vector<float> values = waves();
  const auto params = make_params(both.request().c_str());
  EXPECT_FALSE(compressed(both.context.get(), params.get(), make_array(QUERN_F32, {64, 96}, values.data())).empty());
}

TEST(Models, WhatIsNoModel_IsRefusedAndTheContextGoesOn) {
  const Vector<std::uint8_t> file = model_file();
  const Given given(file);
  quern_context* const context = given.context.get();
  EXPECT_EQ(quern_context_add_model(nullptr, file.data(), file.size(), nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_context_add_model(context, nullptr, 8, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(quern_context_add_model(context, nullptr, 0, nullptr), QUERN_OK);
  EXPECT_EQ(quern_context_add_model(context, "not a model, not a model", 24, nullptr), QUERN_ERROR_BAD_MAGIC);
  for (std::size_t i = 0; i < file.size(); i += 37) {
    Vector<std::uint8_t> damaged = file;
    damaged[i] ^= 0x10;
    EXPECT_NE(quern_context_add_model(context, damaged.data(), damaged.size(), nullptr), QUERN_OK) << i;
    EXPECT_NE(quern_context_add_model(context, file.data(), i, nullptr), QUERN_OK) << i;
  }
  std::vector<float> values = waves();
  const auto params = make_params(given.request().c_str());
  EXPECT_FALSE(compressed(context, params.get(), make_array(QUERN_F32, {64, 96}, values.data())).empty());
}

}  // namespace
}  // namespace quern::testing

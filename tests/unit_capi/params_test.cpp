// Parameters: what is kept, what is refused, and that a text changes all or nothing.
#include <cstring>
#include <string>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

std::string get(const quern_params* params, const char* key) {
  std::size_t needed = 0;
  if (quern_params_get(params, key, nullptr, 0, &needed) != QUERN_OK) return "(none)";
  std::string value(needed, '?');
  EXPECT_EQ(quern_params_get(params, key, value.data(), value.size(), nullptr), QUERN_OK);
  EXPECT_EQ(value.back(), '\0');
  value.pop_back();
  return value;
}

TEST(Params, FreshOnes_AreLosslessAutomatic) {
  const auto params = make_params("");
  EXPECT_EQ(get(params.get(), "bound"), "lossless");
  EXPECT_EQ(get(params.get(), "codec"), "auto");
  EXPECT_EQ(get(params.get(), "goal"), "ratio");
  EXPECT_EQ(get(params.get(), "mask_search"), "1");
  EXPECT_EQ(get(params.get(), "range"), "(none)");
  EXPECT_EQ(get(params.get(), "layout"), "(none)");
}

TEST(Params, Text_SetsEverything) {
  const auto params = make_params("rel=1e-3, codec=lorenzo goal=speed mask_search=0 range=-1.5:40 layout=1d");
  EXPECT_EQ(get(params.get(), "bound"), "rel=0.001");
  EXPECT_EQ(get(params.get(), "codec"), "lorenzo");
  EXPECT_EQ(get(params.get(), "goal"), "speed");
  EXPECT_EQ(get(params.get(), "mask_search"), "0");
  EXPECT_EQ(get(params.get(), "range"), "-1.5:40");
  EXPECT_EQ(get(params.get(), "layout"), "1d");
}

TEST(Params, KeySetTwice_KeepsTheLast) {
  const auto params = make_params("layout=1d");
  EXPECT_EQ(quern_params_set(params.get(), "layout", "auto"), QUERN_OK);
  EXPECT_EQ(get(params.get(), "layout"), "auto");
}

TEST(Params, BadText_ChangesNothing) {
  const auto params = make_params("abs=0.5 codec=lorenzo");
  const std::pair<const char*, quern_status> cases[] = {
      {"abs=1 rel=2", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless abs=one", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless abs=1e-3x", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless abs=", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless abs=-1", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless abs=nan", QUERN_ERROR_INVALID_BOUND},
      {"codec=lossless pwrel=1", QUERN_ERROR_INVALID_BOUND},
      {"codec=nothing", QUERN_ERROR_UNKNOWN_CODEC},
      {"codec=lossless goal=fame", QUERN_ERROR_INVALID_ARGUMENT},
      {"codec=lossless range=3:1", QUERN_ERROR_INVALID_ARGUMENT},
      {"codec=lossless lonely", QUERN_ERROR_INVALID_ARGUMENT},
      {"codec=lossless =1", QUERN_ERROR_INVALID_ARGUMENT},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(quern_params_parse(params.get(), text), status) << text;
    EXPECT_STRNE(quern_last_error(nullptr), "") << text;
    EXPECT_EQ(get(params.get(), "bound"), "abs=0.5") << text;
    EXPECT_EQ(get(params.get(), "codec"), "lorenzo") << text;
  }
}

TEST(Params, GetIntoTooLittleRoom_SaysHowMuch) {
  const auto params = make_params("codec=lorenzo");
  char room[4];
  std::size_t needed = 0;
  EXPECT_EQ(quern_params_get(params.get(), "codec", room, sizeof(room), &needed), QUERN_ERROR_DESTINATION_TOO_SMALL);
  EXPECT_EQ(needed, 8u);
}

TEST(Params, UnknownKindOfBound_IsRefused) {
  const auto params = make_params("");
  EXPECT_EQ(quern_params_set_bound(params.get(), 6, 1.0), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(quern_params_set_bound(params.get(), -1, 1.0), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(quern_params_set_bound(nullptr, QUERN_BOUND_ABS, 1.0), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(Params, UnknownCodecSetting_IsRefusedWhenAnArrayIsCompressed) {
  const auto context = make_context();
  const auto params = make_params("abs=1 codec=lorenzo colour=green");
  float values[64] = {};
  const quern_array array = make_array(QUERN_F32, {64}, values);
  std::uint8_t stream[2000];
  std::uint64_t size = 0;
  EXPECT_EQ(quern_compress(context.get(), params.get(), &array, stream, sizeof(stream), &size, nullptr),
            QUERN_ERROR_UNKNOWN_SETTING);
}

TEST(Params, FillValuesAndMetadata_AreInTheStream) {
  const auto context = make_context();
  const auto params = make_params("rel=1e-3 codec=lorenzo");
  const float fill = -9999.0f;
  ASSERT_EQ(quern_params_add_fill(params.get(), QUERN_F32, &fill), QUERN_OK);
  ASSERT_EQ(quern_params_set_metadata(params.get(), "{}", 2), QUERN_OK);
  std::vector<float> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 5 == 0 ? fill : static_cast<float>(i) * 1e-3f;
  const auto stream = compressed(context.get(), params.get(), make_array(QUERN_F32, {4096}, values.data()));
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  ASSERT_EQ(quern_inspect(stream.data(), stream.size(), &info), QUERN_OK);
  EXPECT_EQ(info.fills, 1u);
  EXPECT_EQ(info.metadata_bytes, 2u);
  EXPECT_LT(info.enforced_value, 0.005) << "the fill value must not be part of the range";
  std::vector<float> back(values.size());
  quern_array array = make_array(QUERN_F32, {4096}, back.data());
  ASSERT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_OK);
  for (std::size_t i = 0; i < values.size(); i += 5) EXPECT_EQ(back[i], fill) << i;
}

}  // namespace
}  // namespace quern::testing

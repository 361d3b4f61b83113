// The library's own description: versions, names, codecs.
#include <cstring>
#include <map>
#include <string>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

std::map<std::string, std::size_t> codecs() {
  std::map<std::string, std::size_t> out;
  for (std::size_t i = 0; i < quern_codec_count(); ++i) {
    quern_codec_info info = QUERN_CODEC_INFO_INIT;
    EXPECT_EQ(quern_codec_get(i, &info), QUERN_OK);
    EXPECT_NE(info.id, 0);
    EXPECT_GE(info.version, 1);
    EXPECT_GT(std::strlen(info.summary), 10u);
    out[info.name] = i;
  }
  return out;
}

bool supports(std::size_t codec, quern_dtype dtype, quern_bound_kind kind) {
  int yes = -1;
  EXPECT_EQ(quern_codec_supports(codec, dtype, kind, &yes), QUERN_OK);
  EXPECT_TRUE(yes == 0 || yes == 1);
  return yes == 1;
}

TEST(Library, Version_AgreesWithItsText) {
  const std::uint32_t v = quern_version();
  EXPECT_EQ(std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100),
            quern_version_string());
  EXPECT_GE(quern_abi_version(), 1u);
  EXPECT_EQ(std::string(quern_build_info()).find("quern " + std::string(quern_version_string())), 0u);
}

TEST(Library, StatusNames_AreKnownOrUnknown) {
  EXPECT_STREQ(quern_status_name(QUERN_OK), "ok");
  EXPECT_STREQ(quern_status_name(QUERN_ERROR_CHECKSUM_MISMATCH), "checksum_mismatch");
  EXPECT_STREQ(quern_status_name(99), "unknown");
  EXPECT_STREQ(quern_status_name(-1), "unknown");
}

TEST(Library, Codecs_SayWhatTheyTake) {
  const auto all = codecs();
  ASSERT_EQ(all.count("lorenzo"), 1u);
  ASSERT_EQ(all.count("lossless"), 1u);
  EXPECT_TRUE(supports(all.at("lorenzo"), QUERN_F16, QUERN_BOUND_PWREL));
  EXPECT_TRUE(supports(all.at("lorenzo"), QUERN_U64, QUERN_BOUND_ABS));
  EXPECT_FALSE(supports(all.at("lorenzo"), QUERN_U64, QUERN_BOUND_PWREL));
  EXPECT_TRUE(supports(all.at("lossless"), QUERN_I8, QUERN_BOUND_LOSSLESS));
  EXPECT_FALSE(supports(all.at("lossless"), QUERN_F32, QUERN_BOUND_ABS));
}

TEST(Library, QuestionsAboutNothing_AreRefused) {
  int yes = 0;
  quern_codec_info info = QUERN_CODEC_INFO_INIT;
  EXPECT_EQ(quern_codec_get(quern_codec_count(), &info), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_codec_get(0, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_codec_supports(quern_codec_count(), QUERN_F32, QUERN_BOUND_ABS, &yes), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_codec_supports(0, 7, QUERN_BOUND_ABS, &yes), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_codec_supports(0, QUERN_F32, QUERN_BOUND_REL, &yes), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(quern_codec_supports(0, QUERN_F32, QUERN_BOUND_ABS, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace quern::testing

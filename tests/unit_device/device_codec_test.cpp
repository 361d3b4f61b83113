// The codecs of this build that have kernels, as devices find them.
#include "libcompress/device/device_codec.h"

#include <gtest/gtest.h>

#include <string_view>

#include <quern/codec.h>

namespace quern::cuda {
namespace {

TEST(DeviceCodecs, EachOne_IsTheCodecOfThatNumberAndNameAndOffersSomething) {
  ASSERT_FALSE(builtin_device_codecs().empty());
  for (const DeviceCodec* half : builtin_device_codecs()) {
    const ArrayCodec* codec = builtin_codecs().by_id(half->id);
    ASSERT_NE(codec, nullptr) << half->name;
    EXPECT_EQ(std::string_view(codec->info().name), half->name);
    EXPECT_TRUE(half->chunks != nullptr || half->jobs != nullptr || half->find_encoder != nullptr) << half->name;
    if (half->chunks != nullptr) {
      EXPECT_EQ(half->chunks->info().id, half->id) << half->name;
    }
    EXPECT_EQ(builtin_device_codec(half->id).chunks, half->chunks) << half->name;
    EXPECT_EQ(builtin_device_codec(half->name).jobs, half->jobs) << half->name;
  }
}

TEST(DeviceCodecs, CodecWithoutKernels_OffersNothing) {
  const ArrayCodec* lossless = builtin_codecs().by_name("lossless");
  ASSERT_NE(lossless, nullptr);
  for (const DeviceCodec& none : {builtin_device_codec(lossless->info().id), builtin_device_codec("lossless"),
                                  builtin_device_codec(std::uint16_t{65535}), builtin_device_codec("")}) {
    EXPECT_EQ(none.chunks, nullptr);
    EXPECT_EQ(none.jobs, nullptr);
    EXPECT_EQ(none.encoder({}), nullptr);
  }
}

}  // namespace
}  // namespace quern::cuda

// Handles that clean up after themselves, for tests of the C interface.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <quern/quern.h>

namespace quern::testing {

struct DestroyContext {
  void operator()(quern_context* context) const { quern_context_destroy(context); }
};
struct DestroyParams {
  void operator()(quern_params* params) const { quern_params_destroy(params); }
};
using ContextHandle = std::unique_ptr<quern_context, DestroyContext>;
using ParamsHandle = std::unique_ptr<quern_params, DestroyParams>;

inline ContextHandle make_context(const quern_context_desc* desc = nullptr) {
  quern_context* context = nullptr;
  EXPECT_EQ(quern_context_create(desc, &context), QUERN_OK) << quern_last_error(nullptr);
  return ContextHandle(context);
}

inline ParamsHandle make_params(const char* text) {
  quern_params* params = nullptr;
  EXPECT_EQ(quern_params_create(&params), QUERN_OK);
  EXPECT_EQ(quern_params_parse(params, text), QUERN_OK) << quern_last_error(nullptr);
  return ParamsHandle(params);
}

inline quern_array make_array(quern_dtype dtype, const std::vector<std::uint64_t>& extents, void* data) {
  quern_array array;
  EXPECT_EQ(quern_array_init(&array, dtype, static_cast<std::uint32_t>(extents.size()), extents.data(), data), QUERN_OK)
      << quern_last_error(nullptr);
  return array;
}

/// The stream of an array, or nothing and a failed expectation.
inline std::vector<std::uint8_t> compressed(quern_context* context, const quern_params* params,
                                            const quern_array& array) {
  std::uint64_t room = 0;
  EXPECT_EQ(quern_compress_bound(&array, params, &room), QUERN_OK);
  std::vector<std::uint8_t> stream(room);
  std::uint64_t size = 0;
  EXPECT_EQ(quern_compress(context, params, &array, stream.data(), stream.size(), &size, nullptr), QUERN_OK)
      << quern_last_error(context);
  stream.resize(size);
  return stream;
}

}  // namespace quern::testing

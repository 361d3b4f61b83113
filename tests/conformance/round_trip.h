// One array through the pipeline and a registry, there and back, with what every codec promises checked.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include <quern/compress.h>
#include <quern/metrics.h>

#include "tests/support/array_cases.h"

namespace quern::testing {

/// The stream of an array; empty, and a failure of the running test, when there is none.
inline Vector<std::uint8_t> compress_to_bytes(const OwnedArray& array, const CompressOptions& options,
                                              const Registry& registry, std::size_t threads, CompressReport* report) {
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  Execution execution;
  execution.threads = threads;
  Result<CompressReport> result = compress(array.view(), options, registry, execution, sink);
  EXPECT_TRUE(result.ok()) << result.status().text();
  if (result.ok() && report != nullptr) *report = result.value();
  return stream;
}

/// Compresses and decompresses one array and checks: the size limit, the bound by an independent check, special values
/// bit for bit.
inline void expect_round_trip(const OwnedArray& array, const CompressOptions& options, const Registry& registry) {
  CompressReport report;
  const Vector<std::uint8_t> stream = compress_to_bytes(array, options, registry, 1, &report);
  if (stream.empty()) return;
  EXPECT_LE(stream.size(), array.bytes.size() + 256 + array.bytes.size() / 1000);

  OwnedArray back{Vector<std::uint8_t>(array.bytes.size(), 0xa5), array.dtype, array.shape};
  MemorySource source(stream);
  const auto decoded = decompress(source, {back.bytes.data(), back.dtype, back.shape}, registry, Execution{});
  EXPECT_TRUE(decoded.ok()) << decoded.status().text();
  if (!decoded.ok()) return;

  const auto check = check_bound(array.view(), back.view(), report.enforced, {options.fill_bits}, Execution{});
  EXPECT_TRUE(check.ok()) << check.status().text();
  if (check.ok()) {
    EXPECT_EQ(check->violations, 0u);
    EXPECT_EQ(check->specials_lost, 0u);
    if (!check->first.empty()) {
      const Violation& v = check->first.front();
      ADD_FAILURE() << "element " << v.index << ": " << v.original << " came back as " << v.reconstructed << ", error "
                    << v.error << " under " << report.enforced.value;
    }
  }
}

}  // namespace quern::testing

// The conformance suite for a single codec: every type, shape, kind of data and bound that it supports. A new codec
// calls this from its tests.
#pragma once

#include <algorithm>
#include <string>

#include "tests/conformance/bound_cases.h"
#include "tests/conformance/round_trip.h"
#include "tests/support/thorough.h"

namespace quern::testing {

/// What the pipeline makes of a request before the codec sees it.
inline BoundKind enforced_kind(const ErrorBound& bound) {
  if (bound.kind == BoundKind::rel) return BoundKind::abs;
  return bound.value > 0 ? bound.kind : BoundKind::lossless;
}

/// Every array of a type under every bound: the bound holds, special values come back bit for bit, streams keep their
/// size limit. Stops at the first failure.
inline void expect_conformance(const ArrayCodec& codec, DType dtype) {
  const ArrayCodec* const codecs[] = {&codec};
  const Registry registry(codecs);
  for (const Shape& shape : edge_shapes()) {
    for (const Data data : all_data()) {
      const OwnedArray array = make_array(dtype, shape, data);
      for (const BoundCase& bound : bounds_for(dtype)) {
        if (!codec.supports(dtype, enforced_kind(bound.bound))) continue;
        SCOPED_TRACE(std::string(codec.info().name) + " " + dtype_name(dtype) + " " + shape.text() + " " +
                     data_name(data) + " " + bound.name);
        CompressOptions options;
        options.bound = bound.bound;
        options.codec = codec.info().name;
        expect_round_trip(array, options, registry);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

/// The same bytes for any number of threads, on arrays of several chunks.
inline void expect_same_bytes_for_threads(const ArrayCodec& codec, DType dtype) {
  const ArrayCodec* const codecs[] = {&codec};
  const Registry registry(codecs);
  for (const Shape& shape : {shape_of({100003}), shape_of({211, 307}), shape_of({37, 41, 43})}) {
    for (const Data data : {Data::land, Data::noise, Data::random_bits}) {
      const OwnedArray array = make_array(dtype, shape, data);
      CompressOptions options;
      options.bound = {BoundKind::rel, 1e-4};
      options.codec = codec.info().name;
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data));
      const auto reference = compress_to_bytes(array, options, registry, 1, nullptr);
      for (const std::size_t threads : {std::size_t{2}, std::size_t{7}})
        EXPECT_EQ(compress_to_bytes(array, options, registry, threads, nullptr), reference) << threads << " threads";
    }
  }
}

}  // namespace quern::testing

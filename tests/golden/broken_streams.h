// What the makers of broken streams share: whole streams, and the same with other headers or chunks and right
// checksums.
#pragma once

#include <cstdlib>
#include <functional>
#include <iostream>

#include "libcompress/format/grid/header.h"
#include "tests/fuzz/reseal.h"
#include "tests/golden/groups.h"
#include "tests/golden/must_fail_cases.h"

namespace quern::golden {

using Bytes = Vector<std::uint8_t>;

/// The value of a step that cannot fail on the fixed streams here.
template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::cerr << "must_fail_cases: " << result.status().text() << "\n";
  std::abort();
}

inline std::size_t header_bytes(const Bytes& stream) { return static_cast<std::size_t>(must(header_size(stream))); }

/// The stream with its header's fields changed, all checksums right.
inline Bytes with_header(const Bytes& stream, const std::function<void(Header&)>& change) {
  const std::size_t size = header_bytes(stream);
  Header header = must(parse_header(std::span(stream).first(size)));
  change(header);
  Bytes out = must(serialize_header(header));
  out.insert(out.end(), stream.begin() + static_cast<std::ptrdiff_t>(size), stream.end());
  return fuzz::reseal(out);
}

inline Bytes encode_one(testing::OwnedArray array, CompressOptions options) {
  return must(encode(one("", "", std::move(array), std::move(options))));
}

/// Broken streams of the stencil codec.
void add_stencil_cases(std::vector<MustFailCase>& cases);
/// Broken streams of codec autoencoder.
void add_autoencoder_cases(std::vector<MustFailCase>& cases);
/// Broken streams of codec stencil with networks.
void add_network_cases(std::vector<MustFailCase>& cases);

}  // namespace quern::golden

// The header of a .npy file: parsing untrusted ones, building our own. Bytes only; no files here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <quern/dtype.h>
#include <quern/shape.h>
#include <quern/status.h>

namespace quern::io {

/// Bytes before the text: magic, version and its length (2 bytes in version 1, 4 from version 2 on).
inline constexpr std::size_t kNpyPrefixShort = 10;
inline constexpr std::size_t kNpyPrefixLong = 12;
/// Longest header text that is read; a simple array needs about 100 bytes.
inline constexpr std::uint32_t kMaxNpyHeader = 65536;

struct NpyPrefix {
  std::size_t prefix_bytes = 0;  ///< 10 or 12
  std::uint32_t text_bytes = 0;  ///< at most kMaxNpyHeader
};

/// What the header's text says, as it is written there.
struct NpyHeader {
  std::string descr;  ///< "<f4"
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  ///< in the order of the file; at most kMaxRank extents
};

/// An element type in numpy's notation.
struct NpyType {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool is_complex = false;  ///< two values of `dtype` an element
  bool is_void2 = false;    ///< two untyped bytes, as bf16 is stored
};

/// Reads the prefix from the first kNpyPrefixLong bytes of a file (kNpyPrefixShort are enough for version 1).
Result<NpyPrefix> parse_npy_prefix(std::span<const std::uint8_t> bytes, std::string& what);
/// Reads the dictionary. `what` receives what is wrong with it, as the end of a sentence.
Result<NpyHeader> parse_npy_header(std::string_view text, std::string& what);
/// Reads "<f4" and the like; fails with `unsupported` for types quern has not.
Result<NpyType> parse_npy_descr(std::string_view descr, std::string& what);

/// Prefix and padded text, ready to be written (version 1, native byte order).
std::vector<std::uint8_t> build_npy_header(const NpyHeader& header);
/// "<f4" for a type in the machine's byte order.
std::string npy_descr(DType dtype, bool is_complex);

}  // namespace quern::io

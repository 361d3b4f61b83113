// Words to settings and back. Numbers of 64 bits are split by value: HDF5 swaps the bytes of each word on its own.
#include "bindings/hdf5/settings.h"

#include <algorithm>
#include <bit>

#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {
namespace {

constexpr unsigned kVersion = 1;
constexpr unsigned kVersionMask = 0xFF;
constexpr unsigned kFillFlag = 0x100;
constexpr unsigned kBigEndianFlag = 0x200;
constexpr unsigned kMissingFlag = 0x400;
constexpr unsigned kMandatoryFlag = 0x800;  // of a request alone
constexpr unsigned kKnownFlags = kFillFlag | kBigEndianFlag | kMissingFlag | kMandatoryFlag;
// Of the option word. The filter sets one of the two when a dataset is created; words of older datasets, whose chunks
// may hold any values, have neither.
constexpr unsigned kWriteOnceOption = 0x20;
constexpr unsigned kIdempotentOption = 0x40;

enum Word : std::size_t {
  kVersionWord,
  kCodecWord,
  kKindWord,
  kValueHighWord,
  kValueLowWord,
  kOptionsWord,
  kDtypeWord,
  kRankWord,
  kExtentsWord,
  kFillHighWord = kExtentsWord + QUERN_MAX_RANK,
  kFillLowWord
};
static_assert(kFillLowWord + 1 == kWords && kDtypeWord == kRequestWords);

[[noreturn]] void refuse(const std::string& text) { throw Problem(Trouble::request, text); }

/// Absent words are zero.
Words take_words(const unsigned* words, std::size_t count) {
  if (count < kRequestWords || count > kMostWords || (count > kWords && count % 2 != 0) || words == nullptr)
    refuse("quern's filter has " + std::to_string(kRequestWords) + " to " + std::to_string(kMostWords) +
           " settings (cd_values), not " + std::to_string(count) + "; see docs/hdf5.md");
  Words out(words, words + count);
  out.resize(std::max(count, kWords));
  const unsigned version = out[kVersionWord] & kVersionMask;
  const unsigned flags = out[kVersionWord] & ~kVersionMask;
  if (version == 0) refuse("the first setting (cd_values[0]) is 0; it is the version of the settings, 1");
  if (version > kVersion || (flags & ~kKnownFlags) != 0)
    refuse("these settings (version " + std::to_string(version) + ", flags " + std::to_string(flags >> 8) +
           ") need a newer quern: this one, " + quern_version_string() + ", knows version " + std::to_string(kVersion) +
           " and flags up to " + std::to_string(kKnownFlags >> 8));
  return out;
}

std::uint64_t join(unsigned high, unsigned low) { return std::uint64_t{high} << 32 | low; }

bool has_flag(const Words& words, unsigned flag) { return (words[kVersionWord] & flag) != 0; }

/// Declared missing values: pairs from word 16 on, behind that of a fill value.
std::vector<std::uint64_t> missing_values(const Words& words) {
  std::vector<std::uint64_t> out;
  const std::size_t first = kFillHighWord + (has_flag(words, kFillFlag) ? 2 : 0);
  const bool declared = has_flag(words, kMissingFlag);
  if (declared ? first >= words.size() : words.size() > kWords)
    refuse("the flags (cd_values[0]) and the number of settings, " + std::to_string(words.size()) +
           ", do not agree on how many missing values there are; see docs/hdf5.md");
  for (std::size_t i = first; declared && i < words.size(); i += 2) out.push_back(join(words[i], words[i + 1]));
  return out;
}

/// Takes the marks of how values are written again out of the options.
Rewriting take_rewriting(const Words& words, std::uint32_t& options) {
  const bool once = (options & kWriteOnceOption) != 0;
  const bool idempotent = (options & kIdempotentOption) != 0;
  if (once && idempotent) refuse("the option word (cd_values[5]) says both write-once (32) and idempotent (64)");
  options &= ~(kWriteOnceOption | kIdempotentOption);
  const bool of_dataset = words[kRankWord] != 0;
  return once || (of_dataset && !idempotent) ? Rewriting::exact : Rewriting::idempotent;
}

}  // namespace

std::uint64_t ChunkLayout::elems() const {
  std::uint64_t out = 1;
  for (std::uint32_t a = 0; a < rank; ++a) out *= extents[a];
  return out;
}

std::uint64_t ChunkLayout::bytes() const { return elems() * dtype_bytes(static_cast<std::uint32_t>(dtype)); }

std::string ChunkLayout::text() const {
  std::string out = dtype_name(static_cast<std::uint32_t>(dtype));
  for (std::uint32_t a = 0; a < rank; ++a) {
    out += a == 0 ? " " : "x";
    out += std::to_string(extents[a]);
  }
  if (big_endian) out += ", big-endian";
  return out;
}

Request parse_request(const unsigned* words, std::size_t count) {
  const Words w = take_words(words, count);
  Request out;
  out.codec_id = w[kCodecWord];
  out.options = w[kOptionsWord];
  out.value = std::bit_cast<double>(join(w[kValueHighWord], w[kValueLowWord]));
  out.rewriting = take_rewriting(w, out.options);
  out.missing = missing_values(w);
  out.mandatory = has_flag(w, kMandatoryFlag);
  switch (w[kKindWord]) {
    case QUERN_BOUND_LOSSLESS:
    case QUERN_BOUND_ABS:
    case QUERN_BOUND_PWREL: out.kind = static_cast<quern_bound_kind>(w[kKindWord]); break;
    case QUERN_BOUND_REL:
      refuse(
          "a bound relative to the range (kind 2) means nothing to a filter, which sees one chunk at a time: use quern "
          "h5 pack "
          "--rel, or give the absolute bound, the relative one times the dataset's max - min");
    case QUERN_BOUND_PSNR:
    case QUERN_BOUND_RATIO:
      refuse(
          "a PSNR or a ratio is no bound a filter can promise, which sees one chunk at a time: give an absolute "
          "(kind 1) or pointwise relative (kind 3) bound, or lossless (kind 0)");
    default:
      refuse("the kind of bound (cd_values[2]) is " + std::to_string(w[kKindWord]) +
             "; it is 0 lossless, 1 absolute or 3 pointwise relative");
  }
  return out;
}

std::optional<std::uint64_t> named_fill(const Words& words, quern_dtype dtype) {
  if (words.size() < kWords || !has_flag(words, kFillFlag) || words[kDtypeWord] != static_cast<unsigned>(dtype))
    return std::nullopt;
  return join(words[kFillHighWord], words[kFillLowWord]);
}

ChunkLayout parse_layout(const unsigned* words, std::size_t count) {
  ChunkLayout out;
  if (count == 0) return out;
  const Words w = take_words(words, count);
  if (w[kDtypeWord] == 0 && w[kRankWord] == 0) return out;
  const std::size_t width = dtype_bytes(w[kDtypeWord]);
  if (width == 0) refuse("the element type (cd_values[6]) is " + std::to_string(w[kDtypeWord]) + ", which is none");
  if (w[kRankWord] == 0 || w[kRankWord] > QUERN_MAX_RANK)
    refuse("the chunks' rank (cd_values[7]) is " + std::to_string(w[kRankWord]) + "; it is 1 to 8");
  out.dtype = static_cast<quern_dtype>(w[kDtypeWord]);
  out.rank = w[kRankWord];
  out.big_endian = (w[kVersionWord] & kBigEndianFlag) != 0;
  std::uint64_t bytes = width;
  for (std::uint32_t a = 0; a < QUERN_MAX_RANK; ++a) {
    const std::uint64_t extent = w[kExtentsWord + a];
    if (a >= out.rank ? extent != 0 : extent == 0 || extent > kMaxChunkBytes / bytes)
      refuse("the chunks' extent on axis " + std::to_string(a) + " (cd_values[" + std::to_string(kExtentsWord + a) +
             "]) is " + std::to_string(extent) + ", which fits no chunk of rank " + std::to_string(out.rank) +
             " below 4 GiB");
    if (a >= out.rank) continue;
    out.extents[a] = extent;
    bytes *= extent;
  }
  if (has_flag(w, kFillFlag)) out.fill = join(w[kFillHighWord], w[kFillLowWord]);
  return out;
}

Words make_words(const Request& request, const ChunkLayout& layout) {
  Words w(kFillHighWord);
  const auto value = std::bit_cast<std::uint64_t>(request.value);
  w[kVersionWord] = kVersion;
  w[kCodecWord] = request.codec_id;
  w[kKindWord] = static_cast<unsigned>(request.kind);
  w[kValueHighWord] = static_cast<unsigned>(value >> 32);
  w[kValueLowWord] = static_cast<unsigned>(value & 0xFFFFFFFF);
  w[kOptionsWord] = request.options;
  if (request.rewriting == Rewriting::exact) w[kOptionsWord] |= kWriteOnceOption;
  const auto add_value = [&](unsigned flag, std::uint64_t bits) {
    w[kVersionWord] |= flag;
    w.push_back(static_cast<unsigned>(bits >> 32));
    w.push_back(static_cast<unsigned>(bits & 0xFFFFFFFF));
  };
  if (layout.known()) {
    if (request.rewriting == Rewriting::idempotent) w[kOptionsWord] |= kIdempotentOption;
    if (layout.big_endian) w[kVersionWord] |= kBigEndianFlag;
    w[kDtypeWord] = static_cast<unsigned>(layout.dtype);
    w[kRankWord] = layout.rank;
    for (std::uint32_t a = 0; a < layout.rank; ++a) w[kExtentsWord + a] = static_cast<unsigned>(layout.extents[a]);
    if (layout.fill) add_value(kFillFlag, *layout.fill);
  }
  for (const std::uint64_t bits : request.missing) add_value(kMissingFlag, bits);
  w.resize(std::max(w.size(), kWords));
  return w;
}

}  // namespace quern::hdf5

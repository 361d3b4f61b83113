// Broken streams, made from whole ones by changing one thing.
#include "tests/golden/must_fail_cases.h"

#include <algorithm>

#include "tests/golden/broken_streams.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

/// The stream with bytes of its header replaced by others of any number; size and header checksum follow.
Bytes with_header_bytes(const Bytes& stream, std::size_t at, std::size_t count, const Bytes& replacement) {
  const auto begin = stream.begin();
  Bytes out(begin, begin + static_cast<std::ptrdiff_t>(at));
  out.insert(out.end(), replacement.begin(), replacement.end());
  out.insert(out.end(), begin + static_cast<std::ptrdiff_t>(at + count), stream.end());
  const std::size_t size = header_bytes(stream) + replacement.size() - count;
  out[8] = static_cast<std::uint8_t>(size);
  out[9] = static_cast<std::uint8_t>(size >> 8);
  return fuzz::reseal(out);
}

Bytes with_byte(Bytes stream, std::size_t at, std::uint8_t value) {
  stream[at] = value;
  return stream;
}

Bytes flipped(Bytes stream, std::size_t at) {
  stream[at] ^= 0x10;
  return stream;
}

double staircase(std::uint64_t i) { return static_cast<double>(i / 9); }

constexpr std::size_t kDtypeAt = 16;   // behind magic, size, version and two empty sets of features
constexpr std::size_t kExtentAt = 18;  // of the first axis

void add_header_cases(std::vector<MustFailCase>& cases, const Bytes& whole) {
  cases.push_back({"magic", StatusCode::bad_magic, "the magic's first byte is another", with_byte(whole, 0, 0x88)});
  Bytes converted = whole;
  converted.erase(converted.begin() + 5);
  cases.push_back({"line_endings", StatusCode::bad_magic, "CR LF was turned into LF", converted});
  cases.push_back({"major", StatusCode::unsupported_version, "a newer major version",
                   with_header(whole, [](Header& h) { h.major = 1; })});
  cases.push_back({"minor", StatusCode::unsupported_version, "another minor version of the experimental format",
                   with_header(whole, [](Header& h) { h.minor = 2; })});
  cases.push_back({"must_understand", StatusCode::unsupported, "a feature bit that must be understood and is not known",
                   with_header(whole, [](Header& h) { h.must_understand = 4; })});
  cases.push_back({"level_tables", StatusCode::corrupt, "level tables of a codec without levels",
                   with_header(whole, [](Header& h) { h.must_understand = 1; })});
  cases.push_back(
      {"header_checksum", StatusCode::checksum_mismatch, "a byte of the header is damaged", flipped(whole, kExtentAt)});
  cases.push_back({"overlong_varint", StatusCode::corrupt, "an extent as a varint that is longer than necessary",
                   with_header_bytes(whole, kExtentAt, 1, {static_cast<std::uint8_t>(whole[kExtentAt] | 0x80), 0})});
  cases.push_back({"dtype", StatusCode::corrupt, "an element type that does not exist",
                   with_header_bytes(whole, kDtypeAt, 1, {5})});
  cases.push_back({"rank", StatusCode::corrupt, "nine axes", with_header_bytes(whole, kDtypeAt + 1, 1, {9})});
  cases.push_back(
      {"bound_kind", StatusCode::corrupt, "an unknown kind of bound", with_header_bytes(whole, kExtentAt + 1, 1, {7})});
  cases.push_back({"grid_product", StatusCode::corrupt, "a grid of more elements than the array has",
                   with_header(whole, [](Header& h) { ++h.grid.extents[0]; })});
  cases.push_back({"grid_of_codec", StatusCode::corrupt, "a grid that is not the one the codec's parameters give",
                   with_header(whole, [](Header& h) {
                     std::swap(h.grid.extents[0], h.grid.extents[2]);
                     std::swap(h.grid.chunk[0], h.grid.chunk[2]);
                   })});
  cases.push_back({"chunk_extent", StatusCode::corrupt, "chunks larger than the grid",
                   with_header(whole, [](Header& h) { ++h.grid.chunk[2]; })});
  cases.push_back({"codec_id", StatusCode::unknown_codec, "a codec that does not exist",
                   with_header(whole, [](Header& h) { h.codec_id = 999; })});
  cases.push_back({"codec_version", StatusCode::unsupported_version, "a codec's version that is not known",
                   with_header(whole, [](Header& h) { h.codec_version = 77; })});
  cases.push_back({"params_left_over", StatusCode::corrupt, "a byte too many among the codec's parameters",
                   with_header(whole, [](Header& h) { h.params.push_back(0); })});
  cases.push_back({"header_left_over", StatusCode::corrupt, "a byte between metadata and checksum",
                   with_header_bytes(whole, header_bytes(whole) - 8, 0, {0})});
}

void add_body_cases(std::vector<MustFailCase>& cases, const Bytes& whole) {
  const std::size_t segment = header_bytes(whole);
  cases.push_back({"segment_checksum", StatusCode::checksum_mismatch, "a byte of a chunk is damaged",
                   flipped(whole, whole.size() - 25 - 8 - 2)});
  cases.push_back(
      {"segment_size", StatusCode::corrupt, "a segment smaller than its framing", with_byte(whole, segment, 3)});
  cases.push_back({"table_check", StatusCode::checksum_mismatch, "a byte of the table of chunks is damaged",
                   flipped(whole, segment + 7)});
  cases.push_back({"truncated_segment", StatusCode::truncated, "the data ends inside a segment",
                   Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(segment + 12))});
  cases.push_back({"no_trailer", StatusCode::truncated, "the data ends where the trailer should begin",
                   Bytes(whole.begin(), whole.end() - 25)});
  cases.push_back(
      {"trailer_check", StatusCode::corrupt, "a size in the trailer is damaged", flipped(whole, whole.size() - 25)});
  Bytes followed = whole;
  followed.push_back(0x0A);
  cases.push_back({"trailing_data", StatusCode::trailing_data, "a byte after the stream", followed});
  Bytes cut = whole;
  cut.insert(cut.end(), whole.begin(), whole.begin() + 30);
  cases.push_back({"second_stream_cut", StatusCode::truncated, "a second stream that ends inside its header", cut});
}

/// Changes the first byte of the only chunk, or of the mask when there is one, and makes the checksums right again.
Bytes with_first_byte(const Bytes& stream, std::size_t offset, std::uint8_t value) {
  // Behind size (4), mask size (1) and one entry of the table (4) comes the mask, or the head check (4) and the chunk.
  return fuzz::reseal(with_byte(stream, header_bytes(stream) + 9 + offset, value));
}

void add_payload_cases(std::vector<MustFailCase>& cases, const Bytes& lorenzo) {
  cases.push_back({"lorenzo_form", StatusCode::corrupt, "a chunk of lorenzo of a form that does not exist",
                   with_first_byte(lorenzo, 4, 2)});
  cases.push_back(
      {"lorenzo_predictor", StatusCode::corrupt, "a predictor that does not exist", with_first_byte(lorenzo, 6, 0x0F)});
  const Bytes lossless = encode_one(values_of(DType::i16, {200}, [](std::uint64_t i) { return staircase(i); }),
                                    with(BoundKind::lossless, 0, "lossless"));
  cases.push_back({"lossless_mode", StatusCode::corrupt, "a chunk of lossless of a mode that does not exist",
                   with_first_byte(lossless, 4, 9)});
  cases.push_back({"lossless_zstd_unannounced", StatusCode::corrupt, "mode zstd where the parameters rule it out",
                   with_first_byte(lossless, 4, 3)});
  const Bytes masked = encode_one(
      values_of(DType::f32, {200},
                [](std::uint64_t i) { return i % 10 < 4 ? std::numeric_limits<double>::quiet_NaN() : staircase(i); }),
      with(BoundKind::abs, 0.25));
  cases.push_back({"mask_start", StatusCode::corrupt, "a mask that begins with an impossible code", fuzz::reseal([&] {
                     Bytes bytes = masked;
                     for (std::size_t i = 0; i < 4; ++i) bytes[header_bytes(masked) + 9 + i] = 0xFF;
                     return bytes;
                   }())});
}

/// Two segments of equal size, exchanged: each is whole, but not at its place.
void add_place_cases(std::vector<MustFailCase>& cases) {
  const auto make = [](double value) {
    const auto constant = [&](std::uint64_t) { return value; };
    CompressOptions options = with(BoundKind::abs, 0.5, "lorenzo", {{"layout", "3d:1,2"}});
    options.find_repeated = false;
    return encode_one(values_of(DType::f32, {4096, 3, 9}, constant), options);
  };
  const Bytes first = make(3);
  const Bytes second = make(4);
  const std::size_t header = header_bytes(first);
  const std::size_t segment = first[header] + (std::size_t{first[header + 1]} << 8);
  Bytes swapped = first;
  std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(header),
                   swapped.begin() + static_cast<std::ptrdiff_t>(header + segment),
                   swapped.begin() + static_cast<std::ptrdiff_t>(header + segment));
  cases.push_back(
      {"segments_exchanged", StatusCode::checksum_mismatch, "two whole segments in each other's place", swapped});
  // Streams of the same header cannot be told apart; these differ in their metadata.
  CompressOptions noted = with(BoundKind::abs, 0.5, "lorenzo", {{"layout", "3d:1,2"}});
  noted.find_repeated = false;
  noted.metadata = {'a'};
  const Bytes other = encode_one(values_of(DType::f32, {4096, 3, 9}, [](std::uint64_t) { return 3.0; }), noted);
  Bytes spliced(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(header));
  const std::size_t other_header = header_bytes(other);
  spliced.insert(spliced.end(), other.begin() + static_cast<std::ptrdiff_t>(other_header), other.end());
  cases.push_back({"segments_of_another_stream", StatusCode::checksum_mismatch,
                   "whole segments and trailer of another stream behind this header", spliced});
}

/// Masks coded by levels.
void add_mask_level_cases(std::vector<MustFailCase>& cases) {
  CompressOptions options = with(BoundKind::abs, 0.5, "lorenzo", {{"mask", "2"}});
  const Bytes whole =
      encode_one(values_of(DType::f32, {30, 40},
                           [](std::uint64_t i) {
                             const std::uint64_t y = i / 40, x = i % 40;
                             return y * y + x * x < 500 ? std::numeric_limits<double>::quiet_NaN() : staircase(i);
                           }),
                 options);
  cases.push_back({"mask_levels_unannounced", StatusCode::corrupt,
                   "a mask coded by levels in a stream whose header does not say so",
                   with_header(whole, [](Header& h) { h.must_understand = 0; })});
}

}  // namespace

std::vector<MustFailCase> must_fail_cases() {
  std::vector<MustFailCase> cases;
  CompressOptions options = with(BoundKind::abs, 0.25, "lorenzo", {{"layout", "2d:1"}});
  options.find_repeated = false;
  const Bytes whole = encode_one(values_of(DType::f32, {10, 30}, staircase), options);
  add_header_cases(cases, whole);
  add_body_cases(cases, whole);
  add_payload_cases(cases, whole);
  add_place_cases(cases);
  add_mask_level_cases(cases);
  add_stencil_cases(cases);
  add_autoencoder_cases(cases);
  add_network_cases(cases);
  return cases;
}

}  // namespace quern::golden

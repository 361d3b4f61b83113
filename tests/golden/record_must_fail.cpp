// The broken streams of records.
#include "tests/golden/record_must_fail.h"

#include <cstdlib>
#include <functional>
#include <iostream>

#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/records/record_header.h"
#include "tests/fuzz/reseal_records.h"
#include "tests/golden/record_cases.h"

namespace quern::golden {
namespace {

using Bytes = Vector<std::uint8_t>;

template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::cerr << "record_must_fail_cases: " << result.status().text() << "\n";
  std::abort();
}

std::size_t header_bytes_of(const Bytes& stream) { return static_cast<std::size_t>(must(header_size(stream))); }

Bytes with_header(const Bytes& stream, const std::function<void(RecordHeader&)>& change) {
  const std::size_t size = header_bytes_of(stream);
  RecordHeader header = must(parse_record_header(std::span(stream).first(size)));
  change(header);
  Bytes out = must(serialize_record_header(header));
  out.insert(out.end(), stream.begin() + static_cast<std::ptrdiff_t>(size), stream.end());
  return fuzz::reseal_records(out);
}

/// The stream with a byte set, all checksums right.
Bytes with_byte(const Bytes& stream, std::size_t at, std::uint8_t value) {
  Bytes out = stream;
  out[at] = value;
  return fuzz::reseal_records(out);
}

Bytes flipped(const Bytes& stream, std::size_t at) {
  Bytes out = stream;
  out[at] ^= 1;
  return out;
}

void add_header_cases(std::vector<MustFailCase>& cases, const Bytes& whole) {
  const auto add = [&](const char* name, const char* why, const std::function<void(RecordHeader&)>& change) {
    cases.push_back({name, StatusCode::corrupt, why, with_header(whole, change)});
  };
  add("section_items", "a section with more items than the set", [](auto& h) { h.layout.sections[0].items = 11; });
  add("section_elements", "items without elements", [](auto& h) { h.layout.sections[0].item_elems = 0; });
  add("section_large", "a part above 2^31 bytes", [](auto& h) { h.layout.sections[0].item_elems = 1 << 29; });
  add("section_form", "a form that does not exist", [](auto& h) { h.layout.sections[0].form = SectionForm{3}; });
  add("section_name", "a name that is not UTF-8", [](auto& h) { h.layout.sections[0].name = "\xC3"; });
  add("section_name_control", "a name with a control character", [](auto& h) { h.layout.sections[0].name = "\n"; });
  add("section_name_empty", "a section without a name", [](auto& h) { h.layout.sections[0].name = ""; });
  add("section_name_twice", "two sections of one name", [](auto& h) { h.layout.sections[1].name = "a"; });
  add("section_psnr", "a bound of kind psnr", [](auto& h) { h.layout.sections[0].requested = {BoundKind::psnr, 9}; });
  add("sections_none", "no section", [](auto& h) { h.layout.sections.clear(); });
  add("frames", "frames with fewer items than the set", [](auto& h) { h.layout.frames = {4, 5}; });
  add("segment_items", "segments without items", [](auto& h) { h.layout.segment_items = 0; });
  add("stored_params", "parameters without a codec", [](auto& h) { h.params.push_back(1); });
}

}  // namespace

std::vector<MustFailCase> record_must_fail_cases() {
  std::vector<MustFailCase> cases;
  // 10 items in segments of 4: a (i16), b (f32, 3 items of 2), c (strings).
  const Bytes stored = must(encode(record_case("stored")));
  const std::size_t header = header_bytes_of(stored);
  add_header_cases(cases, stored);
  cases.push_back({"level_tables", StatusCode::unsupported, "level tables of records",
                   fuzz::reseal_records(with_byte(stored, 14, 3))});
  cases.push_back({"trailer_missing", StatusCode::truncated, "no trailer", Bytes(stored.begin(), stored.end() - 24)});
  cases.push_back({"head_check", StatusCode::checksum_mismatch, "a damaged head", flipped(stored, header + 8)});
  cases.push_back({"part_damaged", StatusCode::checksum_mismatch, "a damaged part", flipped(stored, header + 40)});
  cases.push_back({"stored_but_coded", StatusCode::corrupt, "a coded part under codec id 0", [&] {
                     // Its 8 bytes become a coded part of 7 and a longer string.
                     Bytes out = stored;
                     for (std::size_t i = 0; i < 4; ++i) out[header + 8 + i] = i == 0 ? 7 : 0;
                     out[header + 24] = 1;
                     return fuzz::reseal_records(out);
                   }()});
  cases.push_back(
      {"string_length", StatusCode::corrupt, "a string above 2^30 bytes", with_byte(stored, header + 27, 0x41)});

  const Bytes noise = must(encode(record_case("noise")));
  const std::size_t noise_header = header_bytes_of(noise);
  cases.push_back({"params_block", StatusCode::corrupt, "blocks of a size that does not exist",
                   with_header(noise, [](RecordHeader& h) { h.params[0] = 3; })});
  cases.push_back({"codec_version", StatusCode::unsupported_version, "a codec of another version",
                   with_header(noise, [](RecordHeader& h) { h.codec_version = 9; })});
  cases.push_back({"part_mode", StatusCode::corrupt, "values coded in a way that does not exist",
                   with_byte(noise, noise_header + 8 + 8 + 8 + 12 + 4 + 200, 7)});
  return cases;
}

}  // namespace quern::golden

// What can be wrong with stored bytes, as a number and two more: what code that also runs on devices reports, and what
// the host turns into a Status.
#pragma once

#include <cstdint>

#include <quern/status.h>

namespace quern {

enum class FormatFault : std::uint8_t {
  none = 0,
  // Primitives.
  too_few_bytes,        ///< needed, left
  ends_inside_number,   ///< bytes there are
  number_too_large,     ///< does not fit in 64 bits
  number_not_shortest,  ///< has more bytes than it needs
  number_above_limit,   ///< number, limit
  bytes_left_over,      ///< how many
  // Header.
  not_a_stream,
  header_size_impossible,  ///< size, limit
  header_incomplete,       ///< bytes there are, size
  header_damaged,
  header_ends_early,
  other_version,     ///< major, minor
  unknown_features,  ///< bits
  holds_records,
  holds_an_array,
  unknown_dtype,  ///< its number
  too_many_axes,  ///< axes, limit
  too_many_elements,
  unknown_bound_kind,
  bound_kind_not_enforceable,
  requested_bound_impossible,
  lossless_with_value,
  enforced_bound_missing,
  enforced_bound_impossible,
  value_range_impossible,
  grid_does_not_fit,
  // Header of records; sections by their number.
  section_count_impossible,     ///< sections, limit
  section_form_unknown,         ///< section, form
  section_name_impossible,      ///< section
  section_name_twice,           ///< section
  section_items_impossible,     ///< section, items
  section_elements_impossible,  ///< section, elements of an item
  section_too_large,            ///< section
  frames_do_not_add_up,
  segment_items_impossible,  ///< items of a segment
  // Segment; chunks by their number in the stream.
  segment_size_impossible,  ///< segment, size
  segment_head_cut,         ///< segment
  segment_head_damaged,     ///< segment
  chunk_size_impossible,    ///< segment, chunk
  chunk_cut,                ///< segment, chunk
  chunk_damaged,            ///< segment, chunk
  segment_damaged,          ///< segment
  segment_cut,              ///< segment
  segment_too_long,         ///< segment
  // Segment of records.
  section_size_impossible,  ///< segment, section
  section_cut,              ///< segment, section
  section_damaged,          ///< segment, section
  // Trailer.
  trailer_missing,  ///< bytes left for it
  footer_missing,
  footer_sizes_impossible,
  index_sizes_missing,  ///< segments
  trailer_damaged,
  index_above_stream,
  index_not_the_stream,  ///< the last one
};

struct Fault {
  FormatFault what = FormatFault::none;
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  constexpr bool ok() const { return what == FormatFault::none; }
};

/// What kind of failure a fault is.
constexpr StatusCode code_of(FormatFault what) {
  using enum FormatFault;
  switch (what) {
    case none: return StatusCode::ok;
    case not_a_stream: return StatusCode::bad_magic;
    case too_few_bytes:
    case ends_inside_number:
    case header_incomplete:
    case segment_head_cut:
    case chunk_cut:
    case section_cut:
    case segment_cut:
    case trailer_missing:
    case footer_missing: return StatusCode::truncated;
    case header_damaged:
    case segment_head_damaged:
    case chunk_damaged:
    case section_damaged:
    case segment_damaged:
    case trailer_damaged: return StatusCode::checksum_mismatch;
    case other_version: return StatusCode::unsupported_version;
    case unknown_features:
    case holds_records:
    case holds_an_array: return StatusCode::unsupported;
    case number_too_large:
    case number_not_shortest:
    case number_above_limit:
    case bytes_left_over:
    case header_size_impossible:
    case header_ends_early:
    case unknown_dtype:
    case too_many_axes:
    case too_many_elements:
    case unknown_bound_kind:
    case bound_kind_not_enforceable:
    case requested_bound_impossible:
    case lossless_with_value:
    case enforced_bound_missing:
    case enforced_bound_impossible:
    case value_range_impossible:
    case grid_does_not_fit:
    case section_count_impossible:
    case section_form_unknown:
    case section_name_impossible:
    case section_name_twice:
    case section_items_impossible:
    case section_elements_impossible:
    case section_too_large:
    case frames_do_not_add_up:
    case segment_items_impossible:
    case section_size_impossible:
    case segment_size_impossible:
    case chunk_size_impossible:
    case segment_too_long:
    case footer_sizes_impossible:
    case index_sizes_missing:
    case index_above_stream:
    case index_not_the_stream: return StatusCode::corrupt;
  }
  return StatusCode::internal;
}

/// The same in words.
Status status_of(const Fault& fault);
/// The same where it is the caller's fault, not that of stored bytes: ok, or invalid_argument.
Status argument_status_of(const Fault& fault);

}  // namespace quern

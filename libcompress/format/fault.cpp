// Messages of faults.
#include "libcompress/format/fault.h"

namespace quern {
namespace {

const char* message_of(FormatFault what) {
  using enum FormatFault;
  switch (what) {
    case none: break;
    case too_few_bytes: return "{0} bytes are needed where {1} are left";
    case ends_inside_number: return "the data ends inside a number, at byte {0}";
    case number_too_large: return "a number does not fit in 64 bits";
    case number_not_shortest: return "a number is not in its shortest form";
    case number_above_limit: return "a number is {0}, above its limit of {1}";
    case bytes_left_over: return "{0} bytes are left over";

    case not_a_stream: return "these bytes do not begin a quern stream (or were changed as if they were text)";
    case header_size_impossible: return "the header claims {0} bytes; {1} is the limit";
    case header_incomplete: return "the header has {0} bytes of {1}";
    case header_damaged: return "the header is damaged: its checksum does not match";
    case header_ends_early: return "the header ends before its fields do";
    case other_version: return "the stream is of experimental format {0}.{1}; read it with the release that wrote it";
    case unknown_features: return "the stream needs features this build does not know (bits {0})";
    case holds_records: return "the stream holds records, not an array; `quern info` tells of them";
    case holds_an_array: return "the stream holds an array, not records";
    case unknown_dtype: return "the header names element type {0}, which does not exist";
    case too_many_axes: return "the header's array has {0} axes; at most {1} are possible";
    case too_many_elements: return "the header's shape has more elements than sizes can hold";
    case unknown_bound_kind: return "the header names an unknown kind of bound";
    case bound_kind_not_enforceable: return "the header's enforced bound is of a kind no codec works under";
    case requested_bound_impossible: return "the header's requested bound is impossible";
    case lossless_with_value: return "the header gives a value to a lossless bound";
    case enforced_bound_missing: return "the header lacks the enforced bound";
    case enforced_bound_impossible: return "the header's enforced bound is impossible";
    case value_range_impossible: return "the header's value range is impossible";
    case grid_does_not_fit: return "the header's chunk grid does not fit the array";

    case section_count_impossible: return "the header has {0} sections; 1 to {1} are possible";
    case section_form_unknown: return "section {0} is of form {1}, which does not exist";
    case section_name_impossible:
      return "section {0}: its name is not 1 to 255 bytes of UTF-8 without control characters";
    case section_name_twice: return "section {0} has the name of one before it";
    case section_items_impossible: return "section {0} has {1} items, more than the stream";
    case section_elements_impossible: return "section {0} has items of {1} elements";
    case section_too_large: return "section {0} has more bytes than sizes can hold";
    case frames_do_not_add_up: return "the header's frames do not add up to its items";
    case segment_items_impossible: return "the header has segments of {0} items";

    case segment_size_impossible: return "segment {0}: its size, {1} bytes, is impossible";
    case segment_head_cut: return "segment {0}: the stream ends inside its table or mask";
    case segment_head_damaged: return "segment {0}: its table or mask is damaged";
    case chunk_size_impossible: return "segment {0}, chunk {1}: its stored size is not below that of its values";
    case chunk_cut: return "segment {0}, chunk {1}: the stream ends before it does";
    case chunk_damaged: return "segment {0}, chunk {1} is damaged: its checksum does not match";
    case segment_damaged: return "segment {0}: its checksum does not match";
    case segment_cut: return "segment {0}: the stream ends inside it";
    case segment_too_long: return "segment {0}: it is longer than its table says";

    case section_size_impossible: return "segment {0}, section {1}: its stored size is impossible";
    case section_cut: return "segment {0}, section {1}: the stream ends before it does";
    case section_damaged: return "segment {0}, section {1} is damaged: its checksum does not match";

    case trailer_missing: return "the stream has no trailer: {0} bytes are left for it";
    case footer_missing: return "the data does not end as a stream does; its end may be missing";
    case footer_sizes_impossible: return "the trailer's sizes are impossible";
    case index_sizes_missing: return "the trailer does not have one size for each of {0} segments";
    case trailer_damaged: return "the trailer is damaged: its checksum does not match";
    case index_above_stream: return "the trailer's sizes add up to more than the stream";
    case index_not_the_stream: return "the trailer's sizes do not add up to the stream";
  }
  return "a fault without a name";
}

}  // namespace

Status status_of(const Fault& fault) {
  if (fault.ok()) return {};
  return Status(code_of(fault.what), message_of(fault.what), static_cast<std::int64_t>(fault.first),
                static_cast<std::int64_t>(fault.second));
}

Status argument_status_of(const Fault& fault) {
  if (fault.ok()) return {};
  return Status(StatusCode::invalid_argument, message_of(fault.what), static_cast<std::int64_t>(fault.first),
                static_cast<std::int64_t>(fault.second));
}

}  // namespace quern

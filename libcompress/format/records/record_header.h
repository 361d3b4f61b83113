// The header of a stream of records: layout, codec and its parameters, metadata. Parsing checks all limits and never
// trusts a number; codec parameters stay opaque here.
//
//   magic | size | version | must understand | may ignore          as every header
//   writer | items | items of a segment | frames | codec | sections | parameters | metadata
//   checksum                                                       as every header
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/records.h>
#include <quern/status.h>

#include "libcompress/format/frame/header_frame.h"

namespace quern {

struct RecordHeader : StreamStart {
  WriterId writer;
  std::uint16_t codec_id = 0;
  std::uint16_t codec_version = 0;
  RecordLayout layout;
  Vector<std::uint8_t> params;
  Vector<std::uint8_t> metadata;
  std::uint64_t checksum = 0;  ///< set by parsing and by writing
};

/// What is wrong with a layout: names, counts, sizes, frames. May throw std::bad_alloc.
Fault fault_in_layout(const RecordLayout& layout);

/// The stored form; sets `header.checksum`. Fails when a limit is exceeded. May throw std::bad_alloc.
Result<Vector<std::uint8_t>> serialize_record_header(RecordHeader& header);

/// Reads exactly one header; `bytes` must end where the header ends. Allocates what the bytes hold, and the metadata.
/// May throw std::bad_alloc.
Result<RecordHeader> parse_record_header(std::span<const std::uint8_t> bytes);

}  // namespace quern

// Elements that a chunk stores bit for bit, in C order: records of one size, so that each can be read by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::interp {

template <class Bits>
using Exceptions = Vector<std::pair<std::uint32_t, Bits>>;

inline constexpr std::size_t kIndexBytes = 3;
template <class Bits>
constexpr std::size_t exception_bytes() {
  return kIndexBytes + sizeof(Bits);
}

template <class Bits>
void write_exceptions(const Exceptions<Bits>& exceptions, Vector<std::uint8_t>& out) {
  Writer writer(out);
  writer.varint(exceptions.size());
  for (const auto& [index, bits] : exceptions) {
    writer.unsigned_of(index, kIndexBytes);
    writer.unsigned_of(bits, sizeof(Bits));
  }
}

/// Checks the exceptions of a chunk of `elems` elements, takes them off the front of `in`, and hands them out as bytes.
template <class Bits>
Result<std::span<const std::uint8_t>> take_exceptions(std::span<const std::uint8_t>& in, std::uint64_t elems) {
  Reader reader(in);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint(elems));
  QUERN_ASSIGN_OR_RETURN(const auto records, reader.bytes(count * exception_bytes<Bits>()));
  std::uint64_t least = 0;
  for (Reader each(records); !each.at_end();) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t index, each.unsigned_of(kIndexBytes));
    if (index < least || index >= elems)
      return Status(StatusCode::corrupt, "interp: an exception lies outside its chunk or behind a later one");
    least = index + 1;
    QUERN_RETURN_IF_ERROR(each.skip(sizeof(Bits)));
  }
  in = in.subspan(reader.position());
  return records;
}

/// Calls visit(index, bits) for checked exceptions.
template <class Bits, class Visit>
Status for_exceptions(std::span<const std::uint8_t> records, const Visit& visit) {
  for (Reader each(records); !each.at_end();) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t index, each.unsigned_of(kIndexBytes));
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, each.unsigned_of(sizeof(Bits)));
    visit(static_cast<std::size_t>(index), static_cast<Bits>(bits));
  }
  return {};
}

}  // namespace quern::codec::interp

// Elements that a chunk stores bit for bit: a gap since the one before and the bits, in C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

/// Checks `count` exceptions of a chunk of `elems` elements and calls visit(index, bits) for them.
template <class Bits, class Visit>
Status walk_exceptions(Reader& reader, std::uint64_t count, std::uint64_t elems, const Visit& visit) {
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t gap, reader.varint(elems));
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, reader.unsigned_of(sizeof(Bits)));
    next += gap;
    if (next >= elems) return Status(StatusCode::corrupt, "stencil: an exception lies outside its chunk");
    visit(next, static_cast<Bits>(bits));
    ++next;
  }
  return {};
}
template <class Bits>
Status check_exceptions(Reader& reader, std::uint64_t count, std::uint64_t elems) {
  return walk_exceptions<Bits>(reader, count, elems, [](std::uint64_t, Bits) {});
}
/// Stores them in the box.
template <class Bits>
Status put_exceptions(Reader& reader, std::uint64_t count, std::uint64_t elems, const MutableBox3& out) {
  const std::uint64_t columns = out.extents[2];
  return walk_exceptions<Bits>(reader, count, elems, [&](std::uint64_t index, Bits bits) {
    static_cast<Bits*>(out.data)[row_offset(out, static_cast<std::size_t>(index / columns)) + index % columns] = bits;
  });
}

/// Writes how many there are and them, which are in order.
template <class Bits>
void write_exceptions(const Vector<std::pair<std::uint64_t, Bits>>& exceptions, Writer& writer) {
  writer.varint(exceptions.size());
  std::uint64_t next = 0;
  for (const auto& [index, bits] : exceptions) {
    writer.varint(index - next);
    writer.unsigned_of(bits, sizeof(Bits));
    next = index + 1;
  }
}

}  // namespace quern::codec::stencil

// Where the items of records lie, and looking names and codecs up.
#include <quern/records.h>

#include <algorithm>

namespace quern {

std::uint64_t RecordLayout::part_items(std::size_t section, std::uint64_t segment) const {
  const std::uint64_t own = sections[section].items;
  // The number of the segment is below segments(), so that its first item is below `items`.
  const std::uint64_t first = segment * segment_items;
  return own > first ? std::min(own - first, segment_items) : 0;
}

const RecordSection* RecordLayout::by_name(std::string_view name) const {
  for (const RecordSection& section : sections)
    if (name == std::string_view(section.name)) return &section;
  return nullptr;
}

const RecordCodec* RecordRegistry::by_name(std::string_view name) const {
  for (const RecordCodec* codec : codecs_)
    if (name == codec->info().name) return codec;
  return nullptr;
}

const RecordCodec* RecordRegistry::by_id(std::uint16_t id) const {
  for (const RecordCodec* codec : codecs_)
    if (id == codec->info().id) return codec;
  return nullptr;
}

}  // namespace quern

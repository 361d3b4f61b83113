// Looking codecs up.
#include <quern/codec.h>

namespace quern {

const ArrayCodec* Registry::by_name(std::string_view name) const {
  for (const ArrayCodec* codec : codecs_)
    if (name == codec->info().name) return codec;
  return nullptr;
}

const ArrayCodec* Registry::by_id(std::uint16_t id) const {
  for (const ArrayCodec* codec : codecs_)
    if (id == codec->info().id) return codec;
  return nullptr;
}

}  // namespace quern

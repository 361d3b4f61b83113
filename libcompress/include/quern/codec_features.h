// What codecs tell of forms of chunks that readers before them do not know: a face beside ChunkEncoder and ChunkDecoder,
// found by dynamic_cast.
#pragma once

#include <cstdint>

namespace quern {

/// A ChunkEncoder or ChunkDecoder whose parameters may allow such forms is one of these, too.
class CodecFeatures {
 public:
  virtual ~CodecFeatures() = default;
  /// Bits of the header that readers must understand because of the parameters; of those that belong to codecs alone
  /// (docs/format.md, appendix A).
  virtual std::uint64_t features() const = 0;
};

}  // namespace quern

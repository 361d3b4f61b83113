// A copy of a tensor's values in memory of one's own.
#pragma once

#include <cstring>
#include <span>

#include "libcompress/core/buffer.h"

namespace quern::checkpoint {

inline Status copy_values(std::span<const std::uint8_t> from, AlignedBuffer& to) {
  QUERN_RETURN_IF_ERROR(to.resize(from.size()));
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return {};
}

}  // namespace quern::checkpoint

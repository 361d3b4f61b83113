// Stored parameters in vectors, and what is wrong with them in words.
#include "codecs/lorenzo/rules.h"

namespace quern::codec::lorenzo {

Vector<std::uint8_t> write_params(const kernels::ChunkRules& rules, const Layout& layout) {
  std::array<std::uint8_t, kMaxStoredRules> room;
  ByteWriter out(room);
  put_params(out, rules, layout);
  return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(out.size())};
}

Status read_params(std::span<const std::uint8_t> bytes, DType dtype, const Shape& shape, kernels::ChunkRules& rules,
                   Layout& layout) {
  ByteReader in(bytes);
  switch (get_params(in, dtype, shape, rules, layout)) {
    case ParamsFault::none: return {};
    case ParamsFault::unreadable: return status_of(in.fault());
    case ParamsFault::unknown_kind:
      return Status(StatusCode::corrupt, "lorenzo: quantizer {0} or tile {1} is unknown", bytes[0], bytes[1]);
    case ParamsFault::merged_axes:
      return Status(StatusCode::corrupt, "lorenzo: axes cannot be merged at {0} and {1}", bytes[2], bytes[3]);
    case ParamsFault::pointwise_integers: return Status(StatusCode::corrupt, "lorenzo: a point-wise bound on integers");
    case ParamsFault::step:
      return Status(StatusCode::corrupt, "lorenzo: the step is not a positive number of the working type");
    case ParamsFault::line_axes: return Status(StatusCode::corrupt, "lorenzo: line tiles on more than one axis");
    case ParamsFault::plane_axes: return Status(StatusCode::corrupt, "lorenzo: plane tiles on more than two axes");
  }
  return Status(StatusCode::internal, "lorenzo: a fault without a name");
}

}  // namespace quern::codec::lorenzo

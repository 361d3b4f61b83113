// Tiles as tasks; what lies beside the slots is put together in the order of the tiles.
#include "codecs/tensor/at_rest.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "libcompress/core/run_tasks.h"

namespace quern::codec::tensor {
namespace {

using kernels::AtRestKernels;
using kernels::AtRestKind;
using kernels::AtRestStep;
using kernels::AtRestTile;
using kernels::kAtRestBlock;
using kernels::kAtRestTile;
using kernels::kAtRestTileBlocks;

constexpr std::size_t kMostBeside = kAtRestTileBlocks * kernels::kAtRestRawBytes;

const AtRestKernels& best_kernels() { return kernels::at_rest_kernels(kernels::best_isa()); }

std::uint64_t key_of(std::uint64_t seed, std::uint64_t step) {
  return kernels::at_rest_mix64(seed ^ kernels::at_rest_mix64(step));
}

/// Bytes beside the slots that the headers of a tile speak of, or nothing for a header that no encoder writes.
std::optional<std::size_t> beside_of(std::span<const std::uint32_t> headers) {
  std::size_t bytes = 0;
  for (const std::uint32_t header : headers) {
    const AtRestKind kind = kernels::unpack_at_rest_header(header).kind;
    if (kind > AtRestKind::raw) return std::nullopt;
    bytes += kernels::at_rest_beside_bytes(kind);
  }
  return bytes;
}

}  // namespace

Result<AtRestMoments> AtRestMoments::make(std::uint64_t values, std::uint64_t first_value, const AtRestForm& form) {
  if (form.bits != 8 && form.bits != 4)
    return Status(StatusCode::invalid_argument, "moments at rest: codes have 8 or 4 bits, not {0}",
                  static_cast<std::int64_t>(form.bits));
  if (first_value % kAtRestBlock != 0)
    return Status(StatusCode::invalid_argument, "moments at rest: a range begins at a multiple of 256, not at {0}",
                  static_cast<std::int64_t>(first_value));
  if (values > UINT64_C(1) << 56)
    return Status(StatusCode::invalid_argument, "moments at rest: {0} values are more than memory has",
                  static_cast<std::int64_t>(values));
  AtRestMoments made;
  made.values_ = values;
  made.first_block_ = first_value / kAtRestBlock;
  made.form_ = form;
  QUERN_RETURN_IF_ERROR(made.fixed_.resize(4 * (std::uint64_t{made.tiles()} + made.blocks()) +
                                           std::uint64_t{made.blocks()} * kernels::at_rest_slot_bytes(form)));
  // Headers and codes of 0 mean zeros.
  if (made.fixed_.size() != 0) std::memset(made.fixed_.data(), 0, made.fixed_.size());
  return made;
}

std::uint32_t* AtRestMoments::sizes() const {
  return reinterpret_cast<std::uint32_t*>(const_cast<std::uint8_t*>(fixed_.data()));
}

std::uint32_t* AtRestMoments::headers() const { return sizes() + tiles(); }

AtRestTile AtRestMoments::tile(std::size_t index, std::size_t beside_at) const {
  const std::size_t begin = index * kAtRestTile;
  AtRestTile tile;
  tile.values = std::min<std::size_t>(kAtRestTile, static_cast<std::size_t>(values_) - begin);
  tile.first_block = first_block_ + index * kAtRestTileBlocks;
  tile.headers = headers() + index * kAtRestTileBlocks;
  tile.slots = reinterpret_cast<std::uint8_t*>(headers() + blocks()) +
               index * kAtRestTileBlocks * kernels::at_rest_slot_bytes(form_);
  tile.beside = beside_.data() + beside_at;
  return tile;
}

/// Calls encode(tile, its first value, room) for each tile; the call returns the bytes that it wrote to the room.
template <class Encode>
Status AtRestMoments::for_tiles(TaskRunner& runner, const Encode& encode) {
  Vector<std::size_t> begins(tiles());
  Vector<Vector<std::uint8_t>> made(tiles());
  std::size_t at = 0;
  for (std::size_t t = 0; t < tiles(); ++t) {
    begins[t] = at;
    at += sizes()[t];
  }
  BufferPool pool(kMostBeside);
  QUERN_RETURN_IF_ERROR(run_tasks(runner, tiles(), [&](std::size_t t) -> Status {
    QUERN_ASSIGN_OR_RETURN(auto room, pool.lend());
    std::uint8_t* const to = room.span().data();
    const std::size_t written = encode(tile(t, begins[t]), t * kAtRestTile, to);
    made[t].assign(to, to + written);
    sizes()[t] = static_cast<std::uint32_t>(written);
    return {};
  }));
  at = 0;
  for (const auto& part : made) at += part.size();
  beside_.clear();
  beside_.reserve(at);
  for (const auto& part : made) beside_.insert(beside_.end(), part.begin(), part.end());
  return {};
}

Status AtRestMoments::encode(std::uint64_t seed, std::uint64_t step, const float* first, const float* second,
                             TaskRunner& runner) {
  const AtRestStep how{form_, key_of(seed, step), {}};
  const AtRestKernels& kernels = best_kernels();
  return for_tiles(runner, [&](const AtRestTile& tile, std::size_t begin, std::uint8_t* room) {
    return kernels.encode(how, tile, first + begin, second + begin, room);
  });
}

Status AtRestMoments::decode(float* first, float* second, TaskRunner& runner) const {
  Vector<std::size_t> begins(tiles());
  std::size_t at = 0;
  for (std::size_t t = 0; t < tiles(); ++t) {
    begins[t] = at;
    at += sizes()[t];
  }
  const AtRestKernels& kernels = best_kernels();
  return run_tasks(runner, tiles(), [&](std::size_t t) -> Status {
    kernels.decode(form_, tile(t, begins[t]), first + t * kAtRestTile, second + t * kAtRestTile);
    return {};
  });
}

Status AtRestMoments::step(std::uint64_t seed, std::uint64_t step, const kernels::AdamRule& rule,
                           const AtRestGradient& gradient, float* weight, std::uint16_t* copy, TaskRunner& runner) {
  if (gradient.type != ElementType::bf16 && gradient.type != ElementType::f32)
    return Status(StatusCode::unsupported, "moments at rest: gradients are bfloat16 or binary32");
  const AtRestStep how{form_, key_of(seed, step), rule};
  const AtRestKernels& kernels = best_kernels();
  return for_tiles(runner, [&](const AtRestTile& tile, std::size_t begin, std::uint8_t* room) {
    std::uint16_t* const copied = copy == nullptr ? nullptr : copy + begin;
    if (gradient.type == ElementType::f32)
      return kernels.step_f32(how, tile, static_cast<const float*>(gradient.values) + begin, weight + begin, copied,
                              room);
    return kernels.step_bf16(how, tile, static_cast<const std::uint16_t*>(gradient.values) + begin, weight + begin,
                             copied, room);
  });
}

Result<std::span<std::uint8_t>> AtRestMoments::beside_room() {
  std::uint64_t bytes = 0;
  for (std::size_t t = 0; t < tiles(); ++t) {
    if (sizes()[t] > kMostBeside) return Status(StatusCode::corrupt, "moments at rest: a tile is too large");
    bytes += sizes()[t];
  }
  beside_.resize(static_cast<std::size_t>(bytes));
  return std::span<std::uint8_t>(beside_);
}

Status AtRestMoments::accept() {
  for (std::size_t t = 0; t < tiles(); ++t) {
    const std::size_t first = t * kAtRestTileBlocks;
    const auto bytes = beside_of({headers() + first, std::min(kAtRestTileBlocks, blocks() - first)});
    if (!bytes || *bytes != sizes()[t])
      return Status(StatusCode::corrupt, "moments at rest: headers of a tile do not fit its size");
  }
  return {};
}

std::uint64_t AtRestMoments::exceptional_blocks() const {
  std::uint64_t count = 0;
  for (std::size_t b = 0; b < blocks(); ++b)
    if (kernels::unpack_at_rest_header(headers()[b]).kind != AtRestKind::narrow) ++count;
  return count;
}

double gradient_norm(const AtRestGradient& gradient, std::uint64_t values, double factor, TaskRunner& runner) {
  const auto tiles = static_cast<std::size_t>((values + kAtRestTile - 1) / kAtRestTile);
  Vector<double> sums(tiles);
  const AtRestKernels& kernels = best_kernels();
  const auto sum_of_tile = [&](std::size_t t) {
    const std::size_t begin = t * kAtRestTile;
    const std::size_t count = std::min<std::size_t>(kAtRestTile, static_cast<std::size_t>(values) - begin);
    sums[t] = gradient.type == ElementType::f32
                  ? kernels.squares_f32(static_cast<const float*>(gradient.values) + begin, count, factor)
                  : kernels.squares_bf16(static_cast<const std::uint16_t*>(gradient.values) + begin, count, factor);
  };
  runner.run(tiles, sum_of_tile);
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

}  // namespace quern::codec::tensor

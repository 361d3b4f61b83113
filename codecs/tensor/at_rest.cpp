// Tiles as tasks; what lies beside the slots is put together in the order of the tiles.
#include "codecs/tensor/at_rest.h"

#include <algorithm>
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

Result<std::pair<std::size_t, std::size_t>> AtRestMoments::tiles_of(std::uint64_t begin, std::uint64_t count) const {
  const std::uint64_t end = begin + count;
  if (begin % kAtRestTile != 0 || begin > values_ || count > values_ - begin ||
      (end % kAtRestTile != 0 && end != values_))
    return Status(StatusCode::invalid_argument, "moments at rest: values {0} to {1} are no whole tiles of 16384",
                  static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  const auto first = static_cast<std::size_t>(begin / kAtRestTile);
  return std::pair(first, first + static_cast<std::size_t>((count + kAtRestTile - 1) / kAtRestTile));
}

/// Where each tile's bytes beside the slots begin, and where the last end.
Vector<std::size_t> AtRestMoments::beside_begins() const {
  Vector<std::size_t> begins(tiles() + 1);
  for (std::size_t t = 0; t < tiles(); ++t) begins[t + 1] = begins[t] + sizes()[t];
  return begins;
}

/// Calls encode(tile, its first value, room) for each tile; the call returns the bytes that it wrote to the room.
template <class Encode>
Status AtRestMoments::for_tiles(std::size_t first, std::size_t end, TaskRunner& runner, const Encode& encode) {
  const Vector<std::size_t> begins = beside_begins();
  Vector<Vector<std::uint8_t>> made(end - first);
  BufferPool pool(kMostBeside);
  QUERN_RETURN_IF_ERROR(run_tasks(runner, end - first, [&](std::size_t i) -> Status {
    const std::size_t t = first + i;
    QUERN_ASSIGN_OR_RETURN(auto room, pool.lend());
    std::uint8_t* const to = room.span().data();
    const std::size_t written = encode(tile(t, begins[t]), t * kAtRestTile, to);
    made[i].assign(to, to + written);
    sizes()[t] = static_cast<std::uint32_t>(written);
    return {};
  }));
  if (beside_.empty() && std::all_of(made.begin(), made.end(), [](const auto& part) { return part.empty(); }))
    return {};
  std::size_t bytes = begins[first] + (beside_.size() - begins[end]);
  for (const auto& part : made) bytes += part.size();
  Vector<std::uint8_t> all;
  all.reserve(bytes);
  const auto old = [&](std::size_t at) { return beside_.begin() + static_cast<std::ptrdiff_t>(at); };
  all.insert(all.end(), beside_.begin(), old(begins[first]));
  for (const auto& part : made) all.insert(all.end(), part.begin(), part.end());
  all.insert(all.end(), old(begins[end]), beside_.end());
  beside_ = std::move(all);
  return {};
}

Status AtRestMoments::encode_part(std::uint64_t seed, std::uint64_t step, std::uint64_t begin, std::uint64_t count,
                                  const float* first, const float* second, TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const auto range, tiles_of(begin, count));
  const AtRestStep how{form_, key_of(seed, step), {}};
  const AtRestKernels& kernels = best_kernels();
  return for_tiles(range.first, range.second, runner, [&](const AtRestTile& tile, std::size_t at, std::uint8_t* room) {
    return kernels.encode(how, tile, first + (at - begin), second + (at - begin), room);
  });
}

Status AtRestMoments::decode_part(std::uint64_t begin, std::uint64_t count, float* first, float* second,
                                  TaskRunner& runner) const {
  QUERN_ASSIGN_OR_RETURN(const auto range, tiles_of(begin, count));
  const Vector<std::size_t> begins = beside_begins();
  const AtRestKernels& kernels = best_kernels();
  return run_tasks(runner, range.second - range.first, [&](std::size_t i) -> Status {
    const std::size_t t = range.first + i;
    kernels.decode(form_, tile(t, begins[t]), first + i * kAtRestTile, second + i * kAtRestTile);
    return {};
  });
}

Status AtRestMoments::step(std::uint64_t seed, std::uint64_t step, const kernels::AdamRule& rule,
                           const AtRestGradient& gradient, float* weight, std::uint16_t* copy, TaskRunner& runner) {
  if (gradient.type != ElementType::bf16 && gradient.type != ElementType::f32)
    return Status(StatusCode::unsupported, "moments at rest: gradients are bfloat16 or binary32");
  const AtRestStep how{form_, key_of(seed, step), rule};
  const AtRestKernels& kernels = best_kernels();
  return for_tiles(0, tiles(), runner, [&](const AtRestTile& tile, std::size_t begin, std::uint8_t* room) {
    std::uint16_t* const copied = copy == nullptr ? nullptr : copy + begin;
    if (gradient.type == ElementType::f32)
      return kernels.step_f32(how, tile, static_cast<const float*>(gradient.values) + begin, weight + begin, copied,
                              room);
    return kernels.step_bf16(how, tile, static_cast<const std::uint16_t*>(gradient.values) + begin, weight + begin,
                             copied, room);
  });
}

Result<std::span<std::uint8_t>> AtRestMoments::beside_room(std::uint64_t stored_bytes) {
  std::uint64_t bytes = 0;
  for (std::size_t t = 0; t < tiles(); ++t) bytes += sizes()[t];
  if (bytes != stored_bytes || bytes > std::uint64_t{blocks()} * kernels::kAtRestRawBytes)
    return Status(StatusCode::corrupt, "moments at rest: {0} bytes lie beside the slots, not {1}",
                  static_cast<std::int64_t>(stored_bytes), static_cast<std::int64_t>(bytes));
  beside_ = {};
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

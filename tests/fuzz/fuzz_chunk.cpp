// A codec's chunk decoder without checksums in front of it: parameters and bytes are the input's. Chunks must decode or
// fail inside their box, never touching the values around it. So must their coarse levels, which are the chunk's points
// where both decode, unless the codec says that they are means.
// Input: codec, element type, kind of bound and how many elements a special one in, three extents, bound, length of
// parameters, parameters, chunk bytes.
#include <quern/codec.h>
#include <quern/references.h>

#include <vector>

#include "libcompress/format/frame/checksum.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;

constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                            DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};
constexpr std::uint64_t kMostExtent = 64;
constexpr std::uint64_t kMostChunkBytes = UINT64_C(1) << 20;
constexpr std::uint8_t kGuard = 0xC3;
constexpr std::size_t kMargin = 64;

/// A box in the middle of a larger array, whose rows and planes are separated by guard bytes.
class GuardedBox {
 public:
  GuardedBox(const std::array<std::uint64_t, 3>& extents, std::size_t width) : width_(width) {
    box_.extents = extents;
    box_.strides[1] = extents[2] + 1;
    box_.strides[0] = box_.strides[1] * extents[1] + 1;
    memory_.assign(2 * kMargin + box_.strides[0] * extents[0] * width, kGuard);
    box_.data = memory_.data() + kMargin;
  }
  const MutableBox3& box() const { return box_; }
  /// Which elements a mask names, dense in C order.
  void set_special(const std::uint8_t* special) {
    box_.special = special;
    box_.special_strides = {box_.extents[1] * box_.extents[2], box_.extents[2]};
  }
  /// True when every byte outside the box is as it was.
  bool guards_hold() const {
    std::vector<bool> inside(memory_.size(), false);
    for (std::uint64_t i = 0; i < box_.extents[0]; ++i)
      for (std::uint64_t j = 0; j < box_.extents[1]; ++j) {
        const std::size_t row = kMargin + (i * box_.strides[0] + j * box_.strides[1]) * width_;
        std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(row), box_.extents[2] * width_, true);
      }
    for (std::size_t at = 0; at < memory_.size(); ++at)
      if (!inside[at] && memory_[at] != kGuard) return false;
    return true;
  }

  /// True when every value is the one that the form takes from another box.
  bool is_part_of(const GuardedBox& other, const LevelForm& form) const {
    for (std::uint64_t i = 0; i < box_.extents[0]; ++i)
      for (std::uint64_t j = 0; j < box_.extents[1]; ++j)
        for (std::uint64_t x = 0; x < box_.extents[2]; ++x)
          if (std::memcmp(at(i, j, x), other.at(form.axes[0].place(i), form.axes[1].place(j), form.axes[2].place(x)),
                          width_) != 0)
            return false;
    return true;
  }

 private:
  const std::uint8_t* at(std::uint64_t i, std::uint64_t j, std::uint64_t x) const {
    return memory_.data() + kMargin + (i * box_.strides[0] + j * box_.strides[1] + x) * width_;
  }

  MutableBox3 box_;
  Vector<std::uint8_t> memory_;
  std::size_t width_;
};

/// Decodes a chunk beside a reference, whose check is put right, since no input would ever find it.
void decode_beside(const ReferenceChunkDecoder& decoder, std::span<const std::uint8_t> bytes, const GuardedBox& target,
                   std::size_t width, std::span<std::uint8_t> scratch) {
  constexpr std::size_t kCheckAt = 1;  // behind the mode
  constexpr std::size_t kCheckBytes = 4;
  const auto& extents = target.box().extents;
  Vector<std::uint8_t> values(extents[0] * extents[1] * extents[2] * width);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * i / 7);
  Vector<std::uint8_t> chunk(bytes.begin(), bytes.end());
  const std::uint64_t check = checksum64(values);
  for (std::size_t i = 0; i < kCheckBytes && kCheckAt + i < chunk.size(); ++i)
    chunk[kCheckAt + i] = static_cast<std::uint8_t>(check >> (8 * i));
  const ConstBox3 reference{values.data(), extents, {extents[1] * extents[2], extents[2]}};
  static_cast<void>(decoder.decode_beside(chunk, reference, target.box(), scratch));
  QUERN_FUZZ_CHECK(target.guards_hold());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const auto codecs = builtin_codecs().all();
  const ArrayCodec& codec = *codecs[feed.byte() % codecs.size()];
  OpenRequest request;
  request.dtype = kTypes[feed.byte() % std::size(kTypes)];
  const BoundKind kinds[] = {BoundKind::lossless, BoundKind::abs, BoundKind::pwrel};
  const std::uint8_t kind = feed.byte();
  request.bound.kind = kinds[kind % 3];
  const std::size_t special_every = kind / 3;  // 0: the segment has no mask
  std::uint64_t extents[3];
  for (std::uint64_t& extent : extents) extent = feed.byte() % (kMostExtent + 1);
  request.bound.value = feed.raw<double>();
  const std::size_t params = feed.byte();
  request.params = feed.take(params);
  request.version = codec.info().version;
  const auto shape = Shape::make(extents);
  QUERN_FUZZ_CHECK(shape.ok());
  request.shape = *shape;
  // The header's reader turns down bounds that make no sense before a codec sees them.
  const ErrorBound as_bound{request.bound.kind, request.bound.value};
  if (request.bound.kind == BoundKind::lossless) request.bound.value = 0;
  if (request.bound.kind != BoundKind::lossless && (!as_bound.check(request.dtype).ok() || as_bound.value == 0))
    return 0;
  if (!codec.supports(request.dtype, request.bound.kind)) return 0;

  const auto decoder = codec.open(request);
  if (!decoder.ok()) return 0;
  const ChunkGrid& grid = (*decoder)->grid();
  const auto whole = Shape::make(grid.extents);
  QUERN_FUZZ_CHECK(whole.ok() && whole->elems() == shape->elems());
  const auto chunk = Shape::make(grid.chunk);
  QUERN_FUZZ_CHECK(chunk.ok());
  const std::size_t width = dtype_bytes(request.dtype);
  if (shape->elems() == 0 || chunk->elems() * width > kMostChunkBytes) return 0;

  // The chunk at the upper end of every axis: full or smaller.
  const auto counts = grid.counts();
  std::array<std::uint64_t, 3> box_extents{};
  for (std::size_t a = 0; a < 3; ++a) box_extents[a] = grid.extents[a] - (counts[a] - 1) * grid.chunk[a];
  GuardedBox target(box_extents, width);
  Vector<std::uint8_t> special;
  if (special_every > 0) {
    special.resize(box_extents[0] * box_extents[1] * box_extents[2]);
    for (std::size_t i = 0; i < special.size(); i += special_every) special[i] = 1;
    target.set_special(special.data());
  }
  const std::size_t scratch_bytes =
      (*decoder)->levels() > 0 ? (*decoder)->level_scratch_bytes() : (*decoder)->scratch_bytes();
  Vector<std::uint8_t> scratch(scratch_bytes + 64);
  const auto misalignment = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
  const auto aligned = std::span(scratch).subspan(misalignment == 0 ? 0 : 64 - misalignment, scratch_bytes);
  const auto bytes = feed.rest();
  const auto own_scratch = aligned.first((*decoder)->scratch_bytes());
  if (const auto* beside = dynamic_cast<const ReferenceChunkDecoder*>(decoder->get())) {
    decode_beside(*beside, bytes, target, width, own_scratch);
    return 0;
  }
  const bool decodes = (*decoder)->decode(bytes, target.box(), own_scratch).ok();
  QUERN_FUZZ_CHECK(target.guards_hold());
  for (unsigned level = 1; level <= (*decoder)->levels(); ++level) {
    const LevelForm form = (*decoder)->level_form(level);
    std::array<std::uint64_t, 3> points{};
    for (std::size_t a = 0; a < 3; ++a) points[a] = form.axes[a].points(box_extents[a]);
    GuardedBox coarse(points, width);
    MutableBox3 as_chunk{nullptr, box_extents, {}};
    as_chunk.special = target.box().special;
    as_chunk.special_strides = target.box().special_strides;
    const bool level_decodes = (*decoder)->decode_level(bytes, as_chunk, level, coarse.box(), aligned).ok();
    QUERN_FUZZ_CHECK(coarse.guards_hold());
    if (decodes && level_decodes && !(*decoder)->levels_are_means()) QUERN_FUZZ_CHECK(coarse.is_part_of(target, form));
  }
  return 0;
}

// ArrayCodec: what a codec for dense arrays offers to the pipeline. Registry: the codecs a program has.
// A codec sees boxes of values; special values, chunk tables, checksums and files are the pipeline's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// What `auto` takes a codec for.
enum class CodecTier : std::uint8_t {
  throughput,  ///< fast both ways; under the goal speed no other lossy codec runs
  archive,     ///< keeps every bit: for lossless requests, and where it is smaller than what a bound gives
  ratio,       ///< small streams, slowly: tried under the goals ratio and psnr
  named,       ///< taken where it is asked for by name alone
};

struct CodecInfo {
  std::uint16_t id = 0;       ///< stored in streams; never reused
  std::uint16_t version = 0;  ///< of the codec's stored form
  const char* name = "";
  const char* summary = "";
  CodecTier tier = CodecTier::throughput;
  bool idempotent = false;  ///< keeps prequantized elements bit for bit (PlanRequest::prequantized)
};

/// `--set key=value` pairs in the order given; a codec refuses keys it does not know.
using Settings = Vector<std::pair<String, String>>;

/// The array as a codec sees it: the same elements in the same order with axes merged to rank 3 (leading extents 1),
/// cut into chunks of equal shape (smaller at the upper ends).
struct ChunkGrid {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> chunk{1, 1, 1};

  constexpr std::array<std::uint64_t, 3> counts() const {
    std::array<std::uint64_t, 3> n{};
    for (std::size_t a = 0; a < 3; ++a) n[a] = (extents[a] + chunk[a] - 1) / chunk[a];
    return n;
  }
};

/// What a codec decided for one array. `params` is stored in the stream; everything a decoder needs is in it or in the
/// header.
struct CodecPlan {
  ChunkGrid grid;
  Vector<std::uint8_t> params;
};

/// A box of values inside a larger array, in host memory. Strides in elements; the last axis is contiguous.
/// `special` says which elements hold special values (not 0 there; one byte an element, with strides of its own), null
/// that none does. The pipeline restores those by itself: a codec may skip them, and sees the same both ways.
struct ConstBox3 {
  const void* data = nullptr;
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 2> strides{0, 0};  ///< of axes 0 and 1
  const std::uint8_t* special = nullptr;
  std::array<std::uint64_t, 2> special_strides{0, 0};

  std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
};
struct MutableBox3 {
  void* data = nullptr;
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 2> strides{0, 0};
  const std::uint8_t* special = nullptr;
  std::array<std::uint64_t, 2> special_strides{0, 0};

  std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

/// What a plan may look at: the first elements of the array in C order (all of them, or 64 MiB worth). It is looked at
/// in boxes, so that special values are sought only where a plan looks.
class PlanSample {
 public:
  virtual ~PlanSample() = default;
  virtual std::uint64_t elems() const = 0;
  /// The box at `place` with special values replaced. `place.data` is ignored: the box begins at element `first` of the
  /// sample, and its last element lies in the sample. Where something was replaced, the values are in `room` (host
  /// memory for place.elems() elements, aligned for them), else in the caller's array. With `special_room`, a byte for
  /// each element, the box then says which were replaced, too. May be called from several threads at once, each with
  /// its own room.
  virtual Result<ConstBox3> look(std::uint64_t first, const ConstBox3& place, void* room,
                                 std::uint8_t* special_room) const = 0;
};

/// An array without special values as a sample. Does not own it.
class PlainSample final : public PlanSample {
 public:
  PlainSample(const void* data, DType dtype, std::uint64_t elems)
      : data_(static_cast<const std::uint8_t*>(data)), element_bytes_(dtype_bytes(dtype)), elems_(elems) {}
  std::uint64_t elems() const override { return elems_; }
  Result<ConstBox3> look(std::uint64_t first, const ConstBox3& place, void*, std::uint8_t*) const override {
    return ConstBox3{data_ + first * element_bytes_, place.extents, place.strides};
  }

 private:
  const std::uint8_t* data_;
  std::size_t element_bytes_;
  std::uint64_t elems_;
};

/// What a plan is made from; the pointers' targets outlive the call.
struct PlanRequest {
  DType dtype = DType::f32;
  Shape shape;
  EnforcedBound bound;
  const PlanSample* sample = nullptr;  ///< never null; without elements if the array has none
  TaskRunner* runner = nullptr;        ///< never null; the plan does not depend on it
  Settings settings;
  std::string goal = "ratio";  ///< CompressOptions::goal, or psnr where a PSNR is the target
  unsigned effort = 6;         ///< CompressOptions::effort; the goal speed stands for 1
  /// Tables of more chunks would make the stream larger than its values if nothing compresses. A codec that can cut
  /// the array in several ways keeps to it, unless the settings leave it no choice.
  std::uint64_t max_chunks = UINT64_MAX;
  /// For what a plan allocates. The plan does not depend on it: where it is too little, the plan fails.
  std::uint64_t memory_limit = UINT64_MAX;
  /// Elements come as values that codes of the quantizer of type and bound stand for
  /// (libcompress/core/quantizer_rules.h) or as ones that it refuses. All must come back bit for bit.
  bool prequantized = false;
};

/// What a decoder knows before it sees a chunk.
struct OpenRequest {
  DType dtype = DType::f32;
  Shape shape;
  EnforcedBound bound;
  std::uint16_t version = 0;
  std::span<const std::uint8_t> params;
};

/// The places that a coarse level keeps along one axis of the grid. The axis may stand for two, the faster of extent
/// `inner`; the slower one is then walked in whole rows of it.
struct LevelAxis {
  static constexpr std::uint64_t kUncut = UINT64_MAX;

  std::uint64_t inner = 1;  ///< 1: one axis, with outer_step
  std::uint64_t outer_step = 1;
  std::uint64_t inner_step = 1;
  std::uint64_t chunk = kUncut;  ///< places are counted anew at its multiples; a multiple of `inner`

  constexpr std::uint64_t inner_points() const { return (inner - 1) / inner_step + 1; }
  /// Places kept of an extent (a multiple of `inner`).
  constexpr std::uint64_t points(std::uint64_t extent) const {
    return chunk == kUncut ? chunk_points(extent) : extent / chunk * chunk_points(chunk) + chunk_points(extent % chunk);
  }
  /// The i-th of them.
  constexpr std::uint64_t place(std::uint64_t i) const {
    if (chunk == kUncut) return chunk_place(i);
    return i / chunk_points(chunk) * chunk + chunk_place(i % chunk_points(chunk));
  }

 private:
  constexpr std::uint64_t chunk_points(std::uint64_t extent) const {
    return extent == 0 ? 0 : ((extent / inner - 1) / outer_step + 1) * inner_points();
  }
  constexpr std::uint64_t chunk_place(std::uint64_t i) const {
    return i / inner_points() * outer_step * inner + i % inner_points() * inner_step;
  }
};

/// An array at a coarse level: of each axis all places, or those whose numbers (in the array or in their chunk) are
/// multiples of 2^level; there the values of the array, or means of those around. Chunks lie so that their points side
/// by side are the level's.
struct LevelForm {
  Shape shape;                    ///< of the array of these points
  std::array<LevelAxis, 3> axes;  ///< of the grid
};

/// Encodes the chunks of one array. Made once an array; `encode` may be called from several threads at once,
/// each call with its own scratch.
class ChunkEncoder : public Allocated {
 public:
  virtual ~ChunkEncoder() = default;
  virtual const CodecPlan& plan() const = 0;
  /// Upper limit of what `encode` writes for a full chunk.
  virtual std::size_t max_chunk_bytes() const = 0;
  /// Bytes of 64-byte aligned scratch that `encode` needs.
  virtual std::size_t scratch_bytes() const = 0;
  /// Writes the chunk's bytes to the start of `out` (at least max_chunk_bytes) and returns their count, at least 1.
  virtual Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                                     std::span<std::uint8_t> scratch) const = 0;
  /// Whether the settings ask for chunks to be held against their elements as they are stored, so that a hardware fault
  /// (a bit that flipped in a register or in memory) cannot go into a stream unseen.
  virtual bool checks_faults() const { return false; }
  /// Decodes a chunk that `encode` made of `in`, and compares: the first part of it, as the codec counts them, that
  /// does not hold what `encode` promises. Scratch as for `encode`.
  virtual std::optional<std::uint64_t> find_fault(const ConstBox3& /*in*/, std::span<const std::uint8_t> /*chunk*/,
                                                  std::span<std::uint8_t> /*scratch*/) const {
    return {};
  }
  /// `encode` by instructions that it does not use, where there are others: the same bytes.
  virtual Result<std::size_t> encode_otherwise(const ConstBox3& in, std::span<std::uint8_t> out,
                                               std::span<std::uint8_t> scratch) const {
    return encode(in, out, scratch);
  }
  /// Coarse levels that chunks can be decoded to without all their bytes; not those that are means.
  virtual unsigned levels() const { return 0; }
  /// Where a chunk of these extents that `encode` has made can be cut: how many of its first bytes hold levels n and
  /// coarser, n - 1 and coarser, ..., 1 and coarser. None when it has to be whole.
  virtual Result<Vector<std::uint64_t>> level_cuts(std::span<const std::uint8_t> /*chunk*/,
                                                   const std::array<std::uint64_t, 3>& /*extents*/) const {
    return Vector<std::uint64_t>();
  }
  /// What the codec's kernels on a device are told of the array, in a form that they know; empty when there are none.
  virtual std::span<const std::uint8_t> device_state() const { return {}; }
};

/// Decodes chunks. Input bytes are hostile: `decode` returns data or a Status and never reads or writes out of bounds.
class ChunkDecoder : public Allocated {
 public:
  virtual ~ChunkDecoder() = default;
  /// The grid, checked against the header's shape: extents multiply to the shape's elements, chunk within limits.
  virtual const ChunkGrid& grid() const = 0;
  virtual std::size_t scratch_bytes() const = 0;
  /// As ChunkEncoder::device_state().
  virtual std::span<const std::uint8_t> device_state() const { return {}; }
  virtual Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                        std::span<std::uint8_t> scratch) const = 0;
  /// Whether find_fault and decode_otherwise do what they say.
  virtual bool can_find_faults() const { return false; }
  /// Decodes again what `decode` has made of `in`, and compares: the first part of the chunk, as the codec counts them,
  /// that differs. Scratch as for `decode`.
  virtual std::optional<std::uint64_t> find_fault(std::span<const std::uint8_t> /*in*/, const ConstBox3& /*out*/,
                                                  std::span<std::uint8_t> /*scratch*/) const {
    return {};
  }
  /// `decode` by instructions that it does not use, where there are others: the same values.
  virtual Status decode_otherwise(std::span<const std::uint8_t> in, const MutableBox3& out,
                                  std::span<std::uint8_t> scratch) const {
    return decode(in, out, scratch);
  }
  /// Coarse levels that there are beside the array itself, level 0. 0: the codec, or its layout for this array, has
  /// none.
  virtual unsigned levels() const { return 0; }
  /// True when a level's values may be local means of the array's, which need chunks whole. Else they are the array's,
  /// bit for bit, and segments may tell with which beginnings of chunks a level does.
  virtual bool levels_are_means() const { return false; }
  /// The array at a level, from 1 to levels().
  virtual LevelForm level_form(unsigned /*level*/) const { return {}; }
  /// Bytes of scratch that decode_level needs.
  virtual std::size_t level_scratch_bytes() const { return scratch_bytes(); }
  /// Decodes a chunk's points of such a level to `out`, whose extents are theirs. `in` is the chunk, or the beginning
  /// of it that holds the level. `chunk` says the chunk's extents and special elements and has no data.
  virtual Status decode_level(std::span<const std::uint8_t> /*in*/, const MutableBox3& /*chunk*/, unsigned /*level*/,
                              const MutableBox3& /*out*/, std::span<std::uint8_t> /*scratch*/) const {
    return Status(StatusCode::unsupported, "chunks of this codec have no coarse levels");
  }
};

class ArrayCodec {
 public:
  virtual ~ArrayCodec() = default;
  virtual const CodecInfo& info() const = 0;
  /// True when this codec takes arrays of `dtype` under that kind of enforced bound, whatever its value.
  virtual bool supports(DType dtype, BoundKind kind) const = 0;
  /// Alternatives of coding that differ in how large errors are under one bound, each as what it adds to the settings:
  /// where quality decides, a search measures them all. None where the plan's choice is as good, or the settings leave
  /// none.
  virtual Vector<Settings> alternatives(const Settings& /*settings*/, const Shape& /*shape*/) const { return {}; }
  virtual Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const = 0;
  /// Validates params; fails with `corrupt` or `unsupported_version`.
  virtual Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const = 0;
};

class QualityEstimator;

/// Immutable list of codecs; owns neither them nor the list.
class Registry {
 public:
  /// With an estimator, searches for a PSNR or a ratio begin where it says; it outlives the registry.
  explicit constexpr Registry(std::span<const ArrayCodec* const> codecs, const QualityEstimator* estimator = nullptr)
      : codecs_(codecs), estimator_(estimator) {}
  std::span<const ArrayCodec* const> all() const { return codecs_; }
  /// Null: none.
  const QualityEstimator* estimator() const { return estimator_; }
  const ArrayCodec* by_name(std::string_view name) const;
  const ArrayCodec* by_id(std::uint16_t id) const;

 private:
  std::span<const ArrayCodec* const> codecs_;
  const QualityEstimator* estimator_;
};

/// Every codec of this build; built on first use, immutable.
const Registry& builtin_codecs();

}  // namespace quern

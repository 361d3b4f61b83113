// The pipeline's public face: arrays to streams and back.
//   one shot   compress(), decompress(), decompress_region()
//   streaming  Encoder (push elements in C order), Decoder (pull elements in C order)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern {

/// Smallest and largest valid value, as binary64 (exact for every type but 64-bit integers, which are rounded
/// outwards).
struct ValueRange {
  double min = 0.0;
  double max = 0.0;
};

struct CompressOptions {
  ErrorBound bound;
  std::string codec = "auto";
  /// ratio: the smallest stream; psnr: the most quality for its size; speed: only codecs of the tier throughput; a
  /// codec that is asked for by name chooses what is fast, where it has a choice.
  std::string goal = "ratio";
  /// From 1 to 9: how much time a codec may spend on finding what makes a small stream. 9: also every alternative of a
  /// codec encodes the whole array, and the smallest stream is kept (compress() under the goal ratio; an Encoder, which does
  /// not see the whole array, takes 9 for 8). The goal speed stands for 1.
  unsigned effort = 6;
  /// Declared fill values as element bit patterns (in the low bits); compared by value: -0 equals 0.
  Vector<std::uint64_t> fill_bits;
  /// Range for `rel` and `psnr` when the caller knows it; else it is measured over valid values.
  std::optional<ValueRange> range;
  /// Look for repeated values whose masking pays. NaN, Inf and declared fill values are always masked.
  bool find_repeated = true;
  /// Values that were decoded from such a stream come back bit for bit when they are compressed again under the same
  /// options, in whatever mixture with others: each element is prequantized, and codecs keep what that gives. Takes
  /// bounds that do not depend on the data: abs, pwrel, lossless, and rel with a given range.
  bool idempotent = false;
  Settings settings;
  /// Free bytes kept in the stream for the tool that reads it (JSON by convention); at most 1 MiB.
  Vector<std::uint8_t> metadata;
};

/// Why a codec wrote the stream.
enum class CodecReason : std::uint8_t {
  asked_for,      ///< by name
  only_one,       ///< no other takes this type under this bound
  exact,          ///< every bit had to come back
  fastest,        ///< the goal is speed
  smallest,       ///< of those tried
  least_bound,    ///< of those tried, for the ratio asked for
  best_quality,   ///< of those tried: PSNR, less 6.02 dB for each bit a value where sizes differ
  expected_best,  ///< others are expected to do worse than it did, and were not tried
};
/// "asked for", "the smallest of those tried", ...
const char* codec_reason_text(CodecReason reason);

/// What a codec made of the array, or of its first part, when several were tried.
struct CodecTrial {
  std::string codec;
  std::uint64_t bytes = 0;
  bool at_least = false;   ///< it was given up there, being longer than another
  bool on_device = false;  ///< the device of Execution encoded the segments
  EnforcedBound enforced;
  std::optional<double> psnr_db;  ///< when it was measured
};

struct CompressReport {
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint64_t masked_elems = 0;
  std::uint64_t raw_chunks = 0;
  std::uint64_t chunks = 0;
  EnforcedBound enforced;
  std::optional<ValueRange> range;  ///< when it was needed or given
  std::optional<double> psnr_db;    ///< when it was measured (bound kind psnr, goal psnr); infinity when exact
  /// Kind ratio: the largest ratio below the one asked for that was met with; with that of the stream it brackets the
  /// target where no bound gives what lies between.
  std::optional<double> ratio_below;
  std::string codec;
  std::uint16_t codec_id = 0;
  CodecReason reason = CodecReason::asked_for;
  /// How often the array was encoded, given up or not, and how often a part of it that stands for it (PSNR and ratio).
  std::uint32_t encodings = 0;
  std::uint32_t sample_encodings = 0;
  Vector<CodecTrial> tried;  ///< in order; empty when one codec alone came into question
  bool on_device = false;    ///< the device of Execution encoded the segments
};

/// What the header says. Filled by inspect() and Decoder.
struct StreamInfo {
  std::uint8_t format_major = 0;
  std::uint8_t format_minor = 0;
  DType dtype = DType::f32;
  Shape shape;
  ErrorBound requested;
  EnforcedBound enforced;
  std::optional<ValueRange> range;
  std::uint16_t codec_id = 0;
  std::uint16_t codec_version = 0;
  std::string codec_name;  ///< "unknown" when the registry does not have it
  ChunkGrid grid;
  std::uint64_t chunks = 0;
  std::uint64_t segments = 0;
  Vector<std::uint64_t> fill_bits;
  Vector<std::uint8_t> metadata;
  std::uint64_t header_bytes = 0;
  /// Shapes of the coarse levels 1, 2, ... that can be decoded; empty when the stream has none.
  Vector<Shape> levels;
  /// True when they may have local means of the array's values (around the places that DecompressOptions::level names)
  /// and take the whole stream to read; false when they have the values themselves.
  bool levels_are_means = false;
};

/// One part of a stream that could not be decoded; elements as a box of the array the codec sees (StreamInfo::grid).
struct Hole {
  std::uint64_t segment = 0;
  std::uint64_t chunk = 0;  ///< within the stream
  std::array<std::uint64_t, 3> begin{};
  std::array<std::uint64_t, 3> extents{};
  Status why;
};

struct DecompressOptions {
  /// Decode what can be decoded; list the rest in `holes`, filled with the first declared fill value or NaN (integers:
  /// 0).
  bool keep_going = false;
  /// Hold what was decoded against the stream once more, chunk by chunk: a hardware fault (a bit that flipped in a
  /// register or in memory) becomes `hardware_fault`, no value. The work is done on the host; for arrays in device memory
  /// see decompress_device_array(). Fails with `unsupported` for codecs that cannot (`lorenzo` can), and for coarse
  /// levels.
  bool check_faults = false;
  /// Where the stream begins in a source that can seek; the decoder goes there first. Without it the stream begins at
  /// the source's current position.
  std::optional<std::uint64_t> offset;
  /// The caller will read on after this stream: leave the source right after it, without looking at what follows.
  /// Otherwise what follows must be the end or another stream.
  bool more_streams = false;
  /// Not 0: the array at a coarse level, of every axis all places or those whose numbers are multiples of 2^level
  /// (StreamInfo::levels says the shapes). Values are those of the full array, and of a source that can seek, only the
  /// bytes that the level needs are read; unless StreamInfo::levels_are_means. Fails with `unsupported` where the
  /// stream has no such level.
  unsigned level = 0;
};

struct DecompressReport {
  std::uint64_t input_bytes = 0;  ///< of the stream, as far as it was gone through in sequence
  std::uint64_t bytes_read = 0;   ///< from the source: fewer at a coarse level, and for regions
  Vector<Hole> holes;
  bool on_device = false;  ///< the device of Execution decoded the segments
};

/// Streaming compression: create, push every element once in C order, finish.
/// Kinds psnr and ratio, and rel without a given range, need the whole array: use compress(). Under codec auto, arrays
/// above 64 MiB get the codec that is best on their first 16 MiB; for smaller ones the bytes are those of compress().
class Encoder : public Allocated {
 public:
  static Result<std::unique_ptr<Encoder>> create(DType dtype, const Shape& shape, const CompressOptions& options,
                                                 const Registry& registry, const Execution& execution, ByteSink& sink);
  virtual ~Encoder() = default;
  /// Any number of whole elements.
  virtual Status push(std::span<const std::uint8_t> bytes) = 0;
  /// Fails when fewer elements were pushed than the shape has.
  virtual Result<CompressReport> finish() = 0;
};

/// Streaming and random-access decompression of one stream.
class Decoder : public Allocated {
 public:
  /// Reads and checks the header. `source` must outlive the decoder. A source that is at its end fails with `truncated`
  /// and Status::first() == 0: that is how a reader of several streams finds the last.
  static Result<std::unique_ptr<Decoder>> open(ByteSource& source, const Registry& registry, const Execution& execution,
                                               const DecompressOptions& options = {});
  virtual ~Decoder() = default;
  virtual const StreamInfo& info() const = 0;
  /// Shape of what is decoded: info().shape, or that of DecompressOptions::level.
  virtual const Shape& shape() const = 0;
  /// Next elements in C order; `out` takes whole elements. Returns bytes written, 0 at the end of the array.
  virtual Result<std::size_t> pull(std::span<std::uint8_t> out) = 0;
  /// Decodes just the segments that meet the box, which lies within shape(). Needs a source that can seek.
  virtual Status region(const Box& box, const MutableArrayView& out) = 0;
  virtual const DecompressReport& report() const = 0;
};

/// Compresses an array in memory. Memory used: input is not copied except segments that hold special values. Under
/// codec auto with the goal ratio, all codecs that take the array are tried and the smallest stream is written; it is
/// held in memory meanwhile if the limit allows, else made twice.
Result<CompressReport> compress(const ArrayView& array, const CompressOptions& options, const Registry& registry,
                                const Execution& execution, ByteSink& sink);
/// Decodes a whole stream into `out`, whose dtype must be the stream's and whose shape that, or the level's.
Result<DecompressReport> decompress(ByteSource& source, const MutableArrayView& out, const Registry& registry,
                                    const Execution& execution, const DecompressOptions& options = {});
/// Header only; safe on any bytes.
Result<StreamInfo> inspect(ByteSource& source, const Registry& registry);

/// One of the streams that stand one after another in a file.
struct StreamSpan {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// All streams of a source that can seek, in order, found from their trailers. Reads headers and trailers only; checks
/// the headers. O(streams).
Result<Vector<StreamSpan>> list_streams(ByteSource& source);

/// A size no stream of such an array exceeds: raw + 256 + raw/1000 + metadata.
Result<std::uint64_t> max_stream_bytes(DType dtype, const Shape& shape, std::size_t metadata_bytes = 0);

/// The bound a stream of this array is written under: rel is worked out from the exact range, and rounded down. Kinds
/// psnr and ratio, which take a search, come back as lossless.
EnforcedBound enforced_bound(const ArrayView& array, const ErrorBound& bound, std::span<const std::uint64_t> fill_bits,
                             const Execution& execution);

/// Exact range over valid values: not NaN, not Inf, not a declared fill value. Nothing when no value is valid.
std::optional<ValueRange> value_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      const Execution& execution);
/// The same over values within `valid`, which may be infinite. Integers of 64 bits are rounded inwards: the range is
/// never too wide.
std::optional<ValueRange> value_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      const ValueRange& valid, const Execution& execution);
/// The bound of a stream written under `bound` and this range, for every kind but psnr and ratio.
EnforcedBound enforced_bound(const ErrorBound& bound, const ValueRange& range);

}  // namespace quern

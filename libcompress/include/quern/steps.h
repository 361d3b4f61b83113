// Time steps: streams of arrays that are predicted from the one before.
//   writing  StepEncoder, a session: each step alone or predicted, whichever is smaller
//   reading  open_step_chain (from the key step on), open_step_beside (with the values of the step before)
// Streams are those of compress.h, one after another in a file. A key step stands alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <quern/array.h>
#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/references.h>
#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern {

/// Steps from a key step to the next, itself counted, unless something else is asked for.
inline constexpr unsigned kDefaultKeyEvery = 16;
inline constexpr unsigned kMostKeyEvery = 256;

/// The hash that streams name an array by: ReferenceId::hash. O(bytes).
std::uint64_t hash_values(const ArrayView& array);

/// What a stream was predicted from; nothing of one that stands alone. Reads the header only; safe on any bytes.
Result<std::optional<ReferenceId>> inspect_reference(ByteSource& source, const Registry& registry);

/// A decoder of a stream that was predicted from `values`: of the same type and shape, in host memory, unchanged while
/// the decoder lives. Fails with `reference_missing` where they are others, but under keep_going: then chunks that were
/// predicted from others become holes. Streams that stand alone do not look at them. O(bytes of `values`).
Result<std::unique_ptr<Decoder>> open_step_beside(ByteSource& source, const ArrayView& values, const Registry& registry,
                                                  const Execution& execution, const DecompressOptions& options = {});

/// A decoder of the last of these streams, which follow each other: the first is a key step, each further one was
/// predicted from the one before. Values are found chunk by chunk, so that a region costs its chunks once a step. Every
/// step of the chain takes memory for the chunks in flight at the same time; where that passes the limit, decoding fails
/// with `memory_limit`, and one step after the other by open_step_beside takes the values of two steps instead. Each source is one stream's, can seek, and outlives the decoder. Fails with `reference_missing`
/// where a step is not what the next one was predicted from, as far as that is decoded.
Result<std::unique_ptr<Decoder>> open_step_chain(std::span<ByteSource* const> steps, const Registry& registry,
                                                 const Execution& execution, const DecompressOptions& options = {});

struct StepReport {
  CompressReport compressed;             ///< of the stream that was written
  std::optional<ReferenceId> reference;  ///< what it was predicted from
  std::uint64_t alone_bytes = 0;         ///< of the step by itself
};

/// A session: arrays of one type and shape in order of time. Keeps the decoded values of the last step, and its stream;
/// encoding takes memory for two more streams. All of these come on top of Execution::memory_limit. Bytes depend on the steps and options since the last key step alone.
class StepEncoder : public Allocated {
 public:
  /// A key step at least every `key_every` steps, from 1 (all) to kMostKeyEvery. The registry outlives the session.
  static Result<std::unique_ptr<StepEncoder>> create(const Registry& registry, unsigned key_every = kDefaultKeyEvery);
  virtual ~StepEncoder() = default;

  /// Looks codecs up in another registry from now on, which outlives the calls up to the next use(). Models that it lacks
  /// make a step that needs them fail.
  virtual void use(const Registry& registry) = 0;

  /// Goes on after a stream that is there already. `values`: what it decodes to; copied.
  virtual Status resume(std::span<const std::uint8_t> stream, const ArrayView& values) = 0;

  /// The next step is a key step.
  virtual void restart() = 0;
  /// What the last step was predicted from, until the next call; without data where it stands alone.
  virtual ArrayView before() const = 0;

  /// Writes one step: predicted from the last one where that makes it smaller by more than one part in 64, else alone.
  /// Alone are also: every step that `key_every` asks for, steps under bounds that are not absolute in the end or that
  /// are found by search (psnr, ratio), lossless and idempotent ones, and those after a step of another type, shape or
  /// codec that predicts nothing. After a failure the next step is a key step.
  virtual Result<StepReport> encode(const ArrayView& step, const CompressOptions& options, const Execution& execution,
                                    ByteSink& sink) = 0;
};

}  // namespace quern

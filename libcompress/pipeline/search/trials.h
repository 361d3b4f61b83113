// Encodes one array in memory as often as a choice or a search wants, under one codec and bound at a time.
#pragma once

#include <cstdint>

#include <quern/compress.h>
#include <quern/execution.h>

#include "libcompress/core/buffer.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/encode/candidates.h"
#include "libcompress/pipeline/pass_progress.h"

namespace quern {

/// What came of one encoding.
struct Trial {
  CompressReport report;       ///< output_bytes counts also what was not kept
  Vector<std::uint8_t> bytes;  ///< the stream, when `kept`
  bool kept = false;
  bool stopped = false;  ///< at `Limits::stop`: the stream would have been longer
  double mse = 0;        ///< set by measure(), over valid values
  double psnr_db = 0;    ///< set by measure(); infinity when exact
  Candidate candidate;
};

class Trials {
 public:
  /// All outlive the object. Counts what callers hold() against the execution's memory limit.
  Trials(const ArrayView& array, const CompressOptions& options, const Registry& registry, const Execution& execution,
         TaskRunner& runner)
      : array_(array),
        options_(options),
        registry_(registry),
        execution_(execution),
        runner_(runner),
        memory_left_(execution.memory_limit),
        passes_(execution.progress, array.elems()) {}

  const ArrayView& array() const { return array_; }
  const CompressOptions& options() const { return options_; }
  const Registry& registry() const { return registry_; }
  const Execution& execution() const { return execution_; }
  TaskRunner& runner() const { return runner_; }

  /// Takes bytes from what encoders may use; false, taking nothing, when there are not so many.
  bool hold(std::uint64_t bytes) {
    if (bytes > memory_left_) return false;
    memory_left_ -= bytes;
    return true;
  }
  void release(std::uint64_t bytes) { memory_left_ += bytes; }
  std::uint64_t memory_left() const { return memory_left_; }

  /// Progress over all that is tried: who calls run() or measure() begins a pass before.
  PassProgress& passes() { return passes_; }

  /// Writes the stream to `sink`: the last pass.
  Result<CompressReport> encode(const Candidate& candidate, const ResolvedBound& bound, ByteSink& sink);

  struct Limits {
    std::uint64_t keep = 0;           ///< streams of at most that many bytes are kept
    std::uint64_t stop = UINT64_MAX;  ///< longer streams are given up
  };
  Result<Trial> run(const Candidate& candidate, const ResolvedBound& bound, const Limits& limits);

  /// Decodes a kept stream into `decoded` (as large as the array) and sets mse and psnr_db; `width` is the range's.
  Status measure(Trial& trial, double width, AlignedBuffer& decoded);

  /// Encodings so far: of this array, and of parts of it that stood for it.
  std::uint32_t encodings() const { return encodings_; }
  std::uint32_t sample_encodings() const { return sample_encodings_; }
  void add_sample_encodings(std::uint32_t more) { sample_encodings_ += more; }

  /// Says that all is done; `cancelled` if the caller does not want it any more.
  Status report_done() const;

 private:
  Result<CompressReport> encode(const Candidate& candidate, const ResolvedBound& bound,
                                const ProgressCallback& progress, ByteSink& sink);

  const ArrayView& array_;
  const CompressOptions& options_;
  const Registry& registry_;
  const Execution& execution_;
  TaskRunner& runner_;
  std::uint64_t memory_left_;
  PassProgress passes_;
  std::uint32_t encodings_ = 0;
  std::uint32_t sample_encodings_ = 0;
};

}  // namespace quern

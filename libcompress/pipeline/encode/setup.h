// Everything that is decided before the first byte of a stream: the codec's plan, the header. Also the sizes that
// promise 5 (never larger than raw + 256 + raw/1000) rests on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/parts.h>
#include <quern/references.h>

#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/layout.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/encode/candidates.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern {

/// What a stream is predicted from.
struct StepReference {
  ArrayView values;  ///< in host memory
  ReferenceId id;
  std::span<const std::uint8_t> params;  ///< of the codec, in the stream that holds them
};

/// What a setup is made from; the pointers' targets outlive it.
struct SetupRequest {
  DType dtype = DType::f32;
  Shape shape;
  const CompressOptions* options = nullptr;
  Candidate candidate;
  ResolvedBound bound;
  ArrayView sample;  ///< first elements of the array, as the user gave them
  std::uint64_t memory_limit = 0;
  Device* device = nullptr;                  ///< null: the runner's threads
  const StepReference* reference = nullptr;  ///< the candidate's codec is a ReferenceCodec where there is one
};

struct StreamSetup {
  Header header;
  Vector<std::uint8_t> header_bytes;
  std::unique_ptr<ChunkEncoder> encoder;  ///< null: every chunk is stored raw
  SegmentLayout layout;
  std::string codec_name;
  bool all_ordinary = false;  ///< as in ExactRange
  mask::MaskViews mask_views;
  ArrayView reference;                            ///< without data: chunks stand alone
  const PartedChunkEncoder* parted = nullptr;     ///< the encoder, where chunks have different parts
  const ReferenceChunkEncoder* beside = nullptr;  ///< the encoder, where there is a reference
  /// Bytes by which the worst case breaks promise 5. Not 0: before the first byte is written, it must be known that the
  /// stream stays that far below its worst case.
  std::uint64_t must_save = 0;
};

/// Elements of the sample for an array: the first 64 MiB.
std::uint64_t sample_elems(DType dtype, const Shape& shape);

/// Fails on options that make no sense, before anything is read; without a registry, whatever the codec's name.
Status check_options(DType dtype, const CompressOptions& options);
Status check_options(DType dtype, const CompressOptions& options, const Registry& registry);

/// Lets the candidate plan with at most `max_chunks`.
Result<StreamSetup> make_setup(const SetupRequest& request, TaskRunner& runner, std::uint64_t max_chunks = UINT64_MAX);

/// A setup in the place of one that must save bytes and does not: fewer chunks, or every chunk raw. What it must save
/// can be seen from the outcome of its one segment.
Result<StreamSetup> make_cautious_setup(const SetupRequest& request, const StreamSetup& refused, TaskRunner& runner);

/// A setup that stores every chunk raw.
Result<StreamSetup> make_stored_setup(const SetupRequest& request);

/// Upper limit of the bytes of a stream of that layout, of which the header takes `header_bytes`.
std::uint64_t worst_stream_bytes(const SegmentLayout& layout, std::uint64_t header_bytes);

}  // namespace quern

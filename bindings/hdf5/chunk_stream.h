// One chunk to a quern stream and back: what the filter and the direct path share, so that both write the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <quern/quern.h>

#include "bindings/hdf5/models.h"
#include "bindings/hdf5/settings.h"

namespace quern::hdf5 {

struct ContextDeleter {
  void operator()(quern_context* context) const { quern_context_destroy(context); }
};
struct ParamsDeleter {
  void operator()(quern_params* params) const { quern_params_destroy(params); }
};
using Context = std::unique_ptr<quern_context, ContextDeleter>;
using Params = std::unique_ptr<quern_params, ParamsDeleter>;

/// With the models of QUERN_MODELS (models.h); `models`, unless NULL, gets those to encode with. `memory_limit` in bytes,
/// 0: none.
Context make_context(const quern_context_desc& desc, std::uint64_t memory_limit, EncodingModels* models = nullptr);
Context make_context(std::uint32_t threads, std::uint64_t memory_limit);

/// Throws Problem(request) for settings that are wrong whatever the dataset.
void check_request(const Request& request);

/// Compresses chunks of one layout. Not for two threads at once.
class ChunkEncoder {
 public:
  enum class Use {
    once,   ///< chunks are written whole, a single time
    again,  ///< what comes may have been decoded from the same chunk
  };
  /// Throws Problem(request) for settings that are wrong whatever the data are.
  ChunkEncoder(const Request& request, const ChunkLayout& layout, const quern_context_desc& desc, Use use);

  /// Throws Problem(dataset) when this codec or bound does not serve this element type, or when a chunk is too large.
  void check();
  /// Room that always suffices for a chunk's stream.
  std::uint64_t max_stream_bytes() const;
  /// `elements`: the whole chunk, padding included, in the machine's byte order. Returns the stream's size.
  std::uint64_t encode(const void* elements, void* stream, std::uint64_t capacity);

 private:
  std::uint64_t compress(const quern_params& params, const void* elements, void* stream, std::uint64_t capacity);
  /// Whether the stream decodes to these very elements.
  bool reproduces(const void* stream, std::uint64_t size, const void* elements);

  ChunkLayout layout_;
  bool exact_;             ///< whatever comes has to come back bit for bit
  EncodingModels models_;  ///< of which the codec takes its own
  Context context_;
  Params params_;
  Params idempotent_;  ///< where exact_: other ways to try, and room for them
  Params lossless_;
  std::vector<std::uint8_t> decoded_;
  std::vector<std::uint8_t> other_;
};

/// What the stream in a chunk says of itself, without an allocation; no fill value. Throws Problem(chunk).
ChunkLayout inspect_chunk(const void* stream, std::uint64_t bytes);
/// Throws Problem(chunk) when the filter's settings say otherwise than the stream; settings that are not known agree.
void check_agreement(const ChunkLayout& stream, const ChunkLayout& settings);
/// Decodes a stream of layout `layout` into `elements` (layout.bytes() bytes, the machine's byte order).
void decode_chunk(quern_context& context, const void* stream, std::uint64_t bytes, const ChunkLayout& layout,
                  void* elements);
/// Memory a decoder of such chunks may take besides its output.
std::uint64_t decoder_memory(const ChunkLayout& layout);

}  // namespace quern::hdf5

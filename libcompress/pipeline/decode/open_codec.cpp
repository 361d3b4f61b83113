#include "libcompress/pipeline/decode/open_codec.h"

#include <cstdint>
#include <new>

#include <quern/codec_features.h>
#include <quern/parts.h>
#include <quern/references.h>

#include "libcompress/format/frame/header_frame.h"

namespace quern {
namespace {

bool is_same_grid(const ChunkGrid& a, const ChunkGrid& b) { return a.extents == b.extents && a.chunk == b.chunk; }

/// What the header says of its codec's parameters by feature bits.
Status check_features(const Header& header, const ChunkDecoder* codec) {
  const auto says = [&](std::uint64_t bit) { return (header.must_understand & bit) != 0; };
  if ((dynamic_cast<const ReferenceChunkDecoder*>(codec) != nullptr) != says(kReferences))
    return Status(StatusCode::corrupt, "header and codec do not agree whether the stream was predicted from another");
  const bool has_parts = dynamic_cast<const PartedChunkDecoder*>(codec) != nullptr;
  if (has_parts != says(kParts))
    return Status(StatusCode::corrupt, "header and codec do not agree whether the array is coded in parts");
  if (has_parts && says(kLevelTables))
    return Status(StatusCode::corrupt, "the stream has tables of levels for chunks of several parts");
  const auto* const forms = dynamic_cast<const CodecFeatures*>(codec);
  if ((header.must_understand & kCodecFeatures) != (forms == nullptr ? 0 : forms->features()))
    return Status(StatusCode::corrupt, "header and codec do not agree which forms chunks may have");
  return {};
}

}  // namespace

Result<std::unique_ptr<ChunkDecoder>> open_codec(const Header& header, const Registry& registry) {
  std::unique_ptr<ChunkDecoder> decoder;
  if (header.codec_id == kStoredCodecId) {
    if (header.codec_version != 1)
      return Status(StatusCode::unsupported_version, "stored chunks of version {0} are not known",
                    header.codec_version);
    if (!header.params.empty()) return Status(StatusCode::corrupt, "stored chunks have no parameters");
  } else {
    const ArrayCodec* const codec = registry.by_id(header.codec_id);
    if (codec == nullptr)
      return Status(StatusCode::unknown_codec, "the stream was written by codec {0}, which this build does not have",
                    header.codec_id);
    QUERN_ASSIGN_OR_RETURN(
        decoder, codec->open({header.dtype, header.shape, header.enforced, header.codec_version, header.params}));
    if (!is_same_grid(decoder->grid(), header.grid))
      return Status(StatusCode::corrupt, "the header's chunk grid is not the one its codec uses");
  }
  QUERN_RETURN_IF_ERROR(check_features(header, decoder.get()));
  return decoder;
}

Result<Vector<ArrayPart>> inspect_parts(ByteSource& source, const Registry& registry) {
  try {
    QUERN_ASSIGN_OR_RETURN(const ReadHeader read, read_header(source));
    if ((read.header.must_understand & kParts) == 0) return Vector<ArrayPart>();
    QUERN_ASSIGN_OR_RETURN(const auto decoder, open_codec(read.header, registry));
    return dynamic_cast<const PartedChunkDecoder&>(*decoder).parts();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

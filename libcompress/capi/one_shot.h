// One compression and one decompression, for the entry points that share them, and what else calls on one array share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <quern/compress.h>
#include <quern/quern.h>

struct quern_context;

namespace quern::capi {

Status compress_array(quern_context& context, const CompressOptions& options, const quern_array* array, void* stream,
                      std::uint64_t capacity, std::uint64_t* size, quern_report* report);
/// `options` says which level (0: the array itself), and whether hardware faults are looked for.
Status decompress_array(quern_context& context, const void* stream, std::uint64_t size, quern_array* array,
                        const DecompressOptions& options = {});

quern_report make_report(const CompressReport& report);
/// The context's execution with what packing took away from its memory.
Execution remaining(const Execution& execution, std::uint64_t taken);

/// Opens the decoder of a box.
using OpenDecoder = std::function<Result<std::unique_ptr<Decoder>>(const Execution&)>;

/// The box [begin, end) of a decoder, or of the stream in `source`.
Status decompress_box(quern_context& context, const OpenDecoder& open, const std::uint64_t* begin,
                      const std::uint64_t* end, quern_array* array);
Status decompress_box(quern_context& context, ByteSource& source, const std::uint64_t* begin, const std::uint64_t* end,
                      quern_array* array);
/// The same of the stream in `source`, which ends where the source does, into host memory or by way of it.
Status decompress_whole(quern_context& context, ByteSource& source, quern_array* array,
                        const DecompressOptions& options);

/// All values of a decoder whose stream has `size` bytes, into host memory; refuses another type or shape.
Status pull_whole(Decoder& decoder, std::uint64_t size, const MutableArrayView& out);

/// A stream as the caller gives it.
inline std::span<const std::uint8_t> stream_bytes(const void* stream, std::uint64_t size) {
  return {static_cast<const std::uint8_t*>(stream), static_cast<std::size_t>(size)};
}

/// Whether arrays in device memory are best looked at again by way of the host: what has no kernels is done there, and
/// what is wrong is named there.
inline bool host_knows_more(const Status& status) {
  return !status.ok() && status.code() != StatusCode::destination_too_small &&
         status.code() != StatusCode::device_unavailable;
}

}  // namespace quern::capi

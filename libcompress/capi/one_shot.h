// One compression and one decompression, for the entry points that share them.
#pragma once

#include <cstdint>

#include <quern/compress.h>
#include <quern/quern.h>

struct quern_context;

namespace quern::capi {

Status compress_array(quern_context& context, const CompressOptions& options, const quern_array* array, void* stream,
                      std::uint64_t capacity, std::uint64_t* size, quern_report* report);
/// `level` 0: the array itself.
Status decompress_array(quern_context& context, const void* stream, std::uint64_t size, quern_array* array,
                        unsigned level = 0);

}  // namespace quern::capi

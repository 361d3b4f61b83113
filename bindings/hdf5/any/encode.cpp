// One chunk for a caller that writes it itself.
#include "bindings/hdf5/any/encode.h"

#include <cstdio>
#include <exception>
#include <string>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/problem.h"
#include "bindings/hdf5/settings.h"

namespace quern::hdf5 {
namespace {

std::uint64_t encode(const unsigned* words, std::size_t count, const void* elements, std::uint64_t bytes, void* stream,
                     std::uint64_t capacity) {
  const Request request = parse_request(words, count);
  const ChunkLayout layout = parse_layout(words, count);
  if (!layout.known() || layout.bytes() != bytes)
    throw Problem(Trouble::request, "a chunk of " + std::to_string(bytes) + " bytes came in; the settings say " +
                                        (layout.known() ? layout.text() : "nothing of the chunks"));
  return ChunkEncoder(request, layout, QUERN_CONTEXT_DESC_INIT, ChunkEncoder::Use::again)
      .encode(elements, stream, capacity);
}

}  // namespace
}  // namespace quern::hdf5

int quern_hdf5_any_encode(const unsigned* words, size_t count, const void* elements, uint64_t bytes, void* stream,
                          uint64_t capacity, uint64_t* size, char* text, size_t text_bytes) {
  try {
    *size = quern::hdf5::encode(words, count, elements, bytes, stream, capacity);
    return 0;
  } catch (const std::exception& problem) {
    std::snprintf(text, text_bytes, "%s", problem.what());
  } catch (...) {
    std::snprintf(text, text_bytes, "an unknown exception; please report it");
  }
  return -1;
}

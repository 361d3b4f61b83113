// All golden files, and both directions for a whole file.
#include "tests/golden/golden_cases.h"

#include <algorithm>

#include <quern/steps.h>

#include "tests/golden/groups.h"

namespace quern::golden {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// All values of the decoder's stream, in growing pieces: the header's size is not believed.
Status pull_all(Decoder& decoder, std::uint64_t max_bytes, Vector<std::uint8_t>& out) {
  const std::size_t width = dtype_bytes(decoder.info().dtype);
  const std::uint64_t wanted = decoder.info().shape.elems() * width;
  for (;;) {
    const std::size_t have = out.size();
    const std::uint64_t room = std::min<std::uint64_t>({kPieceBytes, wanted - have, max_bytes - have});
    if (room < width && have < wanted)
      return Status(StatusCode::destination_too_small, "more than {0} bytes of values",
                    static_cast<std::int64_t>(max_bytes));
    // At the end of the values one more pull lets the decoder check the trailer.
    std::uint8_t none[8];
    if (room == 0) {
      QUERN_ASSIGN_OR_RETURN(const std::size_t more, decoder.pull({none, width}));
      return more == 0 ? Status() : Status(StatusCode::internal, "more values than the shape has");
    }
    out.resize(have + static_cast<std::size_t>(room) / width * width);
    QUERN_ASSIGN_OR_RETURN(const std::size_t got, decoder.pull(std::span(out).subspan(have)));
    out.resize(have + got);
    if (got == 0) return Status(StatusCode::internal, "fewer values than the shape has");
  }
}

}  // namespace

std::vector<GoldenFile> golden_files() {
  std::vector<GoldenFile> files;
  add_container_files(files);
  add_predictor_files(files);
  add_lorenzo_files(files);
  add_mask_files(files);
  add_lossless_files(files);
  add_stencil_files(files);
  add_interp_files(files);
  add_step_files(files);
  add_autoencoder_files(files);
  add_network_files(files);
  return files;
}

Result<Vector<std::uint8_t>> encode(const GoldenFile& file) {
  if (!file.written.empty()) return file.written;
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  if (file.key_every != 0) {
    QUERN_ASSIGN_OR_RETURN(const auto session, StepEncoder::create(builtin_codecs(), file.key_every));
    for (const GoldenStream& stream : file.streams)
      QUERN_RETURN_IF_ERROR(session->encode(stream.array.view(), stream.options, {}, sink).status());
    return bytes;
  }
  for (const GoldenStream& stream : file.streams) {
    QUERN_ASSIGN_OR_RETURN(const CompressReport report,
                           compress(stream.array.view(), stream.options, builtin_codecs(), {}, sink));
    if (report.output_bytes == 0) return Status(StatusCode::internal, "a stream of no bytes");
  }
  return bytes;
}

Result<std::vector<testing::OwnedArray>> decode(std::span<const std::uint8_t> bytes, const Execution& execution,
                                                const DecompressOptions& options, std::uint64_t max_bytes,
                                                Vector<Hole>* holes) {
  MemorySource source(bytes);
  DecompressOptions each = options;
  each.more_streams = true;
  std::vector<testing::OwnedArray> arrays;
  std::uint64_t offset = 0;
  for (;;) {
    // Going on behind damage takes random access, which needs to know where the stream begins.
    if (options.keep_going) each.offset = offset;
    // A stream may have been predicted from the one before.
    const ArrayView last = arrays.empty() ? ArrayView{} : arrays.back().view();
    auto decoder = open_step_beside(source, last, builtin_codecs(), execution, each);
    if (!decoder.ok()) {
      const bool at_end = decoder.status().code() == StatusCode::truncated && decoder.status().first() == 0;
      if (at_end && !arrays.empty()) return arrays;
      if (decoder.status().code() == StatusCode::bad_magic && !arrays.empty())
        return Status(StatusCode::trailing_data, "something that is no stream follows {0} streams",
                      static_cast<std::int64_t>(arrays.size()));
      return decoder.status();
    }
    testing::OwnedArray array;
    array.dtype = (*decoder)->info().dtype;
    array.shape = (*decoder)->info().shape;
    QUERN_RETURN_IF_ERROR(pull_all(**decoder, max_bytes, array.bytes));
    max_bytes -= array.bytes.size();
    if (holes != nullptr) {
      const auto& found = (*decoder)->report().holes;
      holes->insert(holes->end(), found.begin(), found.end());
    }
    offset += (*decoder)->report().input_bytes;
    arrays.push_back(std::move(array));
  }
}

}  // namespace quern::golden

// Files of several streams.
#include "cli/streams/stream_file.h"

#include <fmt/format.h>

#include <quern/records.h>
#include <quern/steps.h>

#include "cli/args/exit_codes.h"
#include "cli/models/model_files.h"

namespace quern::cli {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

bool may_begin_stream(Bytes bytes) {
  MemorySource source(bytes);
  return inspect(source, builtin_codecs()).status().code() != StatusCode::bad_magic;
}

/// Size of the whole and undamaged stream at the beginning of `bytes`, or the reason why there is none.
Result<std::uint64_t> whole_stream_bytes(Bytes bytes) {
  MemorySource source(bytes);
  DecompressOptions options;
  options.more_streams = true;
  // Where a step ends is known without the one that it was predicted from.
  QUERN_ASSIGN_OR_RETURN(const auto reference, inspect_reference(source, builtin_codecs()));
  options.keep_going = reference.has_value();
  options.offset = 0;
  QUERN_ASSIGN_OR_RETURN(const auto decoder, Decoder::open(source, codecs(), Execution{}, options));
  std::vector<std::uint8_t> block(kBlockBytes);
  while (true) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t count, decoder->pull(block));
    if (count == 0) break;
  }
  const std::uint64_t end = source.position();
  // Going on over damage may end anywhere: the end is right where another stream begins.
  if (reference && end < bytes.size() && !may_begin_stream(bytes.subspan(static_cast<std::size_t>(end))))
    return Status(StatusCode::corrupt, "where the stream ends is not known");
  return end;
}

std::vector<Bytes> split_by_decoding(Bytes file) {
  std::vector<Bytes> out;
  while (!file.empty()) {
    const auto whole = whole_stream_bytes(file);
    const std::size_t bytes = whole.ok() && *whole > 0 ? static_cast<std::size_t>(*whole) : file.size();
    out.push_back(file.first(bytes));
    file = file.subspan(bytes);
  }
  return out;
}

}  // namespace

std::vector<Bytes> split_streams(Bytes file, const std::string& name, bool salvage, bool take_records) {
  if (file.empty()) fail(Exit::stream, name + ": is empty; name a file that quern compress wrote, or write it again");
  MemorySource source(file);
  // The first header names what is wrong with a file of another kind better than a missing trailer does.
  const Status first = inspect(source, builtin_codecs()).status();
  MemorySource again(file);
  if (!take_records || !inspect_records(again, builtin_record_codecs()).ok()) check(first, Phase::decode, name);
  const auto listed = list_streams(source);
  if (!listed.ok()) {
    if (salvage) return split_by_decoding(file);
    fail_status(listed.status(), Phase::decode, name);
  }
  std::vector<Bytes> out;
  for (const StreamSpan& span : *listed) out.push_back(file.subspan(span.offset, span.bytes));
  return out;
}

bool is_stream_file(const std::string& path) {
  if (path == "-") return false;
  try {
    const Mapping file = Mapping::of_file(path);
    MemorySource source(file.bytes());
    const StatusCode code = inspect(source, builtin_codecs()).status().code();
    return code != StatusCode::bad_magic && code != StatusCode::truncated;
  } catch (const CliError&) {
    return false;
  }
}

std::vector<StreamInfo> inspect_all(const std::string& path) {
  const Mapping file = Mapping::of_file(path);
  std::vector<StreamInfo> out;
  for (const Bytes stream : split_streams(file.bytes(), path)) {
    MemorySource source(stream);
    out.push_back(check(inspect(source, builtin_codecs()), Phase::decode, path));
  }
  return out;
}

Shape combined_shape(const std::vector<StreamInfo>& infos, const std::string& name) {
  const StreamInfo& first = infos.front();
  if (infos.size() == 1) return first.shape;
  for (std::size_t i = 1; i < infos.size(); ++i)
    if (infos[i].dtype != first.dtype || !(infos[i].shape == first.shape))
      fail(Exit::stream,
           fmt::format("{}: stream {} is {} of {}, the first is {} of {}; they do not make one array", name, i,
                       infos[i].shape.text(), dtype_name(infos[i].dtype), first.shape.text(), dtype_name(first.dtype)));
  std::vector<std::uint64_t> extents{infos.size()};
  for (const std::uint64_t extent : first.shape.extents()) extents.push_back(extent);
  return check(Shape::make(extents), Phase::decode, name);
}

}  // namespace quern::cli

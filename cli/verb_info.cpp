// quern info: what headers say, and with --check whether everything behind them is whole.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cli/byte_streams.h"
#include "cli/file_report.h"
#include "cli/memory.h"
#include "cli/stream_file.h"
#include "cli/stream_notes.h"
#include "cli/verbs.h"

namespace quern::cli {
namespace {

/// What is known of one stream of a file.
struct Entry {
  StreamInfo info;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool checked = false;
  bool incomplete = false;  ///< where the stream ends is not known, and so is its ratio
  std::vector<std::string> damage;
};

std::uint64_t raw_bytes(const StreamInfo& info) { return info.shape.elems() * dtype_bytes(info.dtype); }

std::optional<double> ratio_of(const Entry& entry) {
  if (entry.incomplete) return std::nullopt;
  return static_cast<double>(raw_bytes(entry.info)) / static_cast<double>(std::max<std::uint64_t>(entry.bytes, 1));
}

std::string ratio_text(const Entry& entry) {
  const auto ratio = ratio_of(entry);
  return ratio ? fmt::format("ratio {:.2f}", *ratio) : "incomplete";
}

/// Reads every byte of the stream; damage is listed, not thrown.
void check_entry(Entry& entry, std::span<const std::uint8_t> stream, const InfoArgs& args) {
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory_limit(args.run);
  Buffer block(UINT64_C(16) << 20, "info --check");
  // First without salvage: that pass also checks the trailer. The second one finds every damaged chunk.
  for (const bool keep_going : {false, true}) {
    SpanSource source(stream);
    DecompressOptions options;
    options.keep_going = keep_going;
    auto decoder = Decoder::open(source, builtin_codecs(), execution, options);
    Status status = decoder.status();
    while (decoder.ok() && status.ok()) {
      const auto count = (*decoder)->pull({block.data(), block.size()});
      if (!count.ok()) status = count.status();
      if (count.ok() && *count == 0) break;
    }
    if (!status.ok()) entry.damage.push_back(status.text());
    if (decoder.ok())
      for (const Hole& hole : (*decoder)->report().holes)
        entry.damage.push_back(fmt::format("segment {} chunk {}: {}", hole.segment, hole.chunk, hole.why.text()));
    if (entry.damage.empty()) break;
  }
  entry.checked = true;
}

Json entry_json(const Entry& entry) {
  const StreamInfo& info = entry.info;
  Json out;
  out["offset"] = entry.offset;
  out["stream_bytes"] = entry.bytes;
  out["format"] = fmt::format("{}.{}", info.format_major, info.format_minor);
  out["dtype"] = dtype_name(info.dtype);
  out["shape"] = info.shape.extents();
  out["elems"] = info.shape.elems();
  out["raw_bytes"] = raw_bytes(info);
  out["ratio"] = number_or_null(ratio_of(entry));
  out["codec"] = info.codec_name;
  out["codec_id"] = info.codec_id;
  out["codec_version"] = info.codec_version;
  out["bound"] = bound_json(info.requested.kind, info.requested.value);
  out["enforced"] = bound_json(info.enforced.kind, info.enforced.value);
  out["range"] =
      info.range ? Json::array({number_or_null(info.range->min), number_or_null(info.range->max)}) : Json(nullptr);
  out["fill_bits"] = info.fill_bits;
  out["chunks"] = info.chunks;
  out["segments"] = info.segments;
  out["grid"] = {{"extents", info.grid.extents}, {"chunk", info.grid.chunk}};
  out["header_bytes"] = info.header_bytes;
  out["metadata_bytes"] = info.metadata.size();
  const RestoredMeta notes = restore_meta(info);
  out["dataset"] = notes.dataset.empty() ? Json(nullptr) : Json(notes.dataset);
  out["complex"] = notes.meta.is_complex;
  out["scale_factor"] = notes.meta.packed ? number_or_null(notes.meta.scale_factor) : Json(nullptr);
  out["add_offset"] = notes.meta.packed ? number_or_null(notes.meta.add_offset) : Json(nullptr);
  out["checked"] = entry.checked;
  out["damage"] = entry.damage;
  return out;
}

std::string entry_text(const Entry& entry) {
  const StreamInfo& info = entry.info;
  const auto& grid = info.grid;
  std::string out =
      fmt::format("  array     {} of {}, {} bytes\n", info.shape.text(), dtype_name(info.dtype), raw_bytes(info));
  out += fmt::format("  stream    {} bytes at {}, {}, format {}.{}\n", entry.bytes, entry.offset, ratio_text(entry),
                     info.format_major, info.format_minor);
  out += fmt::format("  codec     {} (id {}, version {})\n", info.codec_name, info.codec_id, info.codec_version);
  out += fmt::format("  asked     {}\n", bound_text(info.requested.kind, info.requested.value));
  out += fmt::format("  enforced  {}\n", bound_text(info.enforced.kind, info.enforced.value));
  if (info.range) out += fmt::format("  range     {:.9g} to {:.9g}\n", info.range->min, info.range->max);
  out += fmt::format("  chunks    {} of {}x{}x{} in {} segments (seen as {}x{}x{})\n", info.chunks, grid.chunk[0],
                     grid.chunk[1], grid.chunk[2], info.segments, grid.extents[0], grid.extents[1], grid.extents[2]);
  for (const std::uint64_t bits : info.fill_bits) out += fmt::format("  fill      bits 0x{:x}\n", bits);
  const RestoredMeta notes = restore_meta(info);
  if (!notes.dataset.empty()) out += fmt::format("  dataset   {}\n", notes.dataset);
  if (notes.meta.packed)
    out += fmt::format("  packed    value * {:.9g} + {:.9g}\n", notes.meta.scale_factor, notes.meta.add_offset);
  if (notes.meta.is_complex) out += "  complex   the last axis holds real and imaginary parts\n";
  out += fmt::format("  header    {} bytes, {} of them notes\n", info.header_bytes, info.metadata.size());
  if (entry.checked && entry.damage.empty()) out += "  checked   everything decodes, all checksums match\n";
  for (const std::string& text : entry.damage) out += "  damaged   " + text + "\n";
  return out;
}

std::string list_text(const std::vector<Entry>& entries) {
  std::string out;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    out += fmt::format("  step {:>5}  at {:>12}  {:>12} bytes  {:<14}  {}  {}\n", i, entry.offset, entry.bytes,
                       ratio_text(entry), entry.info.codec_name,
                       bound_text(entry.info.enforced.kind, entry.info.enforced.value));
    for (const std::string& text : entry.damage) out += "  damaged   " + text + "\n";
  }
  return out;
}

void info_one(const std::string& path, const InfoArgs& args) {
  const Mapping file = path == "-" ? map_standard_input() : Mapping::of_file(path);
  const std::string name = path == "-" ? "standard input" : path;
  std::string broken;
  std::vector<std::span<const std::uint8_t>> streams;
  try {
    streams = split_streams(file.bytes(), name);
  } catch (const CliError& error) {
    // The header may be fine although the rest is not: say both. A header that cannot be read ends it here.
    SpanSource source(file.bytes());
    if (!inspect(source, builtin_codecs()).ok()) throw;
    broken = error.what();
    streams = split_streams(file.bytes(), name, true);
  }
  std::vector<Entry> entries;
  for (const auto& stream : streams) {
    SpanSource source(stream);
    Entry entry;
    const auto info = inspect(source, builtin_codecs());
    if (!info.ok()) {
      entries.back().damage.push_back(
          fmt::format("{} bytes after it are no stream: {}", stream.size(), info.status().text()));
      continue;
    }
    entry.info = *info;
    entry.offset = static_cast<std::uint64_t>(stream.data() - file.bytes().data());
    entry.bytes = stream.size();
    if (args.check) check_entry(entry, stream, args);
    entries.push_back(std::move(entry));
  }
  entries.back().incomplete = !broken.empty();
  const bool damaged = !broken.empty() || std::any_of(entries.begin(), entries.end(),
                                                      [](const Entry& entry) { return !entry.damage.empty(); });
  if (args.run.json) {
    Json line;
    line["input"] = name;
    line["input_bytes"] = file.bytes().size();
    line["streams"] = Json::array();
    for (const Entry& entry : entries) line["streams"].push_back(entry_json(entry));
    line["whole"] = damaged ? Json(false) : args.check ? Json(true) : Json(nullptr);
    line["version"] = QUERN_VERSION;
    print_json(line);
  } else {
    std::string text = fmt::format("{}: {} bytes, {} stream{}\n", name, file.bytes().size(), entries.size(),
                                   entries.size() == 1 ? "" : "s");
    text += entry_text(entries.front());
    if (entries.size() > 1) text += list_text(entries);
    print_text(text);
  }
  if (!broken.empty()) fail(Exit::stream, broken);
  if (damaged) fail(Exit::stream, name + ": is damaged; quern decompress --keep-going saves what is left");
}

}  // namespace

Exit run_info(const InfoArgs& args) {
  check_device(args.run);
  Exit result = Exit::ok;
  for (const std::string& input : args.inputs) attempt(result, [&] { info_one(input, args); });
  return result;
}

}  // namespace quern::cli

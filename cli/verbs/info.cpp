// quern info: what headers and masks say, and with --check whether everything behind them is whole.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <quern/models.h>
#include <quern/parts.h>
#include <quern/survey.h>

#include "cli/files/byte_streams.h"
#include "cli/files/memory.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/file_report.h"
#include "cli/models/model_files.h"
#include "cli/streams/step_decoders.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/record_report.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

/// What is known of one stream of a file.
struct Entry {
  std::optional<RecordFindings> records;  ///< in the place of everything else, where the stream holds them
  StreamInfo info;
  std::optional<ReferenceId> reference;  ///< what it was predicted from
  std::optional<StreamModel> model;      ///< that chunks may need
  Vector<ArrayPart> parts;               ///< of the leading axis, where these are coded by themselves
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool checked = false;
  bool incomplete = false;  ///< where the stream ends is not known, and so is its ratio
  std::optional<MaskSurvey> masks;
  std::string why_no_masks;  ///< when they were asked for and cannot be read
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
void check_entry(Entry& entry, StepDecoders& steps, std::size_t step, const InfoArgs& args) {
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory_limit(args.run);
  // Values that the next step was predicted from are kept for it.
  const std::uint64_t raw = raw_bytes(entry.info);
  const bool kept = steps.predicts_next(step) && raw <= execution.memory_limit / 4;
  Buffer block(kept ? raw : UINT64_C(16) << 20, "info --check");
  execution.memory_limit -= std::min(execution.memory_limit, steps.kept_bytes() + (kept ? raw : 0));
  // First without salvage: that pass also checks the trailer. The second one finds every damaged chunk.
  for (const bool keep_going : {false, true}) {
    DecompressOptions options;
    options.keep_going = keep_going;
    auto decoder = steps.try_open(step, execution, options);
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
  if (kept && entry.damage.empty()) {
    steps.keep(step, entry.info, std::move(block));
  } else {
    steps.forget();
  }
  entry.checked = true;
}

/// Reads the masks. What is damaged in them or before them is found here even without --check.
void survey_entry(Entry& entry, std::span<const std::uint8_t> stream, const InfoArgs& args) {
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory_limit(args.run);
  MemorySource source(stream);
  const auto masks = survey_masks(source, execution);
  if (masks.ok()) {
    entry.masks = *masks;
    return;
  }
  entry.why_no_masks = masks.status().text();
  const bool damaged = exit_for(masks.status(), Phase::decode) == Exit::stream;
  if (damaged && entry.damage.empty() && !entry.incomplete) entry.damage.push_back(entry.why_no_masks);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

Json mask_json(const Entry& entry) {
  if (!entry.masks) return nullptr;
  const MaskSurvey& masks = *entry.masks;
  Json out;
  out["elems"] = masks.elems();
  out["share"] = share(masks.elems(), entry.info.shape.elems());
  out["nan"] = masks.nan_elems;
  out["infinite"] = masks.infinite_elems;
  out["fill"] = masks.fill_elems;
  out["repeated"] = masks.repeated_elems;
  out["bytes"] = masks.mask_bytes;
  out["stream_share"] = share(masks.mask_bytes, entry.bytes);
  out["segments"] = masks.masked_segments;
  out["by_levels"] = masks.level_masks;
  out["empty_chunks"] = masks.empty_chunks;
  return out;
}

std::string mask_text(const Entry& entry) {
  const MaskSurvey& masks = *entry.masks;
  if (masks.elems() == 0) return "no value";
  std::string kinds;
  const auto add = [&](std::uint64_t elems, const char* name) {
    if (elems != 0) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", elems, name);
  };
  add(masks.nan_elems, "NaN");
  add(masks.infinite_elems, "infinite");
  add(masks.fill_elems, "fill");
  add(masks.repeated_elems, "repeated");
  return fmt::format("{:.3g} % of the values ({}) in {} bytes, {:.3g} % of the stream{}",
                     100 * share(masks.elems(), entry.info.shape.elems()), kinds, masks.mask_bytes,
                     100 * share(masks.mask_bytes, entry.bytes), masks.level_masks != 0 ? ", by levels" : "");
}

const std::vector<std::string>& damage_of(const Entry& entry) {
  return entry.records ? entry.records->damage : entry.damage;
}

Json entry_json(const Entry& entry) {
  if (entry.records) return record_json(*entry.records);
  const StreamInfo& info = entry.info;
  Json out;
  out["kind"] = "grid";
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
  out["mask"] = mask_json(entry);
  out["chunks"] = info.chunks;
  out["segments"] = info.segments;
  out["grid"] = {{"extents", info.grid.extents}, {"chunk", info.grid.chunk}};
  out["levels"] = Json::array();
  for (const Shape& shape : info.levels) out["levels"].push_back(shape.extents());
  out["levels_are_means"] = info.levels_are_means;
  out["reference"] = entry.reference ? Json(fmt::format("{:016x}", entry.reference->hash)) : Json(nullptr);
  out["model"] =
      !entry.model
          ? Json(nullptr)
          : Json{{"id", id_text(entry.model->id)}, {"embedded", entry.model->embedded}, {"bytes", entry.model->bytes}};
  out["parts"] = Json::array();
  for (const ArrayPart& part : entry.parts) out["parts"].push_back({{"slices", part.slices}, {"layout", part.layout}});
  out["steps_to_key"] = entry.reference ? entry.reference->depth : 0;
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

/// "3: 1 of 50x25x25, ..."; coarse previews that decompress --level gives.
std::string levels_text(const StreamInfo& info) {
  if (info.levels.empty()) return "none";
  std::string out = fmt::format("{}:", info.levels.size());
  for (std::size_t i = 0; i < info.levels.size(); ++i)
    out += fmt::format("{} {} of {}", i == 0 ? "" : ",", i + 1, info.levels[i].text());
  return out + (info.levels_are_means ? " (local means)" : "");
}

/// "2: 1 slice levels:3d:0,1, 4 slices raster:2d:1"; as the codec's setting layout says it.
std::string parts_text(const Vector<ArrayPart>& parts) {
  std::string out = fmt::format("{}:", parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += fmt::format("{} {} slice{} {}", i == 0 ? "" : ",", parts[i].slices, parts[i].slices == 1 ? "" : "s",
                       std::string_view(parts[i].layout));
  return out;
}

std::string entry_text(const Entry& entry) {
  if (entry.records) return record_text(*entry.records);
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
  out += "  levels    " + levels_text(info) + "\n";
  if (entry.model)
    out += fmt::format("  model     {}, {}\n", id_text(entry.model->id),
                       entry.model->embedded ? fmt::format("{} bytes in the stream", entry.model->bytes)
                                             : "outside: --model FILE or --model-store DIR");
  if (!entry.parts.empty()) out += "  parts     " + parts_text(entry.parts) + "\n";
  if (entry.reference)
    out += fmt::format("  predicted from the array of hash {:016x}, {} step{} after a key step\n",
                       entry.reference->hash, entry.reference->depth, entry.reference->depth == 1 ? "" : "s");
  for (const std::uint64_t bits : info.fill_bits) out += fmt::format("  fill      bits 0x{:x}\n", bits);
  if (entry.masks) out += fmt::format("  masked    {}\n", mask_text(entry));
  if (!entry.why_no_masks.empty()) out += fmt::format("  masked    not known: {}\n", entry.why_no_masks);
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
    if (entry.records) {
      out += fmt::format("  step {:>5}  {}", i, record_line(*entry.records));
      continue;
    }
    const std::string masked =
        entry.masks && entry.masks->elems() != 0
            ? fmt::format("  {:.3g} % masked", 100 * share(entry.masks->elems(), entry.info.shape.elems()))
            : "";
    const std::string chain = entry.reference ? fmt::format("  key + {}", entry.reference->depth) : "";
    out += fmt::format("  step {:>5}  at {:>12}  {:>12} bytes  {:<14}  {}  {}{}{}\n", i, entry.offset, entry.bytes,
                       ratio_text(entry), entry.info.codec_name,
                       bound_text(entry.info.enforced.kind, entry.info.enforced.value), chain, masked);
    for (const std::string& text : entry.damage) out += "  damaged   " + text + "\n";
  }
  return out;
}

RecordDepth depth_of(const InfoArgs& args) {
  if (args.check) return RecordDepth::content;
  return args.headers_only ? RecordDepth::header : RecordDepth::heads;
}

void info_one(const std::string& path, const InfoArgs& args) {
  const Mapping file = path == "-" ? map_standard_input() : Mapping::of_file(path);
  const std::string name = path == "-" ? "standard input" : path;
  std::string broken;
  std::vector<std::span<const std::uint8_t>> streams;
  try {
    streams = split_streams(file.bytes(), name, false, true);
  } catch (const CliError& error) {
    // The header may be fine although the rest is not: say both. A header that cannot be read ends it here.
    MemorySource source(file.bytes());
    const bool has_records = begins_records(file.bytes());
    if (!has_records && !inspect(source, builtin_codecs()).ok()) throw;
    broken = error.what();
    streams = has_records ? std::vector<std::span<const std::uint8_t>>{file.bytes()}
                          : split_streams(file.bytes(), name, true);
  }
  std::vector<Entry> entries;
  StepDecoders steps(streams, name);
  for (std::size_t step = 0; step < streams.size(); ++step) {
    const auto& stream = streams[step];
    MemorySource source(stream);
    Entry entry;
    if (begins_records(stream)) {
      const auto offset = static_cast<std::uint64_t>(stream.data() - file.bytes().data());
      entry.records = read_record_report(stream, offset, depth_of(args), args.run, name);
      entries.push_back(std::move(entry));
      continue;
    }
    const auto info = inspect(source, builtin_codecs());
    if (!info.ok()) {
      entries.back().damage.push_back(
          fmt::format("{} bytes after it are no stream: {}", stream.size(), info.status().text()));
      continue;
    }
    entry.info = *info;
    entry.offset = static_cast<std::uint64_t>(stream.data() - file.bytes().data());
    entry.bytes = stream.size();
    entry.incomplete = !broken.empty() && stream.data() == streams.back().data();
    entry.reference = steps.reference(step);
    MemorySource again(stream);
    if (auto parts = inspect_parts(again, builtin_codecs()); parts.ok()) entry.parts = std::move(parts).value();
    MemorySource third(stream);
    if (const auto model = inspect_model(third); model.ok()) entry.model = *model;
    if (args.check) check_entry(entry, steps, step, args);
    if (!args.headers_only) survey_entry(entry, stream, args);
    entries.push_back(std::move(entry));
  }
  const bool damaged = !broken.empty() || std::any_of(entries.begin(), entries.end(),
                                                      [](const Entry& entry) { return !damage_of(entry).empty(); });
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
  if (damaged && entries.front().records) fail(Exit::stream, name + ": is damaged; restore it from a copy");
  if (damaged) fail(Exit::stream, name + ": is damaged; quern decompress --keep-going saves what is left");
}

}  // namespace

Exit run_info(const InfoArgs& args) {
  use_models(args.run.models);
  Exit result = Exit::ok;
  for (const std::string& input : args.inputs) attempt(result, [&] { info_one(input, args); });
  return result;
}

}  // namespace quern::cli

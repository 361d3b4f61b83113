// Sections, sizes and checks of streams of records.
#include "cli/verbs/record_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/files/memory.h"
#include "cli/lidar/drive_check.h"
#include "lidar/drive/drive.h"

namespace quern::cli {
namespace {

void count(const StoredPart& part, RecordFindings& out) {
  ++out.parts;
  if (part.is_raw) ++out.raw_parts;
  out.section_bytes[part.section] += part.bytes;
  out.section_stored_bytes[part.section] += part.stored_bytes;
}

/// Sizes from heads; what is wrong with them is damage.
void read_heads(RecordReader& reader, RecordFindings& out) {
  for (std::uint64_t segment = 0; segment < out.info.layout.segments(); ++segment) {
    const auto parts = reader.stored_parts(segment);
    if (!parts.ok()) {
      out.damage.push_back(parts.status().text());
      return;
    }
    for (const StoredPart& part : *parts) count(part, out);
  }
  out.has_sizes = true;
}

void check_content(RecordReader& reader, RecordFindings& out) {
  const auto checked = reader.verify();
  out.checked = true;
  if (!checked.ok()) {
    if (out.damage.empty()) out.damage.push_back(checked.status().text());
    return;
  }
  out.decoded = checked->decoded;
}

std::uint64_t sum(const std::vector<std::uint64_t>& numbers) {
  std::uint64_t total = 0;
  for (const std::uint64_t n : numbers) total += n;
  return total;
}

std::optional<double> ratio_of(const RecordFindings& findings) {
  if (!findings.has_sizes) return std::nullopt;
  return static_cast<double>(sum(findings.section_bytes)) /
         static_cast<double>(std::max<std::uint64_t>(findings.bytes, 1));
}

std::string ratio_text(const RecordFindings& findings) {
  const auto ratio = ratio_of(findings);
  return ratio ? fmt::format("ratio {:.2f}", *ratio) : "ratio not known";
}

bool is_built_in(const RecordInfo& info) { return info.codec_name != "unknown"; }

std::string codec_text(const RecordInfo& info) {
  if (is_built_in(info))
    return fmt::format("{} (id {}, version {})", info.codec_name, info.codec_id, info.codec_version);
  return fmt::format("number {}, version {}: not in this build, its parts cannot be decoded here", info.codec_id,
                     info.codec_version);
}

std::string name_of(const RecordSection& section) { return {section.name.data(), section.name.size()}; }

Json section_json(const RecordFindings& findings, std::size_t index) {
  const RecordSection& section = findings.info.layout.sections[index];
  const bool has_values = section.form == SectionForm::values;
  Json out;
  out["name"] = name_of(section);
  out["form"] = has_values ? "values" : "bytes";
  out["tag"] = section.tag;
  out["dtype"] = has_values ? Json(dtype_name(section.dtype)) : Json(nullptr);
  out["items"] = has_values ? Json(section.items) : Json(nullptr);
  out["item_elems"] = has_values ? Json(section.item_elems) : Json(nullptr);
  out["bound"] = has_values ? bound_json(section.requested.kind, section.requested.value) : Json(nullptr);
  out["enforced"] = has_values ? bound_json(section.enforced.kind, section.enforced.value) : Json(nullptr);
  out["range"] = section.range ? Json::array({number_or_null(section.range->min), number_or_null(section.range->max)})
                               : Json(nullptr);
  out["bytes"] = findings.has_sizes ? Json(findings.section_bytes[index]) : Json(nullptr);
  out["stored_bytes"] = findings.has_sizes ? Json(findings.section_stored_bytes[index]) : Json(nullptr);
  return out;
}

std::string section_text(const RecordFindings& findings, std::size_t index) {
  const RecordSection& section = findings.info.layout.sections[index];
  std::string out = fmt::format("  section   {}: ", name_of(section));
  if (section.form == SectionForm::bytes) {
    out += "a string of bytes a segment";
  } else {
    out += fmt::format("{} items of {} {}, {}", section.items, section.item_elems, dtype_name(section.dtype),
                       bound_text(section.enforced.kind, section.enforced.value));
    if (section.requested.kind == BoundKind::rel)
      out += fmt::format(" (asked {})", bound_text(section.requested.kind, section.requested.value));
  }
  if (section.tag != 0) out += fmt::format(", tag {}", section.tag);
  if (findings.has_sizes)
    out += fmt::format(", {} bytes as {}", findings.section_bytes[index], findings.section_stored_bytes[index]);
  return out + "\n";
}

std::string check_text(const RecordFindings& findings) {
  if (findings.decoded) return "  checked   all checksums match, every part decodes\n";
  return fmt::format(
      "  checked   all checksums match; {} of {} parts need codec {}, which this build does not have, and "
      "were not decoded\n",
      findings.parts - findings.raw_parts, findings.parts, findings.info.codec_id);
}

}  // namespace

bool begins_records(std::span<const std::uint8_t> bytes) {
  MemorySource source(bytes);
  const auto records = holds_records(source);
  return records.ok() && *records;
}

bool is_record_file(const std::string& path) {
  if (path == "-") return false;
  try {
    return begins_records(Mapping::of_file(path).bytes());
  } catch (const CliError&) {
    return false;
  }
}

RecordFindings read_record_report(std::span<const std::uint8_t> stream, std::uint64_t offset, RecordDepth depth,
                                  const RunArgs& run, const std::string& name) {
  MemorySource source(stream);
  RecordFindings out;
  out.info = check(inspect_records(source, builtin_record_codecs()), Phase::decode, name);
  out.is_drive = lidar::is_drive(out.info);
  out.offset = offset;
  out.bytes = stream.size();
  out.section_bytes.resize(out.info.layout.sections.size());
  out.section_stored_bytes.resize(out.info.layout.sections.size());
  Execution execution;
  execution.threads = run.threads;
  execution.memory_limit = memory_limit(run);
  const auto reader = RecordReader::open(source, builtin_record_codecs(), execution);
  if (!reader.ok()) {
    out.damage.push_back(reader.status().text());
    return out;
  }
  if (depth != RecordDepth::header) read_heads(**reader, out);
  if (depth != RecordDepth::header && out.is_drive) out.frame_sources = sources_of_drive(stream, run);
  if (depth == RecordDepth::content) check_content(**reader, out);
  if (depth != RecordDepth::content || !out.is_drive || !out.damage.empty()) return out;
  DecodedFrames frames = decode_frames(stream, run);
  if (!frames.problem.empty()) out.damage.push_back(std::move(frames.problem));
  out.frames_without_history = frames.without_history;
  return out;
}

Json record_json(const RecordFindings& findings) {
  const RecordInfo& info = findings.info;
  Json out;
  out["kind"] = "records";
  out["offset"] = findings.offset;
  out["stream_bytes"] = findings.bytes;
  out["format"] = fmt::format("{}.{}", info.format_major, info.format_minor);
  out["items"] = info.layout.items;
  out["segment_items"] = info.layout.segment_items;
  out["segments"] = info.layout.segments();
  out["frames"] = info.layout.frames;
  out["lidar_frames"] = findings.is_drive ? Json(info.layout.items) : Json(nullptr);
  out["lidar_sources"] = findings.frame_sources.empty() ? Json(nullptr) : Json(findings.frame_sources);
  out["frames_without_history"] =
      findings.is_drive && findings.checked ? Json(findings.frames_without_history) : Json(nullptr);
  out["raw_bytes"] = findings.has_sizes ? Json(sum(findings.section_bytes)) : Json(nullptr);
  out["ratio"] = number_or_null(ratio_of(findings));
  out["codec"] = info.codec_name;
  out["codec_id"] = info.codec_id;
  out["codec_version"] = info.codec_version;
  out["codec_built_in"] = is_built_in(info);
  out["sections"] = Json::array();
  for (std::size_t i = 0; i < info.layout.sections.size(); ++i) out["sections"].push_back(section_json(findings, i));
  out["parts"] = findings.has_sizes ? Json(findings.parts) : Json(nullptr);
  out["raw_parts"] = findings.has_sizes ? Json(findings.raw_parts) : Json(nullptr);
  out["header_bytes"] = info.header_bytes;
  out["metadata_bytes"] = info.metadata.size();
  out["checked"] = findings.checked;
  out["decoded"] = findings.decoded;
  out["damage"] = findings.damage;
  return out;
}

std::string record_text(const RecordFindings& findings) {
  const RecordInfo& info = findings.info;
  const RecordLayout& layout = info.layout;
  std::string out =
      fmt::format("  records   {} items in {} segments of {}", layout.items, layout.segments(), layout.segment_items);
  out += layout.frames.empty() ? "\n" : fmt::format(", {} frames\n", layout.frames.size());
  out += fmt::format("  stream    {} bytes at {}, {}, format {}.{}\n", findings.bytes, findings.offset,
                     ratio_text(findings), info.format_major, info.format_minor);
  if (findings.is_drive)
    out += fmt::format("  drive     {} frames of LiDAR scans{}{}; quern lidar info says more\n", layout.items,
                       findings.frame_sources.empty() ? "" : " from ", findings.frame_sources);
  out += fmt::format("  codec     {}\n", codec_text(info));
  for (std::size_t i = 0; i < layout.sections.size(); ++i) out += section_text(findings, i);
  if (findings.has_sizes) out += fmt::format("  parts     {}, {} of them raw\n", findings.parts, findings.raw_parts);
  out += fmt::format("  header    {} bytes, {} of them notes\n", info.header_bytes, info.metadata.size());
  if (findings.checked && findings.damage.empty()) out += check_text(findings);
  if (findings.frames_without_history != 0)
    out += fmt::format("  history   {} frames need a history; check them with quern lidar verify --history DIR\n",
                       findings.frames_without_history);
  for (const std::string& text : findings.damage) out += "  damaged   " + text + "\n";
  return out;
}

std::string record_line(const RecordFindings& findings) {
  const RecordLayout& layout = findings.info.layout;
  std::string out = fmt::format("at {:>12}  {:>12} bytes  {:<14}  records: {} items, {} sections\n", findings.offset,
                                findings.bytes, ratio_text(findings), layout.items, layout.sections.size());
  for (const std::string& text : findings.damage) out += "  damaged   " + text + "\n";
  return out;
}

}  // namespace quern::cli

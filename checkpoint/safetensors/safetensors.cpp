// Headers of safetensors files.
#include "checkpoint/safetensors/safetensors.h"

#include <algorithm>

#include "checkpoint/safetensors/json.h"
#include "libcompress/format/bytes.h"

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kMetadataKey = "__metadata__";

Status refuse(Report& report, std::string_view tensor, std::string_view what) {
  return fail(report, StatusCode::corrupt, join({"tensor '", tensor, "': ", what}));
}

/// What the header says of a tensor of `bytes` bytes, as values that can be stored.
Status describe(const DeclaredType& said, std::uint64_t bytes, StoredTensor& out, Report& report) {
  if (!count_elements(said.shape)) return refuse(report, out.name, "the shape has too many elements");
  if (!fits(said, bytes))
    return refuse(report, out.name, "data_offsets are not as far apart as dtype and shape demand");
  const auto known = parse_element(said.dtype);
  const std::size_t width = known ? codec::tensor::element_bytes(*known) : 1;
  out.what.type = known.value_or(ElementType::u8);
  const bool as_it_is = known && said.shape.size() <= kMaxRank;
  const Vector<std::uint64_t> flat{bytes / width};
  const auto shape = Shape::try_make(as_it_is ? said.shape : flat);
  if (!shape) return refuse(report, out.name, "the shape has too many elements");
  out.what.shape = *shape;
  if (!as_it_is) out.declared = said;
  return {};
}

Result<DeclaredType> read_declared(const JsonValue& entry, Report& report) {
  const JsonValue* const type = entry.find("dtype");
  const JsonValue* const shape = entry.find("shape");
  if (type == nullptr || !type->is(Kind::text)) return refuse(report, entry.key, "no dtype");
  if (type->text.empty() || type->text.find('\0') != String::npos)
    return refuse(report, entry.key, "its dtype is no name");
  if (shape == nullptr || !shape->is(Kind::array)) return refuse(report, entry.key, "no shape");
  DeclaredType out{type->text, {}};
  for (const JsonValue& extent : shape->items) {
    if (!extent.is(Kind::number)) return refuse(report, entry.key, "an extent is no number");
    out.shape.push_back(extent.number);
  }
  return out;
}

Result<StoredTensor> read_entry(const JsonValue& entry, std::uint64_t data_bytes, Report& report) {
  if (!entry.is(Kind::object)) return refuse(report, entry.key, "not described by an object");
  if (entry.items.size() != 3)
    return refuse(report, entry.key, "must have dtype, shape and data_offsets, nothing else");
  StoredTensor out;
  out.name = entry.key;
  QUERN_ASSIGN_OR_RETURN(const DeclaredType said, read_declared(entry, report));
  const JsonValue* const range = entry.find("data_offsets");
  if (range == nullptr || !range->is(Kind::array) || range->items.size() != 2 || !range->items[0].is(Kind::number) ||
      !range->items[1].is(Kind::number))
    return refuse(report, entry.key, "data_offsets are not two numbers");
  out.begin = range->items[0].number;
  out.end = range->items[1].number;
  if (out.begin > out.end || out.end > data_bytes)
    return refuse(report, entry.key, "data_offsets lie outside the file's data");
  QUERN_RETURN_IF_ERROR(describe(said, out.end - out.begin, out, report));
  return out;
}

Status read_metadata(const JsonValue& entry, SafetensorsHeader& out, Report& report) {
  out.has_metadata = true;
  if (!entry.is(Kind::object)) return fail(report, StatusCode::corrupt, "__metadata__ is no object");
  for (const JsonValue& item : entry.items) {
    if (!item.is(Kind::text))
      return fail(report, StatusCode::corrupt, join({"__metadata__: '", item.key, "' is no text"}));
    out.metadata.emplace_back(item.key, item.text);
  }
  return {};
}

Status check_tiling(const Vector<StoredTensor>& tensors, std::uint64_t data_bytes, Report& report) {
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at)
      return refuse(report, tensor.name,
                    tensor.begin < at ? "shares data with the tensor before" : "data lies unused before it");
    at = tensor.end;
  }
  if (at != data_bytes)
    return fail(report, StatusCode::corrupt,
                join({decimal(data_bytes - at), " bytes at the file's end belong to no tensor"}));
  return {};
}

}  // namespace

String make_header_text(const SafetensorsHeader& header) {
  const bool spaced = header.form == HeaderForm::spaced;
  const std::string_view comma = spaced ? ", " : ",", colon = spaced ? ": " : ":";
  String out = "{";
  const auto key = [&](std::string_view name) {
    append_json_text(out, name);
    out += colon;
  };
  if (header.has_metadata) {
    key(kMetadataKey);
    out += '{';
    bool first = true;
    for (const auto& [name, text] : header.metadata) {
      if (!first) out += comma;
      first = false;
      key(name);
      append_json_text(out, text);
    }
    out += '}';
  }
  bool first = !header.has_metadata;
  for (const StoredTensor& tensor : header.tensors) {
    if (!first) out += comma;
    first = false;
    key(tensor.name);
    out += '{';
    key("dtype");
    append_json_text(out, tensor.declared ? std::string_view(tensor.declared->dtype) : element_name(tensor.what.type));
    out += comma;
    key("shape");
    out += '[';
    const std::span<const std::uint64_t> own = tensor.what.shape.extents();
    const std::span<const std::uint64_t> shape = tensor.declared ? std::span(tensor.declared->shape) : own;
    for (std::size_t a = 0; a < shape.size(); ++a) {
      if (a != 0) out += comma;
      append_json_number(out, shape[a]);
    }
    out += ']';
    out += comma;
    key("data_offsets");
    out += '[';
    append_json_number(out, tensor.begin);
    out += comma;
    append_json_number(out, tensor.end);
    out += "]}";
  }
  out += '}';
  out.append(static_cast<std::size_t>(header.padding), ' ');
  return out;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, Report& report) {
  if (text.empty() || text.front() != '{')
    return fail(report, StatusCode::corrupt, "the header does not begin with '{'");
  QUERN_ASSIGN_OR_RETURN(const JsonValue root, parse_json(text, JsonLimits{.depth = 3}, report));
  SafetensorsHeader out;
  out.text = text;
  for (const JsonValue& entry : root.items) {
    if (entry.key == kMetadataKey) {
      QUERN_RETURN_IF_ERROR(read_metadata(entry, out, report));
      continue;
    }
    if (entry.key.empty()) return fail(report, StatusCode::corrupt, "a tensor has an empty name");
    QUERN_ASSIGN_OR_RETURN(StoredTensor tensor, read_entry(entry, data_bytes, report));
    out.tensors.push_back(std::move(tensor));
  }
  std::stable_sort(out.tensors.begin(), out.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  QUERN_RETURN_IF_ERROR(check_tiling(out.tensors, data_bytes, report));
  out.padding = text.size() - 1 - text.find_last_not_of(' ');
  for (const HeaderForm form : {HeaderForm::compact, HeaderForm::spaced}) {
    out.form = form;
    if (make_header_text(out) == out.text) return out;
  }
  out.form = HeaderForm::verbatim;
  return out;
}

Vector<std::uint8_t> header_bytes(std::string_view text) {
  Vector<std::uint8_t> out(8 + text.size());
  ByteWriter writer(out);
  writer.u64(text.size());
  std::copy(text.begin(), text.end(), out.begin() + 8);
  return out;
}

void lay_out(SafetensorsHeader& header) {
  std::uint64_t at = 0;
  for (StoredTensor& tensor : header.tensors) {
    tensor.begin = at;
    at += tensor.what.bytes();
    tensor.end = at;
  }
  header.form = HeaderForm::compact;
  header.padding = 0;
  header.padding = (8 - make_header_text(header).size() % 8) % 8;
  header.text = make_header_text(header);
}

Result<SafetensorsFile> SafetensorsFile::open(FileSystem& files, std::string_view path, Report& report) {
  SafetensorsFile out;
  out.path_ = path;
  auto opened = files.open(path);
  if (!opened.ok()) return fail_file(report, path, "open it", opened.status());
  out.file_ = std::move(opened).value();
  const auto size = out.file_->size();
  if (!size.ok()) return fail_file(report, path, "read it", size.status());
  const auto damaged = [&](std::string_view what) {
    return fail(report, StatusCode::corrupt, join({path, ": ", what, "; this is no safetensors file"}));
  };
  if (*size < 8) return damaged("too short for a header");
  std::array<std::uint8_t, 8> length_bytes{};
  if (const Status status = read_fully(*out.file_, 0, length_bytes); !status.ok())
    return fail_file(report, path, "read it", status);
  const std::uint64_t length = ByteReader(length_bytes).u64();
  if (length > kMaxSafetensorsHeader) return damaged("the header's length is above 100000000");
  if (length > *size - 8) return damaged("the header is longer than the file");
  String text(static_cast<std::size_t>(length), '\0');
  const std::span<std::uint8_t> room(reinterpret_cast<std::uint8_t*>(text.data()), text.size());
  if (const Status status = read_fully(*out.file_, 8, room); !status.ok())
    return fail_file(report, path, "read it", status);
  auto header = parse_safetensors_header(text, *size - 8 - length, report);
  if (!header.ok()) return fail_at(report, path, header.status());
  out.header_ = std::move(header).value();
  return out;
}

Status SafetensorsFile::read(std::uint64_t begin, std::span<std::uint8_t> out, Report& report) {
  const Status status = read_fully(*file_, 8 + header_.text.size() + begin, out);
  if (!status.ok()) return fail_file(report, path_, "read it", status);
  return {};
}

Result<ShardIndex> parse_shard_index(std::string_view text, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const JsonValue root, parse_json(text, JsonLimits{.depth = 4, .others = true}, report));
  const JsonValue* const map = root.is(Kind::object) ? root.find("weight_map") : nullptr;
  if (map == nullptr || !map->is(Kind::object)) return fail(report, StatusCode::corrupt, "the index has no weight_map");
  ShardIndex out;
  for (const JsonValue& item : map->items) {
    const bool plain = item.is(Kind::text) && !item.text.empty() && item.text != "." && item.text != ".." &&
                       item.text.find('/') == String::npos && item.text.find('\0') == String::npos;
    if (!plain) return refuse(report, item.key, "the index names no file beside it");
    out.files.emplace_back(item.key, item.text);
  }
  return out;
}

String make_shard_index(const ShardIndex& index, std::uint64_t total_bytes) {
  String out = "{\n  \"metadata\": {\n    \"total_size\": ";
  append_json_number(out, total_bytes);
  out += "\n  },\n  \"weight_map\": {";
  bool first = true;
  for (const auto& [tensor, file] : index.files) {
    out += first ? "\n    " : ",\n    ";
    first = false;
    append_json_text(out, tensor);
    out += ": ";
    append_json_text(out, file);
  }
  out += "\n  }\n}\n";
  return out;
}

}  // namespace quern::checkpoint

// The canonical text of a manifest: JSON without blanks, members in this order, those with their usual value left out.
#include <bit>

#include "checkpoint/safetensors/json.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {
namespace {

/// Writes JSON that is known to be well-formed; commas come by themselves.
class TextWriter {
 public:
  explicit TextWriter(String& out) : out_(out) {}

  void key(std::string_view name) {
    separate();
    append_json_text(out_, name);
    out_ += ':';
    fresh_ = true;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    fresh_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    fresh_ = false;
  }
  void text(std::string_view value) {
    separate();
    append_json_text(out_, value);
  }
  void number(std::uint64_t value) {
    separate();
    append_json_number(out_, value);
  }
  void member(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }
  void member(std::string_view name, std::uint64_t value) {
    key(name);
    number(value);
  }
  template <class Numbers>
  void numbers(std::string_view name, const Numbers& values) {
    key(name);
    open('[');
    for (const std::uint64_t value : values) number(value);
    close(']');
  }

 private:
  void separate() {
    if (!fresh_) out_ += ',';
    fresh_ = false;
  }
  String& out_;
  bool fresh_ = true;
};

void write_name(TextWriter& out, const CheckpointName& name) {
  out.open('[');
  out.number(name.step);
  out.text(name.id);
  if (name.generation != 0) out.number(name.generation);
  out.close(']');
}

void write_parts(TextWriter& out, const Vector<PartInfo>& parts) {
  out.open('[');
  for (const PartInfo& part : parts) {
    out.open('[');
    out.number(part.bytes);
    out.text(hex(part.index_checksum));
    out.close(']');
  }
  out.close(']');
}

void write_file(TextWriter& out, const ManifestFile& file) {
  out.open('{');
  out.member("name", file.name);
  if (file.kind == ManifestFile::Kind::shard_index) {
    out.member("index", file.text);
  } else {
    out.member("tensors", file.tensors);
    if (file.form == HeaderForm::verbatim) {
      out.member("header", file.text);
    } else {
      out.member("form", static_cast<std::uint64_t>(file.form));
      out.member("padding", file.padding);
      if (file.has_metadata) {
        out.key("metadata");
        out.open('{');
        for (const auto& [name, text] : file.metadata) out.member(name, text);
        out.close('}');
      }
    }
  }
  out.close('}');
}

void write_place(TextWriter& out, std::string_view name, const TensorPlace& place) {
  out.key(name);
  out.open('[');
  out.number(place.checkpoint);
  out.number(place.tensor);
  out.close(']');
}

/// Where the next record would be if tensors lay one behind the other.
struct Cursor {
  std::uint32_t part = 0;
  std::uint32_t record = 0;

  template <class Entry>
  void write(TextWriter& out, const Entry& entry) {
    if (entry.part != part || entry.record != record)
      out.numbers("at", std::array<std::uint64_t, 2>{entry.part, entry.record});
    part = entry.part;
    record = entry.record + entry.records();
  }
};

void write_tensor(TextWriter& out, const ManifestTensor& tensor, Cursor& cursor) {
  out.open('{');
  out.member("name", tensor.name);
  out.member("dtype", element_name(tensor.what.type));
  out.numbers("shape", tensor.what.shape.extents());
  if (tensor.is_piece) {
    out.numbers("whole", tensor.whole.extents());
    out.numbers("from", std::span(tensor.box.begin).first(tensor.box.rank));
  }
  if (tensor.declared) {
    out.key("declared");
    out.open('[');
    out.text(tensor.declared->dtype);
    for (const std::uint64_t extent : tensor.declared->shape) out.number(extent);
    out.close(']');
  }
  if (!tensor.role.empty()) out.member("role", tensor.role);
  if (tensor.alias) {
    write_place(out, "alias", *tensor.alias);
  } else {
    out.member("mode", codec::tensor::mode_name(tensor.mode));
    if (tensor.bound != 0) out.member("bound", hex(std::bit_cast<std::uint64_t>(tensor.bound)));
    if (tensor.bound_mode) out.member("bound_of", codec::tensor::mode_name(*tensor.bound_mode));
    if (tensor.base) write_place(out, "base", *tensor.base);
    if (tensor.companion) out.member("companion", *tensor.companion);
    if (tensor.moments) out.numbers("moments", *tensor.moments);
    if (tensor.base_moments) {
      const auto& [first, second] = *tensor.base_moments;
      out.numbers("base_moments",
                  std::array<std::uint64_t, 4>{first.checkpoint, first.tensor, second.checkpoint, second.tensor});
    }
    if (tensor.depth != 0)
      out.numbers("chain", std::array<std::uint64_t, 3>{tensor.depth, tensor.key_bytes, tensor.chain_bytes});
    cursor.write(out, tensor);
    out.member("bytes", tensor.stored_bytes);
  }
  out.member("hash", hex(tensor.content));
  if (tensor.decoded) out.member("decoded", hex(*tensor.decoded));
  out.close('}');
}

}  // namespace

String manifest_text(const Manifest& manifest) {
  String text;
  TextWriter out(text);
  out.open('{');
  out.member("library", manifest.library);
  out.key("name");
  write_name(out, manifest.name);
  if (manifest.writers != 1) out.numbers("writer", std::array<std::uint64_t, 2>{manifest.writer, manifest.writers});
  if (manifest.base) {
    out.key("base");
    write_name(out, *manifest.base);
  }
  if (!manifest.tags.empty()) {
    out.key("tags");
    out.open('{');
    for (const Tag& tag : manifest.tags) out.member(tag.name, tag.text);
    out.close('}');
  }
  out.key("references");
  out.open('[');
  for (const CheckpointName& name : manifest.references) write_name(out, name);
  out.close(']');
  out.key("parts");
  write_parts(out, manifest.parts);
  if (manifest.parity.data != 0) {
    out.numbers("parity", std::array<std::uint64_t, 2>{manifest.parity.data, manifest.parity.parity});
    out.key("parity_files");
    write_parts(out, manifest.parity.files);
  }
  out.key("files");
  out.open('[');
  for (const ManifestFile& file : manifest.files) write_file(out, file);
  out.close(']');
  Cursor cursor;
  out.key("tensors");
  out.open('[');
  for (const ManifestTensor& tensor : manifest.tensors) write_tensor(out, tensor, cursor);
  out.close(']');
  out.key("blobs");
  out.open('[');
  for (const ManifestBlob& blob : manifest.blobs) {
    out.open('{');
    out.member("name", blob.name);
    out.member("bytes", blob.bytes);
    cursor.write(out, blob);
    out.member("hash", hex(blob.content));
    out.close('}');
  }
  out.close(']');
  out.close('}');
  return text;
}

}  // namespace quern::checkpoint

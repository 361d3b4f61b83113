// From a manifest's text to a manifest that later code may rely on.
#include <bit>
#include <cmath>

#include "checkpoint/safetensors/json.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

/// Reads members of objects; the first thing that is wrong is kept and everything after it comes out as 0 or empty.
class ManifestParser {
 public:
  explicit ManifestParser(const JsonValue& root) : root_(root) {}

  Manifest parse();
  const char* problem() const { return problem_; }
  const String& where() const { return where_; }

 private:
  void require(bool holds, const char* what) {
    if (!holds && problem_ == nullptr) problem_ = what;
  }
  const JsonValue& none() const {
    static const JsonValue nothing;
    return nothing;
  }
  const JsonValue& member(const JsonValue& object, std::string_view name, Kind kind) {
    const JsonValue* const found = object.find(name);
    require(found != nullptr && found->is(kind), "a member is missing or of the wrong kind");
    return problem_ == nullptr ? *found : none();
  }
  std::uint64_t number(const JsonValue& value, std::uint64_t limit = UINT64_MAX) {
    require(value.is(Kind::number) && value.number <= limit, "a number is missing or too large");
    return problem_ == nullptr ? value.number : 0;
  }
  std::uint32_t small(const JsonValue& value) { return static_cast<std::uint32_t>(number(value, UINT32_MAX / 2)); }
  std::uint32_t small(const JsonValue& object, std::string_view name) {
    return small(member(object, name, Kind::number));
  }
  std::array<std::uint64_t, 4> numbers(const JsonValue& array, std::size_t count) {
    std::array<std::uint64_t, 4> out{};
    require(array.is(Kind::array) && array.items.size() == count, "an array has the wrong length");
    for (std::size_t i = 0; i < count && problem_ == nullptr; ++i) out[i] = number(array.items[i]);
    return out;
  }
  CheckpointName name(const JsonValue& value);
  Vector<PartInfo> parts(const JsonValue& value);
  ManifestFile file(const JsonValue& value);
  std::optional<TensorPlace> place(const JsonValue& object, std::string_view name);
  Shape shape(const JsonValue& array);
  ContentHash hash(const JsonValue& object, std::string_view name);
  Mode mode(const JsonValue& object, std::string_view name);
  void piece(const JsonValue& value, ManifestTensor& out);
  void declared(const JsonValue& value, ManifestTensor& out);
  ManifestTensor tensor(const JsonValue& value);
  ManifestBlob blob(const JsonValue& value);
  void check(const Manifest& manifest);
  void check_tensor(const Manifest& manifest, std::size_t index);
  template <class Entry>
  void stored_at(const JsonValue& value, Entry& out) {
    if (const JsonValue* const at = value.find("at")) {
      const auto pair = numbers(*at, 2);
      require(pair[0] <= UINT32_MAX / 2 && pair[1] <= UINT32_MAX / 2, "a record's number is too large");
      part_ = static_cast<std::uint32_t>(pair[0]);
      record_ = static_cast<std::uint32_t>(pair[1]);
    }
    out.part = part_;
    out.record = record_;
    const std::uint64_t next = std::uint64_t{record_} + out.records();
    require(next <= UINT32_MAX / 2, "a record's number is too large");
    record_ = static_cast<std::uint32_t>(next);
  }

  const JsonValue& root_;
  const char* problem_ = nullptr;
  String where_;
  std::uint32_t part_ = 0;
  std::uint32_t record_ = 0;
};

CheckpointName ManifestParser::name(const JsonValue& value) {
  CheckpointName out;
  const std::size_t count = value.items.size();
  require(value.is(Kind::array) && (count == 2 || count == 3) && value.items[1].is(Kind::text), "a checkpoint's name");
  if (problem_ != nullptr) return out;
  out.step = number(value.items[0]);
  out.id = value.items[1].text;
  if (count == 3) out.generation = number(value.items[2]);
  require(is_plain_id(out.id), "a checkpoint's name");
  return out;
}

Vector<PartInfo> ManifestParser::parts(const JsonValue& value) {
  Vector<PartInfo> out;
  for (const JsonValue& item : value.items) {
    require(item.is(Kind::array) && item.items.size() == 2 && item.items[1].is(Kind::text), "a part's description");
    if (problem_ != nullptr) break;
    const auto checksum = parse_hex64(item.items[1].text);
    require(checksum.has_value(), "a part's checksum");
    out.push_back({number(item.items[0], UINT64_C(1) << 62), checksum.value_or(0)});
  }
  return out;
}

ManifestFile ManifestParser::file(const JsonValue& value) {
  ManifestFile out;
  out.name = member(value, "name", Kind::text).text;
  require(is_plain_file_name(out.name), "a file's name");
  if (value.find("index") != nullptr) {
    out.kind = ManifestFile::Kind::shard_index;
    out.text = member(value, "index", Kind::text).text;
    return out;
  }
  out.tensors = small(value, "tensors");
  if (value.find("header") != nullptr) {
    out.text = member(value, "header", Kind::text).text;
    return out;
  }
  const std::uint64_t form = number(member(value, "form", Kind::number), 1);
  out.form = static_cast<HeaderForm>(form);
  out.padding = number(member(value, "padding", Kind::number), kMaxSafetensorsHeader);
  if (const JsonValue* const metadata = value.find("metadata")) {
    out.has_metadata = true;
    for (const JsonValue& item : metadata->items) {
      require(item.is(Kind::text), "a file's metadata");
      out.metadata.emplace_back(item.key, item.text);
    }
  }
  return out;
}

std::optional<TensorPlace> ManifestParser::place(const JsonValue& object, std::string_view name) {
  const JsonValue* const found = object.find(name);
  if (found == nullptr) return std::nullopt;
  const auto pair = numbers(*found, 2);
  require(pair[0] <= UINT32_MAX / 2 && pair[1] <= UINT32_MAX / 2, "a reference is too large");
  return TensorPlace{static_cast<std::uint32_t>(pair[0]), static_cast<std::uint32_t>(pair[1])};
}

Shape ManifestParser::shape(const JsonValue& array) {
  require(array.is(Kind::array) && array.items.size() <= kMaxRank, "a shape has more than 8 axes");
  if (problem_ != nullptr) return {};
  Vector<std::uint64_t> extents;
  for (const JsonValue& item : array.items) extents.push_back(number(item));
  const auto made = Shape::try_make(extents);
  require(made.has_value(), "a shape has too many elements");
  return made.value_or(Shape());
}

ContentHash ManifestParser::hash(const JsonValue& object, std::string_view name) {
  const auto found = parse_content_hash(member(object, name, Kind::text).text);
  require(found.has_value(), "a content hash");
  return found.value_or(ContentHash{});
}

void ManifestParser::piece(const JsonValue& value, ManifestTensor& out) {
  const JsonValue* const whole = value.find("whole");
  if (whole == nullptr) return;
  out.is_piece = true;
  out.whole = shape(*whole);
  const Shape from = shape(member(value, "from", Kind::array));
  const std::size_t rank = out.what.shape.rank();
  require(out.whole.rank() == rank && from.rank() == rank, "a piece has another rank than its tensor");
  if (problem_ != nullptr) return;
  out.box.rank = rank;
  for (std::size_t a = 0; a < rank; ++a) {
    require(from[a] <= out.whole[a] && out.what.shape[a] <= out.whole[a] - from[a], "a piece leaves its tensor");
    out.box.begin[a] = from[a];
    out.box.end[a] = from[a] + out.what.shape[a];
  }
}

void ManifestParser::declared(const JsonValue& value, ManifestTensor& out) {
  const JsonValue* const found = value.find("declared");
  if (found == nullptr) return;
  const bool named = found->is(Kind::array) && !found->items.empty() && found->items[0].is(Kind::text) &&
                     !found->items[0].text.empty() && found->items[0].text.find('\0') == String::npos;
  require(named && !out.is_piece && out.what.shape.rank() == 1, "an impossible declaration of a type");
  if (problem_ != nullptr) return;
  out.declared = DeclaredType{found->items[0].text, {}};
  for (std::size_t a = 1; a < found->items.size(); ++a) out.declared->shape.push_back(number(found->items[a]));
  require(fits(*out.declared, out.what.bytes()), "an impossible declaration of a type");
}

Mode ManifestParser::mode(const JsonValue& object, std::string_view name) {
  const String& text = member(object, name, Kind::text).text;
  for (std::uint8_t i = 0; i < codec::tensor::kModes; ++i)
    if (text == codec::tensor::mode_name(static_cast<Mode>(i))) return static_cast<Mode>(i);
  require(false, "an unknown mode");
  return Mode::raw;
}

ManifestTensor ManifestParser::tensor(const JsonValue& value) {
  ManifestTensor out;
  out.name = member(value, "name", Kind::text).text;
  where_ = out.name;
  require(!out.name.empty(), "a tensor has no name");
  const auto type = parse_element(member(value, "dtype", Kind::text).text);
  require(type.has_value(), "an unknown dtype");
  out.what.type = type.value_or(ElementType::u8);
  out.what.shape = shape(member(value, "shape", Kind::array));
  piece(value, out);
  declared(value, out);
  if (const JsonValue* const role = value.find("role")) out.role = role->text;
  out.content = hash(value, "hash");
  if (value.find("decoded") != nullptr) out.decoded = hash(value, "decoded");
  out.alias = place(value, "alias");
  if (out.alias) return out;
  out.mode = mode(value, "mode");
  if (value.find("bound") != nullptr) {
    const auto bits = parse_hex64(member(value, "bound", Kind::text).text);
    require(bits.has_value(), "a bound");
    out.bound = std::bit_cast<double>(bits.value_or(0));
    require(std::isfinite(out.bound) && out.bound > 0, "a bound");
  }
  if (value.find("bound_of") != nullptr) out.bound_mode = mode(value, "bound_of");
  out.base = place(value, "base");
  if (value.find("companion") != nullptr) out.companion = small(value, "companion");
  if (const JsonValue* const moments = value.find("moments")) {
    const auto pair = numbers(*moments, 2);
    require(pair[0] <= UINT32_MAX / 2 && pair[1] <= UINT32_MAX / 2, "a reference is too large");
    out.moments = {static_cast<std::uint32_t>(pair[0]), static_cast<std::uint32_t>(pair[1])};
  }
  if (const JsonValue* const moments = value.find("base_moments")) {
    const auto four = numbers(*moments, 4);
    for (const std::uint64_t n : four) require(n <= UINT32_MAX / 2, "a reference is too large");
    out.base_moments = {TensorPlace{static_cast<std::uint32_t>(four[0]), static_cast<std::uint32_t>(four[1])},
                        TensorPlace{static_cast<std::uint32_t>(four[2]), static_cast<std::uint32_t>(four[3])}};
  }
  if (const JsonValue* const chain = value.find("chain")) {
    const auto triple = numbers(*chain, 3);
    require(triple[0] <= 1024, "a chain is too deep");
    out.depth = static_cast<std::uint32_t>(triple[0]);
    out.key_bytes = triple[1];
    out.chain_bytes = triple[2];
  }
  out.stored_bytes = number(member(value, "bytes", Kind::number), UINT64_C(1) << 62);
  if (out.depth == 0) out.key_bytes = out.stored_bytes;
  require(out.what.chunks() <= UINT32_MAX / 2, "a tensor has too many chunks");
  if (problem_ == nullptr) stored_at(value, out);
  return out;
}

ManifestBlob ManifestParser::blob(const JsonValue& value) {
  ManifestBlob out;
  out.name = member(value, "name", Kind::text).text;
  where_ = out.name;
  out.bytes = number(member(value, "bytes", Kind::number), UINT64_C(1) << 48);
  out.content = hash(value, "hash");
  if (problem_ == nullptr) stored_at(value, out);
  return out;
}

void ManifestParser::check_tensor(const Manifest& manifest, std::size_t index) {
  const ManifestTensor& tensor = manifest.tensors[index];
  where_ = tensor.name;
  for (const auto& place : {tensor.alias, tensor.base}) {
    if (!place) continue;
    require(place->checkpoint <= manifest.references.size(), "a reference to a checkpoint that is not listed");
    if (place->checkpoint == 0) require(place->tensor < index, "a reference to a later tensor");
  }
  if (tensor.base) require(tensor.base->checkpoint != 0, "a base in the same checkpoint");
  const auto is_other = [&](std::uint32_t number) { return number < manifest.tensors.size() && number != index; };
  if (tensor.companion) require(is_other(*tensor.companion), "an impossible companion");
  if (tensor.moments) require(is_other((*tensor.moments)[0]) && is_other((*tensor.moments)[1]), "impossible moments");
  if (tensor.base_moments)
    for (const TensorPlace& place : *tensor.base_moments)
      require(place.checkpoint != 0 && place.checkpoint <= manifest.references.size(),
              "impossible moments of the base");
  if (!tensor.alias) require(tensor.part < manifest.parts.size(), "a part that is not listed");
}

void ManifestParser::check(const Manifest& manifest) {
  require(manifest.writers >= 1 && manifest.writer < manifest.writers, "an impossible writer");
  std::uint64_t in_files = 0;
  for (const ManifestFile& file : manifest.files) in_files += file.tensors;
  require(manifest.files.empty() || in_files == manifest.tensors.size(), "files and tensors do not match");
  const ParityInfo& parity = manifest.parity;
  if (parity.data != 0) {
    require(parity.parity >= 1 && std::uint64_t{parity.data} + parity.parity <= 255 &&
                manifest.parts.size() % parity.data == 0 &&
                parity.files.size() == manifest.parts.size() / parity.data * parity.parity,
            "parity does not match the parts");
  }
  for (std::size_t i = 0; i < manifest.tensors.size() && problem_ == nullptr; ++i) check_tensor(manifest, i);
  for (const ManifestBlob& blob : manifest.blobs)
    require(blob.part < manifest.parts.size(), "a part that is not listed");
}

Manifest ManifestParser::parse() {
  Manifest out;
  require(root_.is(Kind::object), "not an object");
  out.library = member(root_, "library", Kind::text).text;
  if (problem_ == nullptr) out.name = name(member(root_, "name", Kind::array));
  if (const JsonValue* const writer = root_.find("writer")) {
    const auto pair = numbers(*writer, 2);
    require(pair[1] <= 65536 && pair[0] < pair[1], "an impossible writer");
    out.writer = static_cast<std::uint32_t>(pair[0]);
    out.writers = static_cast<std::uint32_t>(pair[1]);
  }
  if (const JsonValue* const base = root_.find("base")) out.base = name(*base);
  if (const JsonValue* const tags = root_.find("tags")) {
    require(tags->is(Kind::object), "tags");
    for (const JsonValue& item : tags->items) {
      require(item.is(Kind::text), "a tag");
      if (problem_ == nullptr) out.tags.push_back({item.key, item.text});
    }
  }
  for (const JsonValue& item : member(root_, "references", Kind::array).items) out.references.push_back(name(item));
  out.parts = parts(member(root_, "parts", Kind::array));
  if (const JsonValue* const parity = root_.find("parity")) {
    const auto pair = numbers(*parity, 2);
    require(pair[0] >= 1 && pair[0] <= 255 && pair[1] <= 255, "impossible parity");
    out.parity.data = static_cast<std::uint32_t>(pair[0]);
    out.parity.parity = static_cast<std::uint32_t>(pair[1]);
    out.parity.files = parts(member(root_, "parity_files", Kind::array));
  }
  for (const JsonValue& item : member(root_, "files", Kind::array).items) {
    if (problem_ != nullptr) return out;
    out.files.push_back(file(item));
  }
  for (const JsonValue& item : member(root_, "tensors", Kind::array).items) {
    if (problem_ != nullptr) return out;
    out.tensors.push_back(tensor(item));
  }
  for (const JsonValue& item : member(root_, "blobs", Kind::array).items) {
    if (problem_ != nullptr) return out;
    out.blobs.push_back(blob(item));
  }
  if (problem_ == nullptr) check(out);
  return out;
}

}  // namespace

Result<Manifest> parse_manifest_text(std::string_view text, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const JsonValue root, parse_json(text, JsonLimits{.depth = 5}, report));
  ManifestParser parser(root);
  Manifest manifest = parser.parse();
  if (parser.problem() != nullptr)
    return fail(report, StatusCode::corrupt,
                join({parser.problem(), parser.where().empty() ? "" : " at '", parser.where(),
                      parser.where().empty() ? "" : "'"}));
  return manifest;
}

}  // namespace quern::checkpoint

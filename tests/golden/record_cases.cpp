// A scan, a set of tensors, sections without a codec, noise, no items at all.
#include "tests/golden/record_cases.h"

#include <bit>

#include "examples/codec/record_codec.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

constexpr ErrorBound kLossless{BoundKind::lossless, 0};

std::uint64_t f32_bits(double x) { return std::bit_cast<std::uint32_t>(static_cast<float>(x)); }
std::uint64_t f64_bits(double x) { return std::bit_cast<std::uint64_t>(x); }

Vector<std::uint8_t> text_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Points of a scanner: several attributes, in frames that do not end where segments do.
RecordCase scan() {
  RecordCase c{
      "scan", "a scan: positions under a bound, times under rel, exact attributes, strings, frames", {}, false, {}};
  RecordSet& set = c.set;
  set.layout.items = 300;
  set.layout.segment_items = 128;
  set.layout.frames = {170, 0, 130};
  const auto place = [](std::uint64_t i) {
    const auto step = static_cast<std::int64_t>(i / 3 % 50) * static_cast<std::int64_t>(1 + i % 3);
    return f32_bits(static_cast<double>(step + swing(1, i, 8)) * 0.03125);
  };
  set.add_values("position", DType::f32, 300, 3, {BoundKind::abs, 0.0078125}, place, 1);
  set.add_values(
      "time", DType::f64, 300, 1, {BoundKind::rel, 0.0009765625},
      [](std::uint64_t i) { return f64_bits(1e9 + static_cast<double>(i) * 0.125); }, 2);
  set.add_values(
      "intensity", DType::u16, 300, 1, kLossless, [](std::uint64_t i) { return 800 + noise(2, i, 90); }, 3);
  set.add_values(
      "class", DType::u8, 300, 1, kLossless, [](std::uint64_t i) { return i / 40; }, 4);
  set.add_strings(
      "h\xC3\xB6he", [](std::uint64_t s) { return text_of(std::string(20 * s, 'a') + "."); }, 9);
  c.metadata = text_of(R"({"scanner":"none"})");
  return c;
}

/// Tensors of every type and of different sizes: sections that end before the set does.
RecordCase tensors() {
  RecordCase c{"tensors", "tensors of all types, of different lengths, in rows", {}, false, {}};
  RecordSet& set = c.set;
  set.layout.items = 40;
  set.layout.segment_items = 16;
  std::uint64_t n = 0;
  for (const DType dtype : testing::all_dtypes()) {
    const std::uint64_t items = n * 40 / 11;
    ++n;
    const auto ramp = [n](std::uint64_t i) { return (i * n) ^ noise(n, i, 4); };
    set.add_values(dtype_name(dtype), dtype, items, n, kLossless, ramp);
  }
  set.add_values("weights", DType::f64, 7, 70, {BoundKind::abs, 0.125},
                 [](std::uint64_t i) { return f64_bits(static_cast<double>(swing(5, i, 2000)) * 0.0625); });
  set.add_values("zeros", DType::i32, 40, 1, kLossless, [](std::uint64_t) { return std::uint64_t{0}; });
  set.add_values("relative", DType::f32, 20, 2, {BoundKind::pwrel, 0.0625},
                 [](std::uint64_t i) { return f32_bits(static_cast<double>(i) * 0.5); });
  return c;
}

/// Values that a quantizer must refuse, and those on both sides of them.
RecordCase specials() {
  RecordCase c{"specials", "NaN with payloads, infinities, -0 and values too large under a bound", {}, false, {}};
  RecordSet& set = c.set;
  set.layout.items = 64;
  set.layout.segment_items = 64;
  constexpr std::uint32_t kBits[] = {0x7FC00001, 0xFF800000, 0x7F800000, 0x80000000, 0x7F7FFFFF, 0x00000001};
  set.add_values("values", DType::f32, 64, 1, {BoundKind::abs, 0.5},
                 [&](std::uint64_t i) { return i % 5 == 2 ? kBits[i / 5 % 6] : f32_bits(static_cast<double>(i)); });
  set.add_values("all refused", DType::f64, 64, 1, {BoundKind::abs, 1e-300},
                 [](std::uint64_t i) { return f64_bits(static_cast<double>(i) * 1e300); });
  return c;
}

RecordCase noisy() {
  RecordCase c{"noise", "parts that a codec makes no smaller, beside one that it does", {}, false, {}};
  RecordSet& set = c.set;
  set.layout.items = 100;
  set.layout.segment_items = 50;
  set.add_values("noise", DType::u32, 100, 1, kLossless, [](std::uint64_t i) { return noise(7, i, 0); });
  set.add_values("ramp", DType::i32, 100, 1, kLossless, [](std::uint64_t i) { return i * 3; });
  set.add_strings("one byte", [](std::uint64_t) { return text_of("x"); });
  return c;
}

RecordCase stored() {
  RecordCase c{"stored", "without a codec: every part as it is", {}, true, {}};
  RecordSet& set = c.set;
  set.layout.items = 10;
  set.layout.segment_items = 4;
  set.add_values("a", DType::i16, 10, 1, kLossless, [](std::uint64_t i) { return i; });
  set.add_values("b", DType::f32, 3, 2, {BoundKind::abs, 1},
                 [](std::uint64_t i) { return f32_bits(static_cast<double>(i)); });
  set.add_strings("c", [](std::uint64_t s) { return text_of(std::string(s, 'z')); });
  return c;
}

RecordCase empty() {
  RecordCase c{"empty", "no items, and so no segments", {}, false, {}};
  c.set.layout.segment_items = 100;
  c.set.add_values("values", DType::f32, 0, 3, {BoundKind::rel, 0.5}, [](std::uint64_t) { return std::uint64_t{0}; });
  c.set.add_strings("strings", [](std::uint64_t) { return Vector<std::uint8_t>(); });
  return c;
}

}  // namespace

void put_bits(Vector<std::uint8_t>& out, std::uint64_t bits, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
}

std::vector<RecordCase> record_cases() {
  std::vector<RecordCase> cases;
  cases.push_back(scan());
  cases.push_back(tensors());
  cases.push_back(specials());
  cases.push_back(noisy());
  cases.push_back(stored());
  cases.push_back(empty());
  return cases;
}

RecordCase record_case(const std::string& name) {
  for (RecordCase& c : record_cases())
    if (c.name == name) return std::move(c);
  return {};
}

const RecordRegistry& record_codecs() {
  static const RecordCodec* const codecs[] = {&codec::packing::record_codec()};
  static const RecordRegistry registry(codecs);
  return registry;
}

SectionViews::SectionViews(const RecordSet& set) {
  for (const auto& strings : set.strings) strings_.emplace_back(strings.begin(), strings.end());
  for (std::size_t i = 0; i < set.values.size(); ++i) data_.push_back({set.values[i], strings_[i]});
}

Result<Vector<std::uint8_t>> encode(const RecordCase& c, const Execution& execution) {
  const SectionViews views(c.set);
  RecordOptions options;
  if (!c.stored) options.codec = record_codecs().all().front();
  options.metadata = c.metadata;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  QUERN_RETURN_IF_ERROR(compress_records(c.set.layout, views.data(), options, execution, sink).status());
  return stream;
}

Result<RecordSet> decode_records(std::span<const std::uint8_t> bytes, const RecordRegistry& registry,
                                 const Execution& execution, std::uint64_t most_bytes) {
  MemorySource source(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto reader, RecordReader::open(source, registry, execution));
  RecordSet set;
  set.layout = reader->info().layout;
  set.values.resize(set.layout.sections.size());
  set.strings.resize(set.layout.sections.size());
  std::uint64_t left = most_bytes;
  for (std::size_t i = 0; i < set.layout.sections.size(); ++i) {
    const RecordSection& section = set.layout.sections[i];
    if (section.form == SectionForm::values) {
      const std::uint64_t size = section.items * section.item_bytes();
      if (size > left) return Status(StatusCode::destination_too_small, "more values than are wanted");
      left -= size;
      set.values[i].resize(static_cast<std::size_t>(size));
      QUERN_RETURN_IF_ERROR(reader->read_items(i, 0, section.items, set.values[i]));
      continue;
    }
    for (std::uint64_t s = 0; s < set.layout.segments(); ++s) {
      QUERN_ASSIGN_OR_RETURN(auto text, reader->read_string(i, s));
      if (text.size() > left) return Status(StatusCode::destination_too_small, "more bytes than are wanted");
      left -= text.size();
      set.strings[i].push_back(std::move(text));
    }
  }
  return set;
}

}  // namespace quern::golden

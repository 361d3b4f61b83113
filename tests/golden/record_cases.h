// The record sets behind the golden streams of records, and what the tests of records share: sets that own their data,
// encoding and decoding them whole. As golden_cases.h: integers and a hash decide every value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <quern/records.h>

namespace quern::golden {

/// A record set that owns its data.
struct RecordSet {
  RecordLayout layout;
  std::vector<Vector<std::uint8_t>> values;                ///< by section; empty of byte sections
  std::vector<std::vector<Vector<std::uint8_t>>> strings;  ///< by section and segment; empty of values

  /// Adds a section whose element i of item n is value(n * item_elems + i), of the low bits where integers are asked
  /// for.
  template <class Value>
  void add_values(const char* name, DType dtype, std::uint64_t items, std::uint64_t item_elems, ErrorBound bound,
                  Value value, std::uint16_t tag = 0);
  /// Adds a byte section whose string in segment s is text(s).
  template <class Text>
  void add_strings(const char* name, Text text, std::uint16_t tag = 0);
};

struct RecordCase {
  std::string name;     ///< file name without its ending
  std::string feature;  ///< what it is there for
  RecordSet set;
  bool stored = false;  ///< without a codec
  Vector<std::uint8_t> metadata;
};

/// Every golden stream of records, in the order of the manifest.
std::vector<RecordCase> record_cases();
/// The case of this name; it exists.
RecordCase record_case(const std::string& name);

/// The codecs that golden streams of records are made with: the example's.
const RecordRegistry& record_codecs();

/// Views of a set's data for compress_records; valid as long as the set.
class SectionViews {
 public:
  explicit SectionViews(const RecordSet& set);
  std::span<const SectionData> data() const { return data_; }

 private:
  std::vector<std::vector<std::span<const std::uint8_t>>> strings_;
  std::vector<SectionData> data_;
};

Result<Vector<std::uint8_t>> encode(const RecordCase& c, const Execution& execution = {});

/// Decodes every section of a stream that begins at the first byte. Fails with `destination_too_small` when that takes
/// more than `most_bytes`.
Result<RecordSet> decode_records(std::span<const std::uint8_t> bytes, const RecordRegistry& registry,
                                 const Execution& execution, std::uint64_t most_bytes);

/// Adds elements of a type from 64-bit patterns.
void put_bits(Vector<std::uint8_t>& out, std::uint64_t bits, std::size_t width);

template <class Value>
void RecordSet::add_values(const char* name, DType dtype, std::uint64_t items, std::uint64_t item_elems,
                           ErrorBound bound, Value value, std::uint16_t tag) {
  RecordSection section;
  section.name = name;
  section.tag = tag;
  section.dtype = dtype;
  section.items = items;
  section.item_elems = item_elems;
  section.requested = bound;
  layout.sections.push_back(section);
  Vector<std::uint8_t> bytes;
  for (std::uint64_t i = 0; i < items * item_elems; ++i) put_bits(bytes, value(i), dtype_bytes(dtype));
  values.push_back(std::move(bytes));
  strings.emplace_back();
}

template <class Text>
void RecordSet::add_strings(const char* name, Text text, std::uint16_t tag) {
  RecordSection section;
  section.name = name;
  section.tag = tag;
  section.form = SectionForm::bytes;
  layout.sections.push_back(section);
  values.emplace_back();
  auto& own = strings.emplace_back();
  for (std::uint64_t s = 0; s < layout.segments(); ++s) own.push_back(text(s));
}

}  // namespace quern::golden

#include "codecs/lidar/columns/column_coder.h"

#include <algorithm>
#include <array>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/coding/context_mixer.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lidar {
namespace {

/// First byte of a column.
enum class Form : std::uint8_t { raw = 0, bytes = 1, table = 2 };

constexpr std::size_t kMostEntries = 256;

/// Codes bytes one after another, each bit from the most significant down.
class ByteModel {
 public:
  explicit ByteModel(std::uint64_t bytes) : mixer_(table_bits_for(bytes), kFirstSets, kSecondSets) {}

  /// `plane`: which byte of the element; `above`: the byte before it in the element, coded already.
  template <class Coder>
  std::uint8_t code(Coder& coder, unsigned plane, std::uint8_t above, unsigned bits, std::uint8_t value = 0) {
    std::array<std::uint8_t, 4>& past = past_[plane];
    const unsigned mean = (2U * past[0] + past[1] + past[2] + 2) / 4;
    unsigned path = 1;
    for (unsigned left = bits; left-- > 0;) {
      const std::uint64_t here = path | std::uint64_t{plane} << 8;
      DecisionContext<kContexts> seen;
      seen.contexts = {
          context_hash(here, 1),
          context_hash(here | std::uint64_t{past[0]} << 16, 2),
          context_hash(here | std::uint64_t{past[0]} << 16 | std::uint64_t{past[1]} << 24, 3),
          context_hash(here | std::uint64_t{mean} << 16 | std::uint64_t{above} << 24, 4),
          context_hash(here | std::uint64_t{above} << 16, 5),
          context_hash(here | std::uint64_t{mean >> 1} << 16 | std::uint64_t{spread(past)} << 24, 6),
      };
      seen.first_set = plane * 8 + left;
      seen.second_set = spread(past);
      seen.map = path & 255;
      path = path << 1 | mixer_.code(coder, seen, value >> left & 1);
    }
    const auto result = static_cast<std::uint8_t>(path & ((1U << bits) - 1));
    past = {result, past[0], past[1], past[2]};
    return result;
  }

 private:
  static constexpr unsigned kContexts = 6;
  static constexpr std::uint32_t kFirstSets = 64;
  static constexpr std::uint32_t kSecondSets = 9;

  static unsigned spread(const std::array<std::uint8_t, 4>& past) {
    const auto [least, most] = std::minmax({past[0], past[1], past[2]});
    return kernels::bit_length(static_cast<std::uint32_t>(most - least));
  }

  ContextMixer<kContexts> mixer_;
  std::array<std::array<std::uint8_t, 4>, 8> past_{};
};

std::uint64_t element(std::span<const std::uint8_t> values, std::size_t i, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned b = bytes; b-- > 0;) value = value << 8 | values[i * bytes + b];
  return value;
}
void put_element(std::span<std::uint8_t> values, std::size_t i, unsigned bytes, std::uint64_t value) {
  for (unsigned b = 0; b < bytes; ++b) values[i * bytes + b] = static_cast<std::uint8_t>(value >> (8 * b));
}

/// Distinct values, rising; more than kMostEntries are given up.
Vector<std::uint64_t> distinct_values(std::span<const std::uint8_t> values, unsigned bytes) {
  Vector<std::uint64_t> table;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < values.size() / bytes && table.size() <= kMostEntries; ++i) {
    const std::uint64_t value = element(values, i, bytes);
    if (!table.empty() && value == last) continue;
    last = value;
    const auto at = std::lower_bound(table.begin(), table.end(), value);
    if (at == table.end() || *at != value) table.insert(at, value);
  }
  return table;
}

template <class Coder>
void code_bytes(Coder& coder,
                std::conditional_t<Coder::kDecodes, std::span<std::uint8_t>, std::span<const std::uint8_t>> values,
                unsigned bytes) {
  ByteModel model(values.size());
  for (std::size_t i = 0; i < values.size() / bytes && coder.good(); ++i) {
    std::uint8_t above = 0;
    for (unsigned b = bytes; b-- > 0;) {
      above = model.code(coder, b, above, 8, values[i * bytes + b]);
      if constexpr (Coder::kDecodes) values[i * bytes + b] = above;
    }
  }
}

unsigned index_bits(std::size_t entries) {
  return std::max(1U, kernels::bit_length(static_cast<std::uint32_t>(entries - 1)));
}

Vector<std::uint8_t> encode_table(std::span<const std::uint8_t> values, unsigned bytes,
                                  std::span<const std::uint64_t> table) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.u8(static_cast<std::uint8_t>(Form::table));
  writer.u8(static_cast<std::uint8_t>(table.size() - 1));
  for (const std::uint64_t value : table) writer.unsigned_of(value, bytes);
  if (table.size() == 1) return out;
  BitWriter coder(out);
  ByteModel model(values.size() / bytes);
  for (std::size_t i = 0; i < values.size() / bytes; ++i) {
    const auto at = std::lower_bound(table.begin(), table.end(), element(values, i, bytes)) - table.begin();
    model.code(coder, 0, 0, index_bits(table.size()), static_cast<std::uint8_t>(at));
  }
  coder.finish();
  return out;
}

Status corrupt() { return Status(StatusCode::corrupt, "a column's bytes are not what an encoder writes"); }

Status decode_table(Reader& reader, unsigned bytes, std::span<std::uint8_t> values) {
  QUERN_ASSIGN_OR_RETURN(const std::size_t entries, reader.u8());
  std::array<std::uint64_t, kMostEntries> table{};
  for (std::size_t i = 0; i <= entries; ++i) {
    QUERN_ASSIGN_OR_RETURN(table[i], reader.unsigned_of(bytes));
  }
  const std::size_t count = values.size() / bytes;
  if (entries == 0) {
    for (std::size_t i = 0; i < count; ++i) put_element(values, i, bytes, table[0]);
    return reader.expect_end();
  }
  QUERN_ASSIGN_OR_RETURN(const auto rest, reader.bytes(reader.remaining()));
  BitReader coder(rest);
  ByteModel model(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = model.code(coder, 0, 0, index_bits(entries + 1));
    if (at > entries || !coder.good()) return corrupt();
    put_element(values, i, bytes, table[at]);
  }
  return coder.has_more() ? corrupt() : Status();
}

}  // namespace

Vector<std::uint8_t> encode_column(std::span<const std::uint8_t> values, unsigned element_bytes) {
  Vector<std::uint8_t> out;
  if (values.empty()) return Vector<std::uint8_t>(1, static_cast<std::uint8_t>(Form::raw));
  const Vector<std::uint64_t> table = distinct_values(values, element_bytes);
  if (table.size() <= kMostEntries) {
    out = encode_table(values, element_bytes, table);
  } else {
    out.push_back(static_cast<std::uint8_t>(Form::bytes));
    BitWriter coder(out);
    code_bytes(coder, values, element_bytes);
    coder.finish();
  }
  if (out.size() <= values.size()) return out;
  out.assign(1, static_cast<std::uint8_t>(Form::raw));
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

Status decode_column(std::span<const std::uint8_t> bytes, unsigned element_bytes, std::span<std::uint8_t> values) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t form, reader.u8());
  if (form == static_cast<std::uint8_t>(Form::table)) return decode_table(reader, element_bytes, values);
  QUERN_ASSIGN_OR_RETURN(const auto rest, reader.bytes(reader.remaining()));
  if (form == static_cast<std::uint8_t>(Form::raw)) {
    if (rest.size() != values.size()) return corrupt();
    std::copy(rest.begin(), rest.end(), values.begin());
    return {};
  }
  if (form != static_cast<std::uint8_t>(Form::bytes)) return corrupt();
  BitReader coder(rest);
  code_bytes(coder, values, element_bytes);
  return !coder.good() || coder.has_more() ? corrupt() : Status();
}

}  // namespace quern::codec::lidar

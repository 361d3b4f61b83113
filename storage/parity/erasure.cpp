// Erasure coding by ISA-L.
#include "storage/parity/erasure.h"

#ifdef QUERN_HAVE_ISAL
#include <isa-l/erasure_code.h>
#endif

namespace quern::storage {

#ifdef QUERN_HAVE_ISAL

namespace {

/// out[r] = sum over j of rows[r * sources + j] * in[j].
void multiply(std::size_t bytes, std::span<std::uint8_t* const> in, Vector<std::uint8_t>& rows,
              std::span<std::uint8_t* const> out) {
  const int sources = static_cast<int>(in.size()), count = static_cast<int>(out.size());
  Vector<std::uint8_t> tables(32 * in.size() * out.size());
  Vector<std::uint8_t*> from(in.begin(), in.end()), to(out.begin(), out.end());
  ec_init_tables(sources, count, rows.data(), tables.data());
  ec_encode_data(static_cast<int>(bytes), sources, count, tables.data(), from.data(), to.data());
}

Vector<std::uint8_t> coding_matrix(std::uint32_t data, std::uint32_t parity) {
  Vector<std::uint8_t> matrix(std::size_t{data + parity} * data);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(data + parity), static_cast<int>(data));
  return matrix;
}

}  // namespace

bool has_erasure_coding() { return true; }

Status make_parity(std::uint32_t data, std::uint32_t parity, std::size_t bytes,
                   std::span<std::uint8_t* const> columns) {
  if (bytes == 0) return {};
  const Vector<std::uint8_t> matrix = coding_matrix(data, parity);
  Vector<std::uint8_t> rows(matrix.begin() + static_cast<std::ptrdiff_t>(std::size_t{data} * data), matrix.end());
  multiply(bytes, columns.first(data), rows, columns.subspan(data, parity));
  return {};
}

Status rebuild_columns(std::uint32_t data, std::uint32_t parity, std::size_t bytes,
                       std::span<std::uint8_t* const> columns, std::span<const bool> lost) {
  if (bytes == 0) return {};
  const Vector<std::uint8_t> matrix = coding_matrix(data, parity);
  Vector<std::uint8_t*> sources, lost_data, lost_parity;
  Vector<std::uint8_t> chosen, parity_rows;
  Vector<std::uint32_t> lost_index;
  const auto row = [&](std::uint32_t i) { return matrix.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * data); };
  for (std::uint32_t i = 0; i < data + parity; ++i) {
    if (!lost[i] && sources.size() < data) {
      sources.push_back(columns[i]);
      chosen.insert(chosen.end(), row(i), row(i) + data);
    } else if (lost[i] && i < data) {
      lost_data.push_back(columns[i]);
      lost_index.push_back(i);
    } else if (lost[i]) {
      lost_parity.push_back(columns[i]);
      parity_rows.insert(parity_rows.end(), row(i), row(i) + data);
    }
  }
  if (sources.size() < data) return Status(StatusCode::corrupt, "more columns are lost than parity can bring back");
  if (!lost_data.empty()) {
    Vector<std::uint8_t> inverse(chosen.size());
    if (gf_invert_matrix(chosen.data(), inverse.data(), static_cast<int>(data)) != 0)
      return Status(StatusCode::internal, "a coding matrix cannot be inverted");
    Vector<std::uint8_t> rows;
    for (const std::uint32_t i : lost_index) {
      const auto from = inverse.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * data);
      rows.insert(rows.end(), from, from + data);
    }
    multiply(bytes, sources, rows, lost_data);
  }
  if (!lost_parity.empty()) multiply(bytes, columns.first(data), parity_rows, lost_parity);
  return {};
}

#else

namespace {
Status absent() { return Status(StatusCode::unsupported, "this build has no parity: it was made without ISA-L"); }
}  // namespace

bool has_erasure_coding() { return false; }
Status make_parity(std::uint32_t, std::uint32_t, std::size_t, std::span<std::uint8_t* const>) { return absent(); }
Status rebuild_columns(std::uint32_t, std::uint32_t, std::size_t, std::span<std::uint8_t* const>,
                       std::span<const bool>) {
  return absent();
}

#endif

}  // namespace quern::storage

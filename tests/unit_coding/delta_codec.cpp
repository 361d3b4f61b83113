#include "tests/unit_coding/delta_codec.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "coding/context.h"
#include "coding/distribution_fit.h"
#include "coding/stream_reader.h"
#include "coding/stream_writer.h"
#include "coding/symbol_counts.h"
#include "coding/token_tables.h"
#include "libcompress/format/bit_stream.h"

namespace quern::coding::test {
namespace {

using kernels::kContextBins;

constexpr std::uint32_t kNear = 700;  // weights of contexts, in units of 2^-kContextBits
constexpr std::uint32_t kFar = 300;
constexpr std::uint32_t kConstant = 900;
constexpr std::int64_t kMost = (1 << 18) - 1;  // larger magnitudes count as this

std::uint32_t capped(std::int64_t residual) {
  return static_cast<std::uint32_t>(std::min(residual < 0 ? -residual : residual, kMost));
}

std::uint32_t context_sum(std::uint32_t near, std::uint32_t far) { return kConstant + kNear * near + kFar * far; }

/// Context sum of element x of row r, from residuals that are known when it is decoded.
std::uint32_t context_of(const std::int32_t* residuals, const Grid& grid, Turns turns, std::size_t r, std::size_t x) {
  const std::int32_t* const row = residuals + r * grid.columns;
  if (turns == Turns::rows) return context_sum(x > 0 ? capped(row[x - 1]) : 0, x > 1 ? capped(row[x - 2]) : 0);
  if (r == 0) return context_sum(0, 0);
  const std::int32_t* const above = row - grid.columns;
  return context_sum(capped(above[x]), x + 1 < grid.columns ? capped(above[x + 1]) : 0);
}

std::vector<std::int32_t> residuals_of(std::span<const double> values, const Grid& grid, const ValueFormat& format) {
  std::vector<std::int32_t> residuals(grid.elems());
  for (std::size_t r = 0; r < grid.rows; ++r) {
    std::int32_t last = 0;
    for (std::size_t x = 0; x < grid.columns; ++x) {
      const std::size_t i = r * grid.columns + x;
      const auto code = static_cast<std::int32_t>(std::lrint((values[i] - format.base) / format.step));
      residuals[i] = code - last;
      last = code;
    }
  }
  return residuals;
}

Status ended(bool failed, bool finished) {
  if (failed) return Status(StatusCode::corrupt, "delta: a stream is too short");
  return finished ? Status() : Status(StatusCode::corrupt, "delta: a stream does not end where it should");
}

Status decode_rows(StreamReader& streams, const ServingTables& serving, const Grid& grid, std::int32_t* residuals) {
  for (std::size_t r = 0; r < grid.rows; ++r) {
    kernels::RansSource& source = streams.sources[r & streams.mask];
    for (std::size_t x = 0; x < grid.columns; ++x) {
      const std::uint32_t bin = kernels::context_bin(context_of(residuals, grid, Turns::rows, r, x));
      residuals[r * grid.columns + x] = static_cast<std::int32_t>(kernels::decode_residual(source, *serving[bin]));
    }
    if (source.failed) return ended(true, false);
  }
  return ended(false, streams.finished());
}

Status decode_points(const StreamReader& streams, const kernels::TokenTable* tables, const ServingTables& serving,
                     const Grid& grid, const kernels::ResidualKernels& kernels, std::int32_t* residuals) {
  const kernels::ResidualTables by_bin(tables, serving);
  kernels::DecodeStreams states(streams.used());
  std::vector<std::uint8_t> bins(grid.columns);
  for (std::size_t r = 0; r < grid.rows; ++r) {
    for (std::size_t x = 0; x < grid.columns; ++x)
      bins[x] = static_cast<std::uint8_t>(kernels::context_bin(context_of(residuals, grid, Turns::points, r, x)));
    kernels.decode_residuals(states, by_bin, bins.data(), grid.columns, r * grid.columns, residuals + r * grid.columns);
    if (states.failed != 0) return ended(true, false);
  }
  return ended(false, states.finished());
}

}  // namespace

Vector<std::uint8_t> encode(std::span<const double> values, const Grid& grid, const ValueFormat& format, Turns turns,
                            const kernels::ResidualKernels& kernels) {
  const std::vector<std::int32_t> residuals = residuals_of(values, grid, format);
  std::vector<std::uint32_t> sums(grid.elems());
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = context_of(residuals.data(), grid, turns, i / grid.columns, i % grid.columns);
  std::vector<std::uint16_t> symbols(grid.elems());
  kernels.symbols(sums.data(), residuals.data(), symbols.size(), symbols.data());

  Arena needed(nullptr);
  static_cast<void>(SymbolCounts(needed));
  static_cast<void>(take_entries(needed));
  std::vector<std::uint8_t> memory(needed.used() + 64);
  Arena arena(memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64);
  SymbolCounts counts(arena);
  const kernels::ResidualEntries entries = take_entries(arena);
  counts.clear();
  counts.add(symbols.data(), symbols.size());
  BinCounts by_bin{};
  counts.add_to(by_bin);
  Distributions distributions{};
  const std::uint64_t bytes = fit_distributions(by_bin, distributions) >> 15;
  fill_token_entries(distributions, entries);

  Vector<std::uint8_t> out;
  BitWriter bits(out);
  write_value_format(format, bits);
  write_distributions(distributions, bits);
  std::vector<std::uint16_t> room(kernels::kResidualWords * grid.elems() + kSpareWords);
  const unsigned stream_bits = choose_stream_bits(bytes, turns == Turns::rows ? grid.rows : grid.elems());
  StreamWriter streams(room, stream_bits);
  const bool written =
      turns == Turns::rows
          ? streams.encode_rows(kernels, entries, {residuals.data(), symbols.data(), grid.rows, nullptr, grid.columns})
          : streams.encode(kernels, entries, symbols.data(), residuals.data(), symbols.size(), 0) && streams.finish();
  if (!written) return {};
  Writer writer(out);
  writer.u8(static_cast<std::uint8_t>(stream_bits));
  streams.append_sizes(writer);
  streams.append_words(out);
  return out;
}

std::vector<Vector<std::uint8_t>> encode_pieces(std::span<const double> values, const Grid& grid,
                                                const ValueFormat& format, std::size_t pieces, unsigned threads) {
  std::vector<Vector<std::uint8_t>> out(pieces);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t p = next++; p < pieces; p = next++) {
      const std::size_t begin = grid.rows * p / pieces;
      const Grid piece{grid.rows * (p + 1) / pieces - begin, grid.columns};
      out[p] = encode(values.subspan(begin * grid.columns, piece.elems()), piece, format,
                      p % 2 == 0 ? Turns::rows : Turns::points, kernels::residual_kernels(kernels::best_isa()));
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return out;
}

Status decode(std::span<const std::uint8_t> bytes, const Grid& grid, Turns turns,
              const kernels::ResidualKernels& kernels, std::span<double> values) {
  BitReader bits(bytes);
  ValueFormat format;
  if (!read_value_format(bits, format)) return Status(StatusCode::corrupt, "delta: a number is out of range");
  Distributions distributions{};
  QUERN_RETURN_IF_ERROR(read_distributions(bits, distributions));
  if (bits.failed()) return Status(StatusCode::corrupt, "delta: cut short");
  StreamReader streams;
  QUERN_RETURN_IF_ERROR(streams.open(bytes.subspan(bits.bytes_used())));
  std::vector<kernels::TokenTable> tables(kContextBins);
  ServingTables serving{};
  QUERN_RETURN_IF_ERROR(fill_token_tables(distributions, tables.data(), serving));
  std::vector<std::int32_t> residuals(grid.elems());
  QUERN_RETURN_IF_ERROR(turns == Turns::rows
                            ? decode_rows(streams, serving, grid, residuals.data())
                            : decode_points(streams, tables.data(), serving, grid, kernels, residuals.data()));
  for (std::size_t r = 0; r < grid.rows; ++r) {
    std::int64_t code = 0;
    for (std::size_t x = 0; x < grid.columns; ++x) {
      const std::size_t i = r * grid.columns + x;
      code += residuals[i];
      values[i] = format.base + static_cast<double>(code) * format.step;
    }
  }
  return {};
}

std::size_t most_decode_bytes(const Grid& grid) {
  constexpr std::size_t kRounding = 3 * 64;  // of three allocations, by the heap
  return kContextBins * sizeof(kernels::TokenTable) + grid.elems() * sizeof(std::int32_t) + grid.columns + kRounding;
}

}  // namespace quern::coding::test

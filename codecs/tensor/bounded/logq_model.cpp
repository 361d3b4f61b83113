// The side of logq, and what is known of a chunk's bins before they are coded.
#include "codecs/tensor/bounded/logq_model.h"

namespace quern::codec::tensor {
namespace {

std::int32_t rounded_mean(std::int64_t sum, std::int64_t count) {
  const std::int64_t twice = 2 * sum + count;
  return static_cast<std::int32_t>(twice / (2 * count) - (twice % (2 * count) < 0 ? 1 : 0));
}

std::int64_t largest(std::span<const std::int32_t> numbers) {
  std::int32_t most = 0;
  for (const std::int32_t n : numbers) most = std::max(most, std::abs(n));
  return most;
}

}  // namespace

void put_logq_side(const LogqModel& model, Vector<std::uint8_t>& side) {
  append_varint(model.reach, side);
  append_varint(kernels::zigzag(static_cast<std::uint64_t>(model.bins.first())), side);
  append_varint(model.bins.count(), side);
  if (model.bins.count() == 0) return;
  append_varint(static_cast<std::uint64_t>(model.center), side);
  append_number(static_cast<std::uint8_t>(model.base_share), 1, side);
  for (const std::int32_t s : model.above_shares) append_number(static_cast<std::uint8_t>(s), 1, side);
  BitWriter writer(side);
  writer.put(model.column_means.empty() ? 0 : 1, 1);
  if (!model.column_means.empty()) put_numbers(model.column_means, 0, writer);
  put_model(model.residuals, writer);
}

Status get_logq_side(const TensorDescription& description, std::span<const std::uint8_t> side, LogqModel& model) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  ByteReader reader(side);
  model.reach = reader.varint();
  const auto first = static_cast<std::int64_t>(kernels::unzigzag(reader.varint()));
  const std::uint64_t count = reader.varint();
  if (!reader.ok()) return status_of(reader.fault());
  QUERN_ASSIGN_OR_RETURN(model.bins, LogBins::make(model.reach, first, count));
  if (count == 0) {
    reader.expect_end();
    return status_of(reader.fault());
  }
  model.center = static_cast<std::int32_t>(reader.varint(count - 1));
  model.base_share = static_cast<std::int8_t>(reader.u8());
  for (std::int32_t& s : model.above_shares) s = static_cast<std::int8_t>(reader.u8());
  if (!reader.ok()) return status_of(reader.fault());
  const std::uint64_t width = plane_width(description);
  BitReader bits(reader.bytes(reader.remaining()), kMostGolombWidth);
  if (bits.get(1) != 0) {
    if (width > kMaxPlaneColumns) return bad("tensor: means of too many columns");
    model.column_means.resize(static_cast<std::size_t>(width));
    get_numbers(model.column_means, 0, bits);
    for (const std::int32_t mean : model.column_means)
      if (mean < -kMaxMean || mean > kMaxMean) return bad("tensor: the mean of a column is out of range");
  }
  return get_model(bits, width, model.residuals);
}

void find_base(const LogqModel& model, std::span<const std::uint8_t> base, std::span<std::int32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t bin = model.bins.nearest_or_last(bits_at(base, i));
    out[i] = bin == LogBins::kNone ? 0 : (static_cast<std::int32_t>(bin) - model.center) * kUnits;
  }
}

void find_known(const LogqModel& model, std::span<const std::uint8_t> base, std::span<std::int32_t> known) {
  find_base(model, base, known);
  for (std::int32_t& k : known) k = share(model.base_share, k);
}

void find_row_means(const LogqModel& model, const LogqZeros& zeros, LogqChunk& chunk) {
  const auto& kernels = log_kernels();
  chunk.row_means.resize(chunk.piece.rows());
  for_rows(chunk.piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    std::size_t regular = 0;
    const std::int64_t sum = kernels.sum(chunk.bins.data() + begin, zeros.or_zeros(chunk.known, begin),
                                         zeros.or_zeros(model.column_means, column), end - begin, regular);
    chunk.row_means[row] = regular == 0 ? model.center * kUnits : rounded_mean(sum, static_cast<std::int64_t>(regular));
  });
}

std::size_t deviations_needed(const PlanePiece& piece) { return piece.elems + kAbove * row_length(piece); }

bool needs_wide_sums(const LogqModel& model, const LogqChunk& chunk) {
  std::int64_t shares = 0;
  for (const std::int32_t s : model.above_shares) shares += std::abs(s);
  const std::int64_t bins = std::int64_t{kUnits} * model.bins.count();
  const std::int64_t known = model.base_share == 0 ? 0 : 2 * bins + 1;  // a share is less than two wholes
  const std::int64_t deviation = bins + largest(chunk.row_means) + largest(model.column_means) + known;
  return shares * deviation + 32 > INT32_MAX;
}

}  // namespace quern::codec::tensor

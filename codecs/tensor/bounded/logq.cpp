// Second moments in log space: an element's bin is predicted from the mean of its row (stored in the chunk) and of its
// column (stored in the side), from the bin of the base, and from how far the three elements above lie from their own
// prediction. Everything after the bins is integers.
#include "codecs/tensor/bounded/logq_model.h"

namespace quern::codec::tensor {
namespace {

Status plan_logq(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  const double r = plan.request.bound;
  const TensorDescription& description = plan.description;
  QUERN_RETURN_IF_ERROR(check_bounded(description, r >= kMinLogBound && r <= kMaxLogBound));
  std::uint32_t lowest = UINT32_MAX;
  std::uint32_t highest = 0;
  bound_kernels().positive_range(inputs.values.data(), inputs.values.size() / 4, lowest, highest);
  LogqModel model;
  model.reach = reach_of(r);
  if (highest != 0) model.bins = LogBins::covering(model.reach, lowest, highest);
  if (model.bins.count() == 0) {
    put_logq_side(model, plan.side);
    return {};
  }
  const Vector<std::uint64_t> fitted = chunks_to_fit(description);
  AlignedBuffer memory;
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(fitted.size() * std::size_t{description.chunk_bytes(0)}, fitted.size()));
  Vector<LogqChunk> chunks(fitted.size());
  Vector<std::span<const std::uint8_t>> bases;
  std::int64_t sum = 0;
  std::int64_t regular = 0;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    LogqChunk& chunk = chunks[c];
    chunk.piece = piece_of(description, fitted[c]);
    chunk.bins = scratch.take<std::int32_t>(chunk.piece.elems);
    chunk.special = model.bins.find_all(bytes_of(description, fitted[c], inputs.values), chunk.bins);
    for (const std::int32_t bin : chunk.bins) sum += bin < 0 ? 0 : bin;
    regular += static_cast<std::int64_t>(chunk.piece.elems - chunk.special);
    if (!inputs.base.empty()) bases.push_back(bytes_of(description, fitted[c], inputs.base));
  }
  model.center = regular == 0 ? 0 : static_cast<std::int32_t>(sum / regular);
  QUERN_RETURN_IF_ERROR(fit_logq(chunks, bases, plane_width(description), model));
  put_logq_side(model, plan.side);
  return {};
}

Result<std::size_t> encode_logq(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& input,
                                std::span<std::uint8_t> out, AlignedBuffer& memory) {
  LogqModel model;
  QUERN_RETURN_IF_ERROR(get_logq_side(plan.description, plan.side, model));
  model.bins.make_index();
  LogqChunk chunk;
  chunk.piece = piece_of(plan.description, input.index);
  const std::size_t elems = chunk.piece.elems;
  const std::size_t deviation_count = deviations_needed(chunk.piece);
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(encoder_scratch_bytes(elems) + 4 * (3 * elems + deviation_count), 7));
  chunk.bins = scratch.take<std::int32_t>(elems);
  chunk.special = model.bins.find_all(input.values, chunk.bins);
  SpecialRuns special;
  if (chunk.special != 0)
    for (std::size_t i = 0; i < elems; ++i)
      if (chunk.bins[i] < 0) special.add(static_cast<std::uint32_t>(i), bits_at(input.values, i));
  if (!input.decoded.empty()) {
    log_kernels().place(model.bins.values().data(), chunk.bins.data(), elems, input.decoded.data());
    put_special(special, input.decoded);
  }
  Vector<std::uint8_t> head;
  std::span<const std::uint8_t> tail;
  special.write(head);
  if (model.bins.count() == 0) return finish_chunk(input, head, tail, out);
  if (model.base_share != 0) {
    chunk.known = scratch.take<std::int32_t>(elems);
    find_known(model, input.base, chunk.known);
  }
  const LogqZeros zeros(row_length(chunk.piece));
  find_row_means(model, zeros, chunk);
  BitWriter writer(head);
  put_numbers(chunk.row_means, model.center * kUnits, writer);
  for_logq_rows(model, zeros, chunk, scratch.take<std::int32_t>(deviation_count),
                [&](const kernels::LogRow& row, std::size_t begin, std::size_t count, std::int32_t* deviations) {
                  log_kernels().residuals(row, count, chunk.bins.data() + begin, deviations);
                });
  tail = encode_residuals(model.residuals, chunk.piece, chunk.bins, special.places(), scratch, head);
  return finish_chunk(input, head, tail, out);
}

Result<TensorNeeds> needs_of_logq(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  reader.varint();
  reader.varint();
  TensorNeeds needs;
  if (reader.varint() != 0) {
    reader.varint();
    needs.base = reader.u8() != 0;
  }
  if (!reader.ok()) return status_of(reader.fault());
  return needs;
}

/// Bins of a row that has special elements: its pieces between them. Those have no bin and deviation 0.
bool bins_between(const LogqModel& model, kernels::LogRow row, std::size_t begin, std::size_t count,
                  std::span<const std::uint32_t> special, std::int32_t* bins, std::int32_t* deviations) {
  bool inside = true;
  std::size_t from = 0;
  const auto until = [&](std::size_t end) {
    kernels::LogRow piece = row;
    piece.column_means += from;
    piece.known += from;
    piece.above += from;
    inside = log_kernels().bins(piece, end - from, model.bins.count(), bins + from, deviations + from) && inside;
  };
  for (const std::uint32_t place : special) {
    const std::size_t at = place - begin;
    until(at);
    bins[at] = -1;
    deviations[at] = 0;
    from = at + 1;
  }
  until(count);
  return inside;
}

/// Bins of a chunk from its residuals, and the values that stand for them.
Status decode_bins(const LogqModel& model, const LogqChunk& chunk, std::span<const std::uint32_t> special,
                   std::span<std::int32_t> deviation_memory, std::span<std::uint8_t> out) {
  const LogqZeros zeros(row_length(chunk.piece));
  bool inside = true;
  std::size_t next = 0;
  for_logq_rows(model, zeros, chunk, deviation_memory,
                [&](const kernels::LogRow& row, std::size_t begin, std::size_t count, std::int32_t* deviations) {
                  std::int32_t* const bins = chunk.bins.data() + begin;
                  const std::size_t first = next;
                  while (next < special.size() && special[next] < begin + count) ++next;
                  // A special element has residual 0, whose bin may be none.
                  if (first == next) {
                    inside = log_kernels().bins(row, count, model.bins.count(), bins, deviations) && inside;
                    return;
                  }
                  inside =
                      bins_between(model, row, begin, count, special.subspan(first, next - first), bins, deviations) &&
                      inside;
                });
  if (!inside) return Status(StatusCode::corrupt, "tensor: a bin is out of range");
  log_kernels().place(model.bins.values().data(), chunk.bins.data(), chunk.piece.elems, out.data());
  return {};
}

Status decode_logq(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs&,
                   const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                   AlignedBuffer& memory) {
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  LogqModel model;
  QUERN_RETURN_IF_ERROR(get_logq_side(description, side, model));
  LogqChunk chunk;
  chunk.piece = piece_of(description, input.index);
  const std::size_t elems = chunk.piece.elems;
  ByteReader reader(bytes);
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, elems));
  const std::span<const std::uint8_t> rest = reader.bytes(reader.remaining());
  if (model.bins.count() == 0) {
    if (special.places().size() != elems || !rest.empty())
      return Status(StatusCode::corrupt, "tensor: a bin is out of range");
    put_special(special, out);
    return {};
  }
  const std::size_t deviation_count = deviations_needed(chunk.piece);
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(decoder_scratch_bytes(elems) + 4 * (2 * elems + deviation_count), 5));
  if (model.base_share != 0) {
    model.bins.make_index();
    chunk.known = scratch.take<std::int32_t>(elems);
    find_known(model, input.base, chunk.known);
  }
  if (chunk.piece.rows() / 8 > rest.size()) return Status(StatusCode::corrupt, "tensor: means of rows are cut short");
  chunk.row_means.resize(chunk.piece.rows());
  BitReader bits(rest, kMostGolombWidth);
  get_numbers(chunk.row_means, model.center * kUnits, bits);
  bool inside = true;
  for (const std::int32_t mean : chunk.row_means) inside = inside && mean >= -kMaxMean && mean <= kMaxMean;
  if (bits.failed() || !inside) return Status(StatusCode::corrupt, "tensor: means of rows are no means");
  chunk.bins = scratch.take<std::int32_t>(elems);
  QUERN_RETURN_IF_ERROR(decode_residuals(model.residuals, chunk.piece, rest.subspan(bits.bytes_used()),
                                         special.places(), scratch, chunk.bins));
  QUERN_RETURN_IF_ERROR(decode_bins(model, chunk, special.places(), scratch.take<std::int32_t>(deviation_count), out));
  put_special(special, out);
  return {};
}

}  // namespace

const ModeCoder kLogqCoder{Mode::logq, plan_logq, encode_logq, needs_of_logq, decode_logq, true};

}  // namespace quern::codec::tensor

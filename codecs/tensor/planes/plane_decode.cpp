// Reads the planes of a chunk, hostile, and joins them to words.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codecs/tensor/planes/few_states.h"
#include "codecs/tensor/planes/plane_code.h"
#include "codecs/tensor/planes/plane_scratch.h"
#include "kernels/common/bit_packing.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/zstd_frame.h"

namespace quern::codec::tensor {
namespace {

using kernels::LaneContext;

const kernels::PlaneKernels& best_kernels() { return kernels::plane_kernels(kernels::best_isa()); }

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

/// Reads thresholds and tables; `scratch.decode_tables` is filled.
Status read_model(ByteReader& reader, const PlaneWords& words, const PlaneScratch& scratch, PlaneModel& model) {
  const std::uint8_t head = reader.u8();
  model.contexts = (head >> 2) + std::size_t{1};
  if ((head & 3) > 2 || model.contexts > kernels::kMostLaneContexts)
    return corrupt("tensor: a plane has an unknown model");
  model.source = static_cast<LaneContext>(head & 3);
  if ((model.source == LaneContext::none) != (model.contexts == 1) ||
      (model.source == LaneContext::given && words.reference.elements == nullptr))
    return corrupt("tensor: a plane has an unknown model");
  for (std::size_t t = 0; t + 1 < model.contexts; ++t) {
    model.thresholds[t] = model.source == LaneContext::previous ? reader.u16() : reader.u8();
    if (model.thresholds[t] <= (t == 0 ? 0 : model.thresholds[t - 1]) || model.thresholds[t] == 0xffff)
      return corrupt("tensor: thresholds of a plane do not ascend");
  }
  if (!reader.ok()) return corrupt("tensor: a plane ends in its model");
  const auto rest = reader.bytes(reader.remaining());
  kernels::BitReader bits(rest.data(), rest.size());
  for (std::size_t c = 0; c < model.contexts; ++c) {
    kernels::Frequencies frequencies;
    if (!kernels::read_frequencies<kernels::kLaneSumBits>(bits, 255, frequencies))
      return corrupt("tensor: a table of a plane is malformed");
    std::size_t slot = 0;
    for (std::uint32_t symbol = 0; symbol < 256; ++symbol) {
      const std::uint32_t frequency = frequencies[symbol];
      for (std::uint32_t offset = 0; offset < frequency; ++offset, ++slot)
        scratch.decode_tables[c].entries[slot] = frequency << 20 | offset << 8 | symbol;
    }
  }
  reader = ByteReader(rest.subspan(bits.bytes_used()));
  return {};
}

Status decode_rans(std::span<const std::uint8_t> payload, const std::uint8_t* readable_end, const PlaneWords& words,
                   bool few, const PlaneScratch& scratch, std::uint8_t* symbols) {
  const auto count = static_cast<std::size_t>(words.count);
  const kernels::PlaneKernels& kernels = best_kernels();
  ByteReader reader(payload);
  PlaneModel model;
  QUERN_RETURN_IF_ERROR(read_model(reader, words, scratch, model));
  if (few && count > kMostFewSymbols) return corrupt("tensor: a plane has more symbols than its kind allows");
  const std::size_t parts = kernels::lane_parts(count);
  const std::size_t states = few ? kFewStates : kernels::kRansLanes;
  kernels::LaneSource sources[kernels::kMostLaneParts];
  std::uint64_t sizes[kernels::kMostLaneParts];
  for (std::size_t p = 0; p < parts; ++p) sizes[p] = 2 * reader.varint(count);
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t s = 0; s < states; ++s) {
      const std::uint32_t state = sources[p].states[s] = reader.u32();
      if (state < kernels::kLaneFloor || state >> 31 != 0) return corrupt("tensor: a state is out of range");
    }
  for (std::size_t p = 0; p < parts; ++p) {
    const auto part = reader.bytes(sizes[p]);
    sources[p].at = part.data();
    sources[p].end = part.data() + part.size();
  }
  reader.expect_end();
  if (!reader.ok()) return corrupt("tensor: a plane has another size than it says");

  kernels::LaneDecodeJob job;
  job.symbols = symbols;
  job.count = count;
  job.tables = scratch.decode_tables;
  job.source = model.source;
  job.contexts = scratch.contexts;
  std::fill(std::begin(job.thresholds), std::end(job.thresholds), std::uint16_t{0xffff});
  std::copy_n(model.thresholds.begin(), model.contexts - 1, job.thresholds);
  job.parts = sources;
  job.readable_end = readable_end;
  if (model.source == LaneContext::given) {
    std::uint8_t thresholds[kernels::kMostLaneContexts] = {};
    for (std::size_t t = 0; t + 1 < model.contexts; ++t) thresholds[t] = static_cast<std::uint8_t>(model.thresholds[t]);
    kernels.classify(words.reference.elements, count, words.reference.width, words.reference.shift, thresholds,
                     model.contexts - 1, scratch.contexts);
  }
  if (!(few ? decode_few(job) : kernels.decode(job))) return corrupt("tensor: symbols of a plane are damaged");
  return {};
}

}  // namespace

std::size_t decode_scratch_bytes(const PlaneWords& words) {
  return PlaneScratch::decoder_bytes(static_cast<std::size_t>(words.count), words.width);
}

Status decode_planes(const PlaneWords& words, std::span<const std::uint8_t> in, std::uint8_t* to,
                     std::span<std::uint8_t> scratch_memory) {
  const auto count = static_cast<std::size_t>(words.count);
  const PlaneScratch scratch = PlaneScratch::for_decoder(scratch_memory, count, words.width);
  const kernels::PlaneKernels& kernels = best_kernels();
  ByteReader reader(in);
  PlaneKind kinds[kernels::kMostPlanes];
  std::uint64_t sizes[kernels::kMostPlanes];
  for (unsigned k = words.width; k-- > 0;) {
    const std::uint8_t kind = reader.u8();
    if (kind > static_cast<std::uint8_t>(PlaneKind::rans_few)) return corrupt("tensor: a plane is of unknown kind");
    kinds[k] = static_cast<PlaneKind>(kind);
    switch (kinds[k]) {
      case PlaneKind::raw: sizes[k] = count; break;
      case PlaneKind::run: sizes[k] = 1; break;
      case PlaneKind::packed: sizes[k] = 0; break;  // its mask says it
      default: sizes[k] = reader.varint(in.size());
    }
  }
  const std::uint8_t* planes[kernels::kMostPlanes];
  for (unsigned k = words.width; k-- > 0;) {
    std::uint8_t* const symbols = scratch.planes[k];
    planes[k] = symbols;
    if (kinds[k] == PlaneKind::packed) {
      const std::uint8_t mask = reader.u8();
      const std::uint8_t fixed = reader.u8();
      const auto bits = static_cast<unsigned>(std::popcount(mask));
      if (mask == 0 || mask == 0xff || (fixed & mask) != 0) return corrupt("tensor: bits of a plane are not packed");
      const auto payload = reader.bytes(kernels::packed_bytes(count, bits));
      if (!reader.ok()) return corrupt("tensor: a plane is cut short");
      kernels.unpack(payload.data(), count, mask, fixed, symbols);
      continue;
    }
    const auto payload = reader.bytes(sizes[k]);
    if (!reader.ok()) return corrupt("tensor: a plane is cut short");
    switch (kinds[k]) {
      case PlaneKind::raw: planes[k] = payload.data(); break;
      case PlaneKind::run: std::memset(symbols, payload[0], count); break;
      case PlaneKind::rans:
      case PlaneKind::rans_few:
        QUERN_RETURN_IF_ERROR(
            decode_rans(payload, in.data() + in.size(), words, kinds[k] == PlaneKind::rans_few, scratch, symbols));
        break;
      default: QUERN_RETURN_IF_ERROR(zstd_unpack(payload, {symbols, count}));
    }
  }
  reader.expect_end();
  if (!reader.ok()) return corrupt("tensor: bytes are left over behind the planes");
  kernels.join(planes, count, words.width, words.rotate, to);
  return {};
}

}  // namespace quern::codec::tensor

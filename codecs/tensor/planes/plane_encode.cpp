// Splits words into planes, chooses a kind for each and writes it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codecs/tensor/planes/few_states.h"
#include "codecs/tensor/planes/plane_code.h"
#include "codecs/tensor/planes/plane_scratch.h"
#include "kernels/common/bit_packing.h"
#include "libcompress/format/writer.h"
#include "libcompress/format/zstd_frame.h"

namespace quern::codec::tensor {
namespace {

using kernels::LaneContext;

const kernels::PlaneKernels& best_kernels() { return kernels::plane_kernels(kernels::best_isa()); }

/// A kind that is dearer to decode than raw bytes must save this part of the plane.
constexpr std::size_t kWorthwhile = 64;
constexpr std::size_t kFewestCoded = 256;  ///< symbols: below, states and tables are larger than what they save

/// Head, thresholds and tables of eight contexts, each table less than 2 + 256 * (23 + 10) / 8 bytes.
constexpr std::size_t kMostModelBytes = 1 + 2 * kernels::kMostLaneContexts + kernels::kMostLaneContexts * 1060 + 16;

/// What one plane became: where its payload lies until it is written.
struct CodedPlane {
  PlaneKind kind = PlaneKind::raw;
  std::span<const std::uint8_t> payload;
};

std::size_t write_model(const PlaneModel& model, std::uint8_t* to) {
  std::uint8_t* at = to;
  *at++ = static_cast<std::uint8_t>(static_cast<unsigned>(model.source) | (model.contexts - 1) << 2);
  for (std::size_t t = 0; t + 1 < model.contexts; ++t) {
    *at++ = static_cast<std::uint8_t>(model.thresholds[t]);
    if (model.source == LaneContext::previous) *at++ = static_cast<std::uint8_t>(model.thresholds[t] >> 8);
  }
  kernels::BitWriter writer(at);
  for (std::size_t c = 0; c < model.contexts; ++c) kernels::write_frequencies(model.frequencies[c], writer);
  at += writer.finish();
  return static_cast<std::size_t>(at - to);
}

void make_encode_tables(const PlaneModel& model, kernels::LaneEncodeTable* tables) {
  for (std::size_t c = 0; c < model.contexts; ++c) {
    std::uint32_t start = 0;
    for (unsigned symbol = 0; symbol < 256; ++symbol) {
      const std::uint32_t frequency = model.frequencies[c][symbol];
      if (frequency == 0) {
        // Never used, but lanes that carry no symbol may look.
        tables[c].reciprocal[symbol] = tables[c].rest[symbol] = 0;
        continue;
      }
      kernels::set_lane_symbol(tables[c], symbol, frequency, start);
      start += frequency;
    }
  }
}

/// Looks for neighbouring symbols that are nearly all there are.
void find_window(const PlaneModel& model, kernels::LaneEncodeJob& job) {
  std::array<std::uint32_t, 257> below{};  // frequencies of lower symbols, in all tables
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    below[symbol + 1] = below[symbol];
    for (std::size_t c = 0; c < model.contexts; ++c) below[symbol + 1] += model.frequencies[c][symbol];
  }
  std::uint32_t most = 0;
  for (std::size_t first = 0; first + kernels::kLaneWindow <= 256; ++first) {
    const std::uint32_t inside = below[first + kernels::kLaneWindow] - below[first];
    if (inside <= most) continue;
    most = inside;
    job.window = static_cast<std::uint8_t>(first);
  }
  job.windowed = most >= below[256] - below[256] / 512;
}

/// Appends the coded symbols to `out`; false when they do not fit.
bool code_symbols(const std::uint8_t* symbols, std::size_t count, const PlaneEstimate& estimate,
                  const Reference8& reference, const PlaneScratch& scratch, ByteWriter& out) {
  const kernels::PlaneKernels& kernels = best_kernels();
  PlaneModel model;
  fit_plane(kernels, symbols, count, reference, estimate, scratch.contexts, scratch.sums, model);
  std::uint8_t stored_model[kMostModelBytes];
  out.bytes({stored_model, write_model(model, stored_model)});
  make_encode_tables(model, scratch.encode_tables);

  const bool few = count <= kMostFewSymbols;
  const std::size_t parts = kernels::lane_parts(count);
  const std::size_t states = few ? kFewStates : kernels::kRansLanes;
  const std::size_t part_symbols = kernels::lane_part_groups(count) * kernels::kRansLanes;
  kernels::LaneSink sinks[kernels::kMostLaneParts];
  const std::uint16_t* ends[kernels::kMostLaneParts];
  std::uint16_t* room = scratch.words;
  for (std::size_t p = 0; p < parts; ++p) {
    room += PlaneScratch::kSlack / 2 + (p + 1 < parts ? part_symbols : count - p * part_symbols);
    sinks[p].words = room;
    ends[p] = room;
    std::fill(std::begin(sinks[p].states), std::end(sinks[p].states), kernels::kLaneFloor);
  }
  kernels::LaneEncodeJob job{symbols, count, scratch.encode_tables, model.source, scratch.contexts, sinks};
  if (few) {
    encode_few(job);
  } else {
    find_window(model, job);
    kernels.encode(job);
  }
  for (std::size_t p = 0; p < parts; ++p) out.varint(static_cast<std::uint64_t>(ends[p] - sinks[p].words));
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t s = 0; s < states; ++s) out.u32(sinks[p].states[s]);
  for (std::size_t p = 0; p < parts; ++p) {
    const auto words = static_cast<std::size_t>(ends[p] - sinks[p].words);
    if constexpr (std::endian::native == std::endian::little) {
      out.bytes({reinterpret_cast<const std::uint8_t*>(sinks[p].words), 2 * words});
    } else {
      for (std::size_t i = 0; i < words; ++i) out.u16(sinks[p].words[i]);
    }
  }
  return out.fits();
}

/// Chooses the kind of a plane and writes payloads that must be made into `room`, whose start it moves.
Result<CodedPlane> code_plane(const std::uint8_t* symbols, const PlaneWords& words, int zstd_level,
                              const PlaneScratch& scratch, std::span<std::uint8_t>& room) {
  const auto count = static_cast<std::size_t>(words.count);
  const kernels::PlaneKernels& kernels = best_kernels();
  CodedPlane plane{PlaneKind::raw, {symbols, count}};
  PlaneEstimate estimate = estimate_plane(symbols, count, words.reference);
  if (estimate.varying != 0xff) estimate.varying = kernels.varying_bits(symbols, count);
  if (estimate.varying == 0) return CodedPlane{PlaneKind::run, {symbols, 1}};

  const auto keep = [&](PlaneKind kind, std::size_t bytes) {
    plane = {kind, room.first(bytes)};
    room = room.subspan(bytes);
  };
  const std::size_t worth = count - count / kWorthwhile;
  const auto bits = static_cast<unsigned>(std::popcount(estimate.varying));
  const std::size_t packed = 2 + kernels::packed_bytes(count, bits);
  if (estimate.coded_bytes < worth && count >= kFewestCoded &&
      (bits == 8 || estimate.coded_bytes < packed - packed / 64)) {
    ByteWriter writer(room.first(std::min(room.size(), worth)));
    if (code_symbols(symbols, count, estimate, words.reference, scratch, writer) && writer.size() < worth) {
      keep(count <= kMostFewSymbols ? PlaneKind::rans_few : PlaneKind::rans, writer.size());
    }
  }
  if (plane.kind == PlaneKind::raw && bits < 8 && packed < count && room.size() >= packed + 8) {
    room[0] = estimate.varying;
    room[1] = static_cast<std::uint8_t>(symbols[0] & ~estimate.varying);
    kernels.pack(symbols, count, estimate.varying, room.data() + 2);
    keep(PlaneKind::packed, packed);
  }
  if (zstd_level > 0) {
    const std::size_t limit = plane.kind == PlaneKind::raw ? worth : plane.payload.size();
    if (limit > 1) {
      QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                             zstd_pack({symbols, count}, zstd_level, room.first(std::min(room.size(), limit - 1))));
      if (bytes > 0) keep(PlaneKind::zstd, bytes);
    }
  }
  return plane;
}

}  // namespace

std::size_t encode_scratch_bytes(const PlaneWords& words) {
  const auto count = static_cast<std::size_t>(words.count);
  // Payloads: of all planes twice, as zstd may follow another kind.
  return PlaneScratch::encoder_bytes(count, words.width) + PlaneScratch::padded(2 * words.width * (count + 64));
}

Result<std::size_t> encode_planes(const PlaneWords& words, const std::uint8_t* from, int zstd_level,
                                  std::span<std::uint8_t> out, std::span<std::uint8_t> scratch_memory) {
  const auto count = static_cast<std::size_t>(words.count);
  const PlaneScratch scratch = PlaneScratch::for_encoder(scratch_memory, count, words.width);
  best_kernels().split(from, count, words.width, words.rotate, scratch.planes);
  auto room = scratch_memory.subspan(PlaneScratch::encoder_bytes(count, words.width));
  ByteWriter writer(out);
  CodedPlane planes[kernels::kMostPlanes];
  for (unsigned k = words.width; k-- > 0;) {
    QUERN_ASSIGN_OR_RETURN(planes[k], code_plane(scratch.planes[k], words, zstd_level, scratch, room));
    writer.u8(static_cast<std::uint8_t>(planes[k].kind));
    if (planes[k].kind >= PlaneKind::rans) writer.varint(planes[k].payload.size());
  }
  for (unsigned k = words.width; k-- > 0;) writer.bytes(planes[k].payload);
  return writer.fits() ? writer.size() : 0;
}

}  // namespace quern::codec::tensor

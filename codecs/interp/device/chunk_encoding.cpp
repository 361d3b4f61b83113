// Jobs, and bytes from what comes of them.
#include "codecs/interp/device/chunk_encoding.h"

#include <algorithm>
#include <cstring>

#include "codecs/interp/chunk_stages.h"
#include "codecs/interp/elements.h"
#include "codecs/interp/level_coder.h"
#include "coding/job_streams.h"
#include "coding/stream_words.h"
#include "libcompress/format/writer.h"

namespace quern::codec::interp {
namespace {

using kernels::InterpEncodeResult;
using kernels::InterpWriteResult;
using kernels::InterpWriteSection;

/// One exception for so many elements: a chunk with more gains little.
constexpr std::uint64_t kElemsPerException = 8;
constexpr std::uint64_t kLeastExceptions = 64;
constexpr std::uint64_t most_exceptions(std::uint64_t elems) { return elems / kElemsPerException + kLeastExceptions; }

/// Numbers of 16 bits for the words of all streams, before they lie side by side.
constexpr std::uint64_t word_room(std::uint64_t elems) {
  return elems * kernels::kMostResidualWords + std::uint64_t{kernels::kInterpMostSections} * kernels::kMostStreamLanes *
                                                   (kernels::kStateWords + kernels::kMostResidualWords);
}

/// Tiles of a chunk of those extents, and words of bits that each takes: no axis of a tile is longer than the chunk's.
struct TileBits {
  std::uint64_t tiles = 1;
  std::uint64_t words = 0;  ///< 32 bits each
};
template <class Extent>
TileBits tile_bits(const kernels::InterpTile& tile, const std::array<Extent, kernels::kInterpAxes>& extents) {
  TileBits bits;
  std::uint64_t elems = 1;
  for (std::size_t a = 0; a < kernels::kInterpAxes; ++a) {
    bits.tiles *= ((extents[a] - 1) >> tile.logs[a]) + 1;
    elems *= std::min<std::uint64_t>(std::uint64_t{1} << tile.logs[a], extents[a]);
  }
  bits.words = (elems + 31) / 32;
  return bits;
}

static_assert(kernels::kInterpMostSections == kOwnSections + 1);

/// Codes the anchors alone, which need the targets of few rows.
template <class Element, class Word>
void code_anchors(const ChunkSpec& spec, const ConstBox3& in, const coding::ValueFormat& values,
                  LevelCoder<Word>& coder) {
  const ChunkRows<Element> rows(in);
  const Extents extents = chunk_extents(in.extents);
  const std::size_t planes = std::size_t{1} << spec.tile.logs[0];
  const std::size_t lines = std::size_t{1} << spec.tile.logs[1];
  for (std::size_t z = 0; z < extents[0]; z += planes)
    for (std::size_t y = 0; y < extents[1]; y += lines) {
      const std::size_t r = z * extents[1] + y;
      to_units<Element>(*spec.kernels, rows[r], extents[2], values, coder.targets + r * extents[2]);
      if (in.special != nullptr) std::memcpy(coder.special + r * extents[2], rows.special(r), extents[2]);
    }
  coder.start(values.fraction_bits, in.special != nullptr);
}

}  // namespace

bool DeviceEncoding::start(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch,
                           Vector<std::uint8_t>& job) {
  if (!device_takes(spec.tile)) return false;
  spec_ = &spec;
  in_ = &in;
  extents_ = chunk_extents(in.extents);
  raw_bytes_ = in.elems() * dtype_bytes(spec.dtype);
  return with_element(spec.dtype, [&](auto element) { return start_as<decltype(element)>(scratch, job); });
}

template <class Element>
bool DeviceEncoding::start_as(std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job) {
  const ChunkRows<Element> rows(*in_);
  if (rows.constant()) return false;
  const auto format = rows.format(*spec_);
  if (!format) return false;
  head_.values = format->values;
  return format->narrow ? append_first_job<Element, std::int32_t>(scratch, job)
                        : append_first_job<Element, std::int64_t>(scratch, job);
}

template <class Element, class Word>
bool DeviceEncoding::append_first_job(std::span<std::uint8_t> scratch, Vector<std::uint8_t>& out) {
  Arena arena(scratch.data());
  LevelCoder<Word> coder(arena, *spec_, extents_);
  if (arena.used() > scratch.size()) return false;
  code_anchors<Element>(*spec_, *in_, head_.values, coder);
  tables_.emplace(spec_->tile, extents_, spec_->predictors, head_.contexts);
  const Vector<std::int32_t> codes(coder.codes, coder.codes + coder.coded());
  Vector<Word> values(coder.coded());
  coder.anchor_values(values.data());

  constexpr bool kNarrow = sizeof(Word) == sizeof(std::int32_t);
  job_ = {};
  const std::array<std::uint64_t, 2> dense{in_->extents[1] * in_->extents[2], in_->extents[2]};
  describe_chunk(spec_->dtype, spec_->tile, extents_, dense, head_.values, *tables_, job_.chunk);
  job_.chunk.wide = !kNarrow;
  job_.bound = spec_->bound;
  job_.inverse = 1 / head_.values.unit();
  job_.most = most_units(kNarrow);
  job_.masked = in_->special != nullptr;
  job_.anchor_count = tables_->anchors();
  lay_out_work();
  coding::JobAppender job(out, sizeof job_);
  job_.chunk.levels = job.add(tables_->levels);
  job_.chunk.classes = job.add(tables_->classes);
  job_.chunk.anchors = job.add(values);
  job_.anchor_codes = job.add(codes);
  job_.chunk.bytes = job.bytes();
  job.set_head(job_);
  return true;
}

void DeviceEncoding::lay_out_work() {
  const std::uint64_t elems = in_->elems();
  const TileBits bits = tile_bits(spec_->tile, extents_);
  JobWork work;
  const auto coarse = tables_->coarse_points();
  job_.chunk.codes = work.take(elems, sizeof(std::int32_t));
  for (const std::size_t i : {0, 1}) job_.chunk.magnitudes[i] = work.take(coarse[i], sizeof(std::uint16_t));
  job_.symbols = work.take(elems, sizeof(std::uint16_t));
  job_.missed_words = job_number(bits.words);
  job_.missed = work.take(bits.tiles * bits.words, sizeof(std::uint32_t));
  job_.exception_room = job_number(most_exceptions(elems));
  job_.exception_list = work.take(job_.exception_room, sizeof(std::uint32_t));
  write_job_.words = work.take(word_room(elems), sizeof(std::uint16_t));
  job_.chunk.work_bytes = work.bytes();
}

DeviceEncoding::Outcome DeviceEncoding::choose(const InterpEncodeResult& result,
                                               std::span<const std::uint32_t> exceptions, Vector<std::uint8_t>& job) {
  if (result.left != 0) return Outcome::host;
  for (std::size_t i = 1; i < tables_->classes.size(); ++i) {
    const kernels::InterpClassPlan& plan = tables_->classes[i];
    head_.contexts[tables_->levels[plan.level].level][plan.point_class - 1u] = result.contexts[i];
  }
  coding::BinCounts counts;
  static_assert(sizeof counts == sizeof result.counts);
  std::memcpy(counts.data(), result.counts, sizeof counts);
  const bool worth = with_element(spec_->dtype, [&](auto element) {
    using Element = decltype(element);
    using Bits = typename Element::Bits;
    if (!choose_distributions(counts, exceptions.size() * exception_bytes<Bits>(), raw_bytes_, head_)) return false;
    const ChunkRows<Element> rows(*in_);
    Exceptions<Bits> records;
    for (const std::uint32_t index : exceptions)
      records.emplace_back(index, rows[index / extents_[2]][index % extents_[2]]);
    begin_ = begin_chunk(head_, spec_->tile, !job_.chunk.wide, records);
    return true;
  });
  if (!worth) return Outcome::raw;
  write_job_.section_count = section_count(spec_->tile);
  for (std::uint32_t s = 0; s < write_job_.section_count; ++s) {
    InterpWriteSection& section = write_job_.sections[s];
    section = {};
    for (const kernels::InterpClassPlan& plan : tables_->classes) {
      if (plan.section != s) continue;
      if (section.count == 0) section.first = plan.first;
      section.count += plan.count;
    }
    coding::TokenCounts tokens{};
    for (std::size_t t = 0; t < tokens.size(); ++t)
      tokens[t] = result.tokens[s][t] - (s > 0 ? result.tokens[s - 1][t] : 0);
    section.mask = (1u << section_stream_bits(tokens)) - 1;
    section.rooms[0] = s == 0 ? 0 : write_job_.sections[s - 1].rooms[write_job_.sections[s - 1].mask + 1];
    for (std::uint32_t lane = 0; lane <= section.mask; ++lane) {
      const std::uint32_t codes = (section.count + section.mask - lane) / (section.mask + 1);
      section.rooms[lane + 1] = section.rooms[lane] + codes * kernels::kMostResidualWords + kernels::kStateWords;
    }
  }
  append_write_job(job);
  return Outcome::coded;
}

void DeviceEncoding::append_write_job(Vector<std::uint8_t>& out) {
  coding::JobStreams streams;
  streams.take_starts(head_.distributions, write_job_.serving);
  write_job_.table_count = job_number(streams.starts.size());
  write_job_.codes = job_.chunk.codes;
  write_job_.symbols = job_.symbols;
  write_job_.most_words = job_number(most_words());
  coding::JobAppender job(out, sizeof write_job_);
  write_job_.starts = job.add(streams.starts);
  job.set_head(write_job_);
}

bool DeviceEncoding::streams_fit(const InterpWriteResult& result) const {
  for (std::uint32_t s = 0; s < write_job_.section_count; ++s) {
    const std::size_t streams = std::size_t{write_job_.sections[s].mask} + 1;
    const std::size_t room = stream_room_words(static_cast<std::size_t>(raw_bytes_)) / streams;
    const std::size_t codes = std::min<std::size_t>(coding::StreamWriter::kBlock, write_job_.sections[s].count);
    // What encode_chunk wants to have left before its last block of codes.
    const std::size_t left = (codes / streams + 1) * kernels::kMostResidualWords;
    for (std::size_t i = 0; i < streams; ++i)
      if (result.words[s][i] + left > room) return false;
  }
  return true;
}

DeviceEncoding::Outcome DeviceEncoding::write(const InterpWriteResult& result, std::span<const std::uint16_t> words,
                                              std::span<std::uint8_t> out, std::size_t& size) const {
  size = 0;
  if (!streams_fit(result)) return Outcome::host;
  if (words.empty()) return Outcome::raw;
  Vector<std::uint8_t> head = begin_;
  Writer sizes(head);
  Vector<std::uint8_t> payload;
  Writer writer(payload);
  for (std::uint32_t s = 0; s < write_job_.section_count; ++s) {
    const std::size_t before = payload.size();
    const std::uint32_t mask = write_job_.sections[s].mask;
    writer.u8(static_cast<std::uint8_t>(kernels::popcount(mask)));
    const auto total =
        static_cast<std::size_t>(coding::write_lane_sizes(std::span(result.words[s]).first(mask + 1), writer));
    const std::size_t at = payload.size();
    payload.resize(at + 2 * total);
    coding::put_words(words.first(total), payload.data() + at);
    words = words.subspan(total);
    if (s + 1 < write_job_.section_count) sizes.varint(payload.size() - before);
  }
  size = end_chunk(head, payload, static_cast<std::size_t>(raw_bytes_), out);
  return size == 0 ? Outcome::raw : Outcome::coded;
}

DeviceEncoding::Room DeviceEncoding::room(const ChunkSpec& spec) {
  const TileBits bits = tile_bits(spec.tile, spec.most);
  const std::uint64_t elems = std::uint64_t{spec.most[0]} * spec.most[1] * spec.most[2];
  constexpr std::uint64_t kTables = kernels::kInterpMostLevels * sizeof(kernels::InterpLevelPlan) +
                                    kernels::kInterpMostClasses * sizeof(kernels::InterpClassPlan) +
                                    4 * kernels::kJobAlignment;
  // Codes, symbols and magnitudes.
  constexpr std::uint64_t kWork = 4 + 2 + 2;
  constexpr std::uint64_t kPieces = 7;
  const std::uint64_t work = kWork * elems + bits.tiles * bits.words * sizeof(std::uint32_t) +
                             most_exceptions(elems) * sizeof(std::uint32_t) + word_room(elems) * sizeof(std::uint16_t) +
                             kPieces * kernels::kJobAlignment;
  // Tables and counts; the beginning of the chunk has its exceptions.
  const std::uint64_t kept = (UINT64_C(1) << 16) + most_exceptions(elems) * (kIndexBytes + dtype_bytes(spec.dtype));
  return {sizeof(kernels::InterpEncodeJob) + kTables + bits.tiles * (sizeof(std::int64_t) + sizeof(std::int32_t)),
          sizeof(kernels::InterpWriteJob) + kernels::kContextBins * sizeof(kernels::StreamStarts) +
              2 * kernels::kJobAlignment,
          work, kept};
}

}  // namespace quern::codec::interp

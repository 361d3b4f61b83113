// Broken streams of the stencil codec. Their chunks are written here by hand, so that no other encoder changes them: a
// whole chunk in raster order and one in levels, each of residuals that are all 0, and both with one thing wrong.
#include <cmath>
#include <limits>

#include "libcompress/format/writer.h"
#include "tests/golden/stencil_by_hand.h"
#include "tests/golden/stencil_must_fail.h"

namespace quern::golden {
namespace {

constexpr std::uint64_t kColumns = 8;  // of a chunk: levels 3 to 0
constexpr std::uint64_t kRows = 3;

using Chunk = StoredChunk;
using Make = Maker<Chunk>;
constexpr StatusCode kCorrupt = StatusCode::corrupt;

void add_params_cases(std::vector<MustFailCase>& cases, const Bytes& raster, const Bytes& levels) {
  const auto add = [&](const char* name, const char* why, const Bytes& stream,
                       std::initializer_list<std::uint8_t> params) {
    const StatusCode status = params.size() < 2 ? StatusCode::truncated : kCorrupt;
    cases.push_back({name, status, why, with_header(stream, [&](Header& h) { h.params = params; })});
  };
  add("stencil_params_order", "a chunk in levels where the parameters announce the wavelet", levels, {0, 0, 3});
  add("stencil_params_order_4", "an order that does not exist", levels, {0, 0, 4});
  add("stencil_params_order_0", "the order that is told by leaving it out", raster, {0, 1, 0});
  add("stencil_params_axes", "more axes merged than there are", raster, {0, 3});
  add("stencil_params_crossed", "groups of axes that cross", raster, {2, 1});
  add("stencil_params_short", "params of one byte", raster, {0});
  add("stencil_levels_unannounced", "a chunk in levels where the parameters rule it out", levels, {0, 0});
  cases.push_back({"stencil_level_tables", kCorrupt, "level tables where the parameters rule out levels",
                   with_header(raster, [](Header& h) { h.must_understand = 1; })});
  cases.push_back({"stencil_dtype", kCorrupt, "an element type that the codec does not take",
                   with_header(raster, [](Header& h) { h.dtype = DType::i64; })});
}

/// Groups that are not linear, with feature bit 7 or without it.
void add_edges_cases(std::vector<MustFailCase>& cases, const Make& in_raster, const Make& in_levels) {
  constexpr std::uint64_t kEdgesBit = 128;
  const auto add = [&](const char* name, const char* why, const Bytes& stream, std::uint64_t features,
                       std::initializer_list<std::uint8_t> params) {
    cases.push_back({name, kCorrupt, why, with_header(stream, [&](Header& h) {
                       h.must_understand = features;
                       h.params = params;
                     })});
  };
  const Bytes levels = in_levels.stream();
  add("stencil_edges_unannounced", "groups that are not linear without the feature bit", levels, 0, {0, 0, 5});
  add("stencil_edges_unnamed", "the feature bit of groups that are not linear without them", levels, kEdgesBit,
      {0, 0, 1});
  add("stencil_edges_raster", "groups that are not linear in raster order", in_raster.stream(), kEdgesBit, {0, 1, 4});
  in_levels.add("stencil_edges_mode", "a chunk with groups that are not linear where none may be", kCorrupt,
                [](Chunk& c) { c.mode = 9; });
}

/// Parameters that name a reference, with feature bit 5 or without it.
void add_reference_cases(std::vector<MustFailCase>& cases, const Bytes& raster) {
  constexpr std::uint64_t kReferenceBit = 32;
  const auto add = [&](const char* name, StatusCode status, const char* why, std::uint64_t features,
                       std::initializer_list<std::uint8_t> params) {
    cases.push_back({name, status, why, with_header(raster, [&](Header& h) {
                       h.must_understand = features;
                       h.params = params;
                     })});
  };
  add("stencil_reference_missing", StatusCode::reference_missing, "a step whose reference is nowhere", kReferenceBit,
      {0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8});
  add("stencil_reference_no_step", kCorrupt, "a reference that is no step away", kReferenceBit,
      {0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
  add("stencil_reference_unannounced", kCorrupt, "a reference without the feature bit", 0,
      {0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8});
  add("stencil_reference_unnamed", kCorrupt, "the feature bit without a reference", kReferenceBit, {0, 1});
  add("stencil_reference_cut", StatusCode::truncated, "half a hash", kReferenceBit, {0, 1, 0, 1, 1, 2, 3, 4});
  add("stencil_reference_levels", kCorrupt, "a reference and level tables", kReferenceBit | 1,
      {0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8});
}

/// Parameters of parts, and chunks that hold others than they name.
void add_parts_cases(std::vector<MustFailCase>& cases, const Bytes& raster) {
  constexpr std::uint64_t kPartsBit = 64;
  CompressOptions options = with(BoundKind::abs, 0.25, "stencil", {{"layout", "raster:1d"}, {"parts", "1,2"}});
  options.find_repeated = false;
  const Bytes whole = encode_one(
      values_of(DType::f64, {kRows, kColumns}, [](std::uint64_t i) { return static_cast<double>(i); }), options);
  const auto add = [&](const char* name, StatusCode status, const char* why, std::uint64_t features,
                       std::initializer_list<std::uint8_t> params) {
    cases.push_back({name, status, why, with_header(whole, [&](Header& h) {
                       h.must_understand = features;
                       h.params = params;
                     })});
  };
  const std::uint64_t bits = must(parse_header(std::span(whole).first(header_bytes(whole)))).must_understand;
  add("stencil_parts_unannounced", kCorrupt, "parts without the feature bit", bits & ~kPartsBit,
      {255, 3, 2, 1, 0, 0, 0, 2, 0, 0, 0});
  cases.push_back({"stencil_parts_unnamed", kCorrupt, "the feature bit without parts",
                   with_header(raster, [&](Header& h) { h.must_understand |= kPartsBit; })});
  add("stencil_parts_level_tables", kCorrupt, "parts and level tables", bits | 1, {255, 3, 2, 1, 0, 0, 0, 2, 0, 0, 0});
  add("stencil_parts_none", kCorrupt, "an array in no parts", bits, {255, 3, 0});
  add("stencil_parts_many", kCorrupt, "more parts than slices", bits,
      {255, 3, 4, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  add("stencil_parts_cut", kCorrupt, "parameters that end within a part", bits, {255, 3, 2, 1, 0, 0, 0, 2, 0});
  add("stencil_parts_missing", kCorrupt, "a slice that no part has", bits, {255, 3, 2, 1, 0, 0, 0, 1, 0, 0, 0});
  add("stencil_parts_overlap", kCorrupt, "a slice that two parts have", bits, {255, 3, 2, 2, 0, 0, 0, 2, 0, 0, 0});
  add("stencil_parts_empty", kCorrupt, "a part without slices", bits, {255, 3, 3, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0});
  add("stencil_parts_torn", kCorrupt, "a part in two chunks", bits, {255, 2, 2, 1, 0, 0, 0, 2, 0, 0, 0});
  add("stencil_parts_order", kCorrupt, "a part in an order that does not exist", bits,
      {255, 3, 2, 1, 0, 0, 4, 2, 0, 0, 0});
  add("stencil_parts_axes", kCorrupt, "more axes merged than a single slice has", bits,
      {255, 3, 2, 1, 0, 2, 0, 2, 0, 0, 0});
  add("stencil_parts_reference", kCorrupt, "a reference without its feature bit", bits,
      {255, 3, 2, 1, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8});
  add("stencil_parts_grid", kCorrupt, "chunks of fewer slices than the header's", bits,
      {255, 1, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0});
  // Two constants: of the first part and of the second.
  const auto add_chunk = [&](const char* name, StatusCode status, const char* why, const Bytes& chunk) {
    cases.push_back({name, status, why, with_chunk(whole, chunk)});
  };
  const Bytes constant(1 + sizeof(double), 1);
  const auto chunk_of = [&](std::uint8_t first, std::uint32_t size_one, std::uint32_t size_two, std::size_t constants) {
    Bytes bytes;
    Writer writer(bytes);
    writer.u8(first);
    writer.u32(size_one);
    writer.u32(size_two);
    for (std::size_t i = 0; i < constants; ++i) writer.bytes(constant);
    return bytes;
  };
  must(decode(with_chunk(whole, chunk_of(0, 9, 9, 2)), {}, {}, 4096));
  add_chunk("stencil_parts_first", kCorrupt, "a chunk that begins with its second part", chunk_of(1, 9, 9, 2));
  add_chunk("stencil_parts_first_outside", kCorrupt, "a first part that does not exist", chunk_of(2, 9, 9, 2));
  add_chunk("stencil_parts_size_none", kCorrupt, "no bytes for elements that no mask holds", chunk_of(0, 0, 9, 1));
  add_chunk("stencil_parts_size_short", kCorrupt, "bytes between two parts that neither has", chunk_of(0, 8, 9, 2));
  add_chunk("stencil_parts_size_endless", StatusCode::truncated, "a part of 4 GiB", chunk_of(0, 9, 0xFFFFFFFF, 2));
  add_chunk("stencil_parts_left_over", kCorrupt, "bytes behind the last part", chunk_of(0, 9, 9, 3));
  add_chunk("stencil_parts_sizes_cut", kCorrupt, "a chunk that ends in the sizes of its parts", {0, 9, 0, 0, 0, 9});
}

void add_model_cases(const Make& make) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  make.add("stencil_mode", "a chunk of a mode that does not exist", kCorrupt, [](Chunk& c) { c.mode = 6; });
  make.add("stencil_mode_wavelet", "a chunk under the wavelet where the parameters rule it out", kCorrupt,
           [](Chunk& c) { c.mode = 4; });
  make.add_bytes("stencil_constant_size", "a constant chunk with a byte too many", kCorrupt,
                 {1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  make.add_bytes("stencil_raw_size", "a raw chunk of too few bytes", kCorrupt, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  make.add("stencil_base", "a base that is not finite", kCorrupt, [](Chunk& c) { c.base = kInfinity; });
  make.add("stencil_step_infinite", "a step that is not finite", kCorrupt, [](Chunk& c) { c.step = kInfinity; });
  make.add("stencil_step_zero", "a step of 0", kCorrupt, [](Chunk& c) { c.step = 0; });
  make.add("stencil_step_negative", "a step below 0", kCorrupt, [](Chunk& c) { c.step = -1; });
  make.add("stencil_value_bits", "11 fraction bits of values", kCorrupt, [](Chunk& c) { c.value_bits = 11; });
  make.add("stencil_weight_bits", "17 fraction bits of weights", kCorrupt, [](Chunk& c) { c.weight_bits = 17; });
  make.add("stencil_lane_bits", "64 lanes", kCorrupt, [](Chunk& c) { c.lane_bits = 6; });
  make.add("stencil_more_lanes_than_rows", "four lanes for three rows", kCorrupt, [](Chunk& c) {
    c.lane_bits = 2;
    c.lane_sizes = {2, 2, 2};
    c.lanes = {0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0};
  });
  make.add("stencil_mean", "a mean of three planes", kCorrupt, [](Chunk& c) { c.mean = 1; });
  make.add("stencil_masked", "a chunk that counts on a mask where there is none", kCorrupt,
           [](Chunk& c) { c.masked = 1; });
  // The first row has the three taps of a row; a magnitude of 2^16 is allowed.
  make.add("stencil_weights", "weights that are too large", kCorrupt, [](Chunk& c) {
    c.weights = {{9, 3, (std::uint64_t{1} << 17) + 1}};
  });
  make.add("stencil_weights_endless", "a weight without end", kCorrupt, [](Chunk& c) {
    c.weights = {{0, 1, ~std::uint64_t{0} >> 1}};
  });
  make.add("stencil_context_constant", "a constant of contexts that is too large", kCorrupt,
           [](Chunk& c) { c.context_constant = 4096; });
  make.add("stencil_tokens", "a distribution of 121 tokens", kCorrupt, [](Chunk& c) {
    c.tokens = 121;
    c.zero = 100;
  });
  // Every residual would be a sign bit: 24 of them take the state from 2^24 to 2^16.
  make.add("stencil_zero", "a token of frequency 0", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.lanes = {0, 0, 0, 1, 0, 0};
  });
  make.add("stencil_frequencies", "frequencies of more than all", kCorrupt, [](Chunk& c) {
    c.tokens = 4;
    c.zero = (1u << 15) - 2;
  });
  make.add("stencil_no_distribution", "no distribution at all", kCorrupt, [](Chunk& c) { c.tokens = 0; });
  make.add("stencil_levels_crossed", "a first level above the last", kCorrupt, [](Chunk& c) { c.first_level = 11; });
  make.add("stencil_model_cut", "a chunk that ends in its model", kCorrupt, [](Chunk& c) {
    c.last_level = 63;
    c.tokens = 2;
    c.zero = 9;
    c.cut = 30;
  });
}

/// The chunk of integers behind a lattice of that origin and spacing.
Vector<std::uint8_t> on_lattice(double origin, double spacing, const Vector<std::uint8_t>& integers) {
  Vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer.u8(kLatticeMode);
  writer.f64(origin);
  writer.f64(spacing);
  writer.bytes(integers);
  return bytes;
}

void add_lattice_cases(const Make& make) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Vector<std::uint8_t> inner = chunk_bytes(StoredChunk{});
  make.add_bytes("stencil_lattice_origin", "a lattice without an origin", kCorrupt, on_lattice(std::nan(""), 1, inner));
  make.add_bytes("stencil_lattice_spacing", "a lattice of one place", kCorrupt, on_lattice(0, 0, inner));
  make.add_bytes("stencil_lattice_backwards", "a lattice that runs backwards", kCorrupt, on_lattice(0, -1, inner));
  make.add_bytes("stencil_lattice_endless", "a lattice without a second place", kCorrupt,
                 on_lattice(0, kInfinity, inner));
  make.add_bytes("stencil_lattice_twice", "a lattice on a lattice", kCorrupt,
                 on_lattice(0, 1, on_lattice(0, 1, inner)));
  make.add_bytes("stencil_lattice_empty", "a lattice without a chunk", kCorrupt, on_lattice(0, 1, {}));
  Vector<std::uint8_t> constant(1 + sizeof(double), 0);
  constant[0] = 1;
  make.add_bytes("stencil_lattice_constant_size", "a constant of 64 bits where integers have 32", kCorrupt,
                 on_lattice(0, 1, constant));
}

/// A chunk of codes behind a step and `exceptions`, which are as stored.
Vector<std::uint8_t> prequantized(double step, const Vector<std::uint8_t>& exceptions,
                                  const Vector<std::uint8_t>& codes) {
  Vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer.u8(kPrequantizedMode);
  writer.f64(step);
  writer.bytes(exceptions);
  writer.bytes(codes);
  return bytes;
}

void add_prequantized_cases(const Make& make) {
  constexpr std::uint8_t kElems = kRows * kColumns;
  const Vector<std::uint8_t> inner = chunk_bytes(StoredChunk{});
  const auto add = [&](const char* name, const char* what, const Vector<std::uint8_t>& bytes,
                       StatusCode status = kCorrupt) { make.add_bytes(name, what, status, bytes); };
  add("stencil_prequantized_no_step", "codes that are multiples of 0", prequantized(0, {0}, inner));
  add("stencil_prequantized_backwards", "a negative step", prequantized(-1, {0}, inner));
  add("stencil_prequantized_endless", "an infinite step",
      prequantized(std::numeric_limits<double>::infinity(), {0}, inner));
  add("stencil_prequantized_empty", "no chunk of codes", prequantized(1, {0}, {}));
  add("stencil_prequantized_twice", "codes of codes", prequantized(1, {0}, prequantized(1, {0}, inner)));
  add("stencil_prequantized_lattice", "codes on a lattice", prequantized(1, {0}, on_lattice(0, 1, inner)));
  add("stencil_prequantized_exceptions", "more exceptions than elements", prequantized(1, {kElems + 1}, inner));
  add("stencil_prequantized_outside", "an exception behind the last element",
      prequantized(1, {1, kElems, 0, 0, 0, 0, 0, 0, 0, 0}, inner));
  add("stencil_prequantized_cut", "exceptions that the chunk ends in", prequantized(1, {2, 0, 0, 0, 0}, {}),
      StatusCode::truncated);
}

void add_lane_cases(const Make& make) {
  constexpr std::uint8_t kElems = kRows * kColumns;
  make.add("stencil_exceptions_count", "more exceptions than elements", kCorrupt,
           [](Chunk& c) { c.exceptions = {kElems + 1}; });
  make.add("stencil_exception_outside", "an exception behind the last element", kCorrupt,
           [](Chunk& c) { c.exceptions = {1, kElems, 0, 0, 0, 0, 0, 0, 0, 0}; });
  make.add("stencil_exception_second_outside", "a second exception behind the last element", kCorrupt,
           [](Chunk& c) { c.exceptions = {2, kElems - 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}; });
  make.add("stencil_exceptions_cut", "exceptions that the chunk ends in", StatusCode::truncated, [](Chunk& c) {
    c.exceptions = {5};
    c.lanes = {0};
  });
  make.add("stencil_lane_state", "a lane that begins below 2^16", kCorrupt, [](Chunk& c) {
    c.lanes = {0xFF, 0xFF, 0, 0};
  });
  // With a word taken for it the state would rise to 2^16 and stay there.
  make.add("stencil_lane_state_low", "a lane that begins at 1 and ends as it should", kCorrupt,
           [](Chunk& c) { c.lanes = {1, 0, 0, 0, 0, 0}; });
  make.add("stencil_lane_end", "a lane that ends in another state", kCorrupt, [](Chunk& c) { c.lanes = {1, 0, 1, 0}; });
  make.add("stencil_lane_words", "a word more than a lane uses", kCorrupt,
           [](Chunk& c) { c.lanes = {0, 0, 1, 0, 0, 0}; });
  make.add("stencil_lane_odd", "half a word", kCorrupt, [](Chunk& c) { c.lanes = {0, 0, 1, 0, 0}; });
  make.add("stencil_lane_none", "a lane without a state", kCorrupt, [](Chunk& c) { c.lanes = {0, 0}; });
  make.add("stencil_lane_short", "a lane that ends too early", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.zero = 1u << 14;
  });
  make.add("stencil_lane_sizes", "a lane longer than the chunk", kCorrupt, [](Chunk& c) {
    c.lane_bits = 1;
    c.lane_sizes = {20};
    c.lanes = {0, 0, 1, 0, 0, 0, 1, 0};
  });
  make.add("stencil_lane_sizes_all", "a lane that leaves nothing to the other", kCorrupt, [](Chunk& c) {
    c.lane_bits = 1;
    c.lane_sizes = {4};
    c.lanes = {0, 0, 1, 0, 0, 0, 1, 0};
  });
}

void add_levels_cases(const Make& make) {
  make.add("stencil_levels_kind", "a predictor that does not exist", kCorrupt, [](Chunk& c) { c.kind = 7; });
  make.add("stencil_levels_axis", "a cubic along an axis that is not odd", kCorrupt, [](Chunk& c) { c.kind = 2; });
  make.add("stencil_levels_plane_before", "the plane before, without planes", kCorrupt, [](Chunk& c) { c.kind = 5; });
  make.add("stencil_levels_top_weights", "weights for the first of all points", kCorrupt,
           [](Chunk& c) { c.top_kind = 6; });
  // A pair counts twice: 2^13 is allowed.
  make.add("stencil_levels_weights", "weights of a level that are too large", kCorrupt, [](Chunk& c) {
    c.kind = 6;
    c.weights = {{9, 1, (std::uint64_t{1} << 14) + 2}};
  });
  make.add("stencil_levels_context", "a constant of a level's contexts that is too large", kCorrupt,
           [](Chunk& c) { c.context_constant = 4096; });
  make.add("stencil_levels_limits", "limits of special elements in the wrong order", kCorrupt,
           [](Chunk& c) { c.masked = 1; });
  make.add("stencil_levels_value_bits", "11 fraction bits of values in levels", kCorrupt,
           [](Chunk& c) { c.value_bits = 11; });
  make.add("stencil_levels_no_distribution", "levels without a distribution", kCorrupt, [](Chunk& c) { c.tokens = 0; });
  make.add("stencil_levels_sections", "more sections than levels", kCorrupt, [](Chunk& c) {
    c.sections = {4, 5, 5, 5, 5};
  });
  make.add("stencil_levels_section_size", "a section longer than the chunk", kCorrupt, [](Chunk& c) {
    c.sections = {1, 60};
    c.lanes = {0, 0, 1, 0, 0, 0, 0, 1, 0};
  });
  make.add("stencil_levels_cut", "levels that are missing", StatusCode::truncated, [](Chunk& c) {
    c.sections = {1, 5};
  });
  make.add("stencil_levels_section_early", "a section that ends within its lane", kCorrupt, [](Chunk& c) {
    c.sections = {1, 4};
    c.lanes = {0, 0, 1, 0, 0, 0, 0, 1, 0};
  });
  make.add("stencil_levels_lane_bits", "64 lanes of a level", kCorrupt, [](Chunk& c) { c.lane_sizes = {6}; });
  make.add("stencil_levels_lane_state", "a level's lane that begins below 2^16", kCorrupt, [](Chunk& c) {
    c.lanes = {0, 0, 0, 0};
  });
  make.add("stencil_levels_lane_state_low", "a level's lane that begins at 1 and ends as it should", kCorrupt,
           [](Chunk& c) { c.lanes = {1, 0, 0, 0, 0, 0}; });
  make.add("stencil_levels_lane_short", "a level's lane that ends too early", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.zero = 1u << 14;
  });
  make.add("stencil_levels_lane_end", "a level's lane that ends in another state", kCorrupt, [](Chunk& c) {
    c.lanes = {1, 0, 1, 0};
  });
  make.add("stencil_levels_exception_outside", "an exception behind the last element, in levels", kCorrupt,
           [](Chunk& c) { c.exceptions = {1, kColumns, 0, 0, 0, 0, 0, 0, 0, 0}; });
}

}  // namespace

void add_stencil_cases(std::vector<MustFailCase>& cases) {
  StoredChunk levels;
  levels.mode = kLevelsMode;
  levels.lane_sizes = {0};
  const Make in_raster(cases, "raster:2d:1", {kRows, kColumns}, StoredChunk{});
  const Make in_levels(cases, "levels:1d", {kColumns}, levels);
  add_params_cases(cases, in_raster.stream(), in_levels.stream());
  add_edges_cases(cases, in_raster, in_levels);
  add_reference_cases(cases, in_raster.stream());
  add_parts_cases(cases, in_raster.stream());
  add_model_cases(in_raster);
  add_lattice_cases(in_raster);
  add_prequantized_cases(in_raster);
  add_lane_cases(in_raster);
  add_levels_cases(in_levels);
  add_wavelet_cases(cases, in_raster.stream());
}

}  // namespace quern::golden

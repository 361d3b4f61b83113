// Broken streams of the stencil codec under its wavelet: a whole chunk written by hand, and the same with one thing
// wrong.
#include <limits>

#include "tests/golden/stencil_must_fail.h"
#include "tests/golden/wavelet_by_hand.h"

namespace quern::golden {
namespace {

constexpr std::uint64_t kRows = 3;
constexpr std::uint64_t kColumns = 8;

using Chunk = StoredWavelet;
using Make = Maker<Chunk>;
constexpr StatusCode kCorrupt = StatusCode::corrupt;

void add_params_cases(std::vector<MustFailCase>& cases, const Bytes& whole, const Bytes& raster) {
  const auto add = [&](const char* name, const char* why, const Bytes& stream, std::uint8_t second,
                       std::uint8_t order) {
    cases.push_back({name, kCorrupt, why, with_header(stream, [&](Header& h) { h.params = {0, second, order}; })});
  };
  add("stencil_wavelet_in_levels", "a chunk under the wavelet where the parameters announce levels", whole, 1, 1);
  add("stencil_wavelet_in_planes", "a chunk under the wavelet where the parameters announce planes", whole, 1, 2);
  cases.push_back({"stencil_wavelet_in_raster", kCorrupt, "a chunk under the wavelet where the parameters rule it out",
                   with_header(whole, [](Header& h) {
                     h.params = {0, 1};
                   })});
  cases.push_back({"stencil_wavelet_level_tables", kCorrupt, "level tables of a stream under the wavelet",
                   with_header(whole, [](Header& h) { h.must_understand = 1; })});
  cases.push_back({"stencil_wavelet_level_tables_raster", kCorrupt, "level tables where order 3 is announced",
                   with_header(raster, [](Header& h) {
                     h.params = {0, 1, 3};
                     h.must_understand = 1;
                   })});
}

void add_number_cases(const Make& make) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  make.add("stencil_wavelet_base", "a base that is not finite", kCorrupt, [](Chunk& c) { c.base = -kInfinity; });
  make.add("stencil_wavelet_base_nan", "a base that is no number", kCorrupt,
           [](Chunk& c) { c.base = std::numeric_limits<double>::quiet_NaN(); });
  make.add("stencil_wavelet_unit_infinite", "a unit that is not finite", kCorrupt,
           [](Chunk& c) { c.unit = kInfinity; });
  make.add("stencil_wavelet_unit_zero", "a unit of 0", kCorrupt, [](Chunk& c) { c.unit = 0; });
  make.add("stencil_wavelet_unit_negative", "a unit below 0", kCorrupt, [](Chunk& c) { c.unit = -0.5; });
  make.add("stencil_wavelet_masked", "a chunk that counts on a mask where there is none", kCorrupt,
           [](Chunk& c) { c.masked = 1; });
}

void add_axes_cases(const Make& make, const Make& in_volume) {
  // The numbers of constants are those that the broken axes would have.
  make.add("stencil_wavelet_packets_all", "packet axes and no other", kCorrupt, [](Chunk& c) {
    c.packets = 2;
    c.levels = {1, 1};
    c.constants.assign(4, 40);
  });
  make.add("stencil_wavelet_packets_more", "more packet axes than axes", kCorrupt, [](Chunk& c) {
    c.packets = 3;
    c.levels = {1, 1};
    c.constants.assign(4, 40);
  });
  in_volume.add("stencil_wavelet_packets_three", "three packet axes of four", kCorrupt, [](Chunk& c) {
    c.packets = 3;
    c.levels = {1, 0, 0, 0};
    c.constants.assign(2, 40);
  });
  make.add("stencil_wavelet_levels_rows", "a level that halves a single row", kCorrupt, [](Chunk& c) {
    c.levels = {3, 2};
    c.constants.assign(4, 40);
  });
  make.add("stencil_wavelet_levels_columns", "a level that halves a single column", kCorrupt, [](Chunk& c) {
    c.levels = {2, 4};
    c.constants.assign(5, 40);
  });
  make.add("stencil_wavelet_levels_packet", "a packet axis with a level that halves a single row", kCorrupt,
           [](Chunk& c) {
             c.packets = 1;
             c.levels = {3, 2};
             c.constants.assign(12, 40);
           });
  make.add("stencil_wavelet_levels_most", "31 levels", kCorrupt, [](Chunk& c) {
    c.levels = {2, 31};
    c.constants.assign(32, 40);
  });
  // As many constants as another decomposition has: what follows is read at another place.
  make.add("stencil_wavelet_groups_few", "constants for fewer scales than there are", kCorrupt,
           [](Chunk& c) { c.constants.pop_back(); });
  make.add("stencil_wavelet_groups_many", "constants for more scales than there are", kCorrupt,
           [](Chunk& c) { c.constants.push_back(40); });
}

void add_model_cases(const Make& make) {
  make.add("stencil_wavelet_step", "coefficients of step 0", kCorrupt, [](Chunk& c) { c.step = 0; });
  make.add("stencil_wavelet_weight", "a weight of contexts that is too large", kCorrupt,
           [](Chunk& c) { c.first_weight = 8192; });
  make.add("stencil_wavelet_weight_endless", "a weight of contexts without end", kCorrupt,
           [](Chunk& c) { c.first_weight = ~std::uint64_t{0} >> 1; });
  make.add("stencil_wavelet_constant", "a constant of a scale that is too large", kCorrupt,
           [](Chunk& c) { c.constants.back() = 8192; });
  make.add("stencil_wavelet_constant_wide", "a constant of 16 bits more than there may be", kCorrupt, [](Chunk& c) {
    c.constant_order = 15;
    c.constants.front() = (std::uint64_t{1} << 16) + 40;
  });
  make.add("stencil_wavelet_correction_step", "corrections of step 0", kCorrupt, [](Chunk& c) {
    c.corrections = StoredCorrections{};
    c.corrections->step = 0;
  });
  make.add("stencil_wavelet_correction_weight", "a weight of corrections that is too large", kCorrupt, [](Chunk& c) {
    c.corrections = StoredCorrections{};
    c.corrections->first_weight = 8192;
  });
  make.add("stencil_wavelet_correction_constant", "a constant of corrections that is too large", kCorrupt,
           [](Chunk& c) {
             c.corrections = StoredCorrections{};
             c.corrections->constant = 8192;
           });
  make.add("stencil_wavelet_tokens", "a distribution of 121 tokens under the wavelet", kCorrupt, [](Chunk& c) {
    c.tokens = 121;
    c.zero = 100;
  });
  // Every code would be a sign bit: 24 of them take the state from 2^24 to 2^16.
  make.add("stencil_wavelet_zero", "a token of frequency 0 under the wavelet", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.lanes = {0, 0, 0, 1, 0, 0};
  });
  make.add("stencil_wavelet_frequencies", "frequencies of more than all under the wavelet", kCorrupt, [](Chunk& c) {
    c.tokens = 4;
    c.zero = (1u << 15) - 2;
  });
  make.add("stencil_wavelet_no_distribution", "no distribution at all under the wavelet", kCorrupt,
           [](Chunk& c) { c.tokens = 0; });
  make.add("stencil_wavelet_distributions_crossed", "a first level above the last under the wavelet", kCorrupt,
           [](Chunk& c) { c.first_level = 11; });
  make.add("stencil_wavelet_model_cut", "a chunk that ends in the model of its wavelet", kCorrupt, [](Chunk& c) {
    c.last_level = 63;
    c.tokens = 2;
    c.zero = 9;
    c.cut = 30;
  });
}

void add_lane_cases(const Make& make) {
  constexpr std::uint8_t kElems = kRows * kColumns;
  make.add("stencil_wavelet_exceptions_count", "more exceptions than elements, under the wavelet", kCorrupt,
           [](Chunk& c) { c.exceptions = {kElems + 1}; });
  make.add("stencil_wavelet_exception_outside", "an exception behind the last element, under the wavelet", kCorrupt,
           [](Chunk& c) { c.exceptions = {1, kElems, 0, 0, 0, 0, 0, 0, 0, 0}; });
  make.add("stencil_wavelet_exceptions_cut", "exceptions that the chunk ends in, under the wavelet",
           StatusCode::truncated, [](Chunk& c) {
             c.exceptions = {5};
             c.lanes = {0};
           });
  make.add("stencil_wavelet_no_lanes", "a chunk that ends before its lanes", StatusCode::truncated, [](Chunk& c) {
    c.lane_sizes = {};
    c.lanes = {};
  });
  make.add("stencil_wavelet_lane_bits", "64 lanes of a wavelet", kCorrupt, [](Chunk& c) { c.lane_sizes = {6}; });
  make.add("stencil_wavelet_lane_sizes_cut", "fewer sizes of lanes than lanes", StatusCode::truncated, [](Chunk& c) {
    c.lane_sizes = {5, 2, 2};
    c.lanes = {};
  });
  make.add("stencil_wavelet_lane_state", "a lane of a wavelet that begins below 2^16", kCorrupt, [](Chunk& c) {
    c.lanes = {0xFF, 0xFF, 0, 0};
  });
  // With a word taken for it the state would rise to 2^16 and stay there.
  make.add("stencil_wavelet_lane_state_low", "a lane of a wavelet that begins at 1 and ends as it should", kCorrupt,
           [](Chunk& c) { c.lanes = {1, 0, 0, 0, 0, 0}; });
  make.add("stencil_wavelet_lane_end", "a lane of a wavelet that ends in another state", kCorrupt, [](Chunk& c) {
    c.lanes = {1, 0, 1, 0};
  });
  make.add("stencil_wavelet_lane_words", "a word more than a lane of a wavelet uses", kCorrupt,
           [](Chunk& c) { c.lanes = {0, 0, 1, 0, 0, 0}; });
  make.add("stencil_wavelet_lane_odd", "half a word in a lane of a wavelet", kCorrupt, [](Chunk& c) {
    c.lanes = {0, 0, 1, 0, 0};
  });
  make.add("stencil_wavelet_lane_none", "a lane of a wavelet without a state", kCorrupt, [](Chunk& c) {
    c.lanes = {0, 0};
  });
  make.add("stencil_wavelet_lane_short", "a lane that ends within the coefficients", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.zero = 1u << 14;
  });
  // The lane has all coefficients, and the corrections find nothing more: 48 codes where 24 are stored.
  make.add("stencil_wavelet_lane_short_corrections", "a lane that ends within the corrections", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.zero = 1u << 14;
    c.lanes = lane_of(std::vector<std::int32_t>(kElems, 1), 2, 1u << 14);
    c.corrections = StoredCorrections{};
  });
  make.add("stencil_wavelet_corrections_uncoded", "codes of corrections that do not occur", kCorrupt, [](Chunk& c) {
    c.tokens = 2;
    c.zero = 1u << 14;
    c.lanes = lane_of(std::vector<std::int32_t>(2 * kElems, 1), 2, 1u << 14);
  });
  make.add("stencil_wavelet_lane_sizes", "a lane longer than the chunk under the wavelet", kCorrupt, [](Chunk& c) {
    c.lane_sizes = {1, 20};
    c.lanes = {0, 0, 1, 0, 0, 0, 1, 0};
  });
  make.add("stencil_wavelet_lane_sizes_all", "a lane that leaves nothing to the other under the wavelet", kCorrupt,
           [](Chunk& c) {
             c.lane_sizes = {1, 4};
             c.lanes = {0, 0, 1, 0, 0, 0, 1, 0};
           });
}

}  // namespace

void add_wavelet_cases(std::vector<MustFailCase>& cases, const Bytes& raster) {
  const Make make(cases, "wavelet:2d:1", {kRows, kColumns}, StoredWavelet{});
  StoredWavelet four;
  four.levels = {1, 1, 1, 2};
  const Make in_volume(cases, "wavelet:3d:1,2", {2, 2, 2, 8}, four);
  add_params_cases(cases, make.stream(), raster);
  add_number_cases(make);
  add_axes_cases(make, in_volume);
  add_model_cases(make);
  add_lane_cases(make);
}

}  // namespace quern::golden

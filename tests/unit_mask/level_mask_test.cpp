// Masks coded by levels: order of cells, models, lanes; round trips of every pattern, and hostile bytes.
#include <gtest/gtest.h>

#include <set>

#include "kernels/mask/levels/head.h"
#include "kernels/mask/levels/lattice.h"
#include "kernels/mask/levels/neighbours.h"
#include "libcompress/pipeline/mask/level_codec.h"
#include "libcompress/pipeline/mask/level_coder.h"
#include "tests/fuzz/fuzz_common.h"
#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;

Vector<std::uint8_t> encoded(const SegmentMask& mask, const kernels::MaskPlanes& planes, DType dtype = DType::f32) {
  Vector<std::uint8_t> out;
  const Status status = encode_levels(mask, planes, dtype, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

TEST(LevelOrder_EveryPlane_CodesEachCellOnceAfterItsNeighbours, Phases) {
  for (std::uint64_t rows = 1; rows < 20; ++rows) {
    for (std::uint64_t cols = 1; cols < 20; ++cols) {
      for (const bool with_reference : {false, true}) {
        std::set<std::pair<std::int64_t, std::int64_t>> known;
        const std::uint64_t base = kernels::level_base(rows, cols, with_reference);
        for (std::uint64_t y = 0; y < rows; y += base) {
          for (std::uint64_t x = 0; x < cols; x += base) known.emplace(y, x);
        }
        for (std::uint64_t s = base / 2; s >= 1; s /= 2) {
          for (const kernels::LevelPhase& phase : kernels::kLevelPhases) {
            const auto before = known;
            const auto step = static_cast<std::int64_t>(s);
            for (std::uint64_t y = phase.y0 * s; y < rows; y += 2 * s) {
              for (std::uint64_t x = phase.x0 * s; x < cols; x += 2 * s) {
                for (unsigned i = 0; i < kernels::kLevelNeighbours; ++i) {
                  const auto v = kernels::level_coordinate(static_cast<std::int64_t>(y) + phase.dy[i] * step,
                                                           static_cast<std::int64_t>(rows), step);
                  const auto u = kernels::level_coordinate(static_cast<std::int64_t>(x) + phase.dx[i] * step,
                                                           static_cast<std::int64_t>(cols), step);
                  const bool inside =
                      v >= 0 && u >= 0 && v < static_cast<std::int64_t>(rows) && u < static_cast<std::int64_t>(cols);
                  ASSERT_TRUE(!inside || before.count({v, u}) == 1) << rows << "x" << cols << " at " << y << "," << x;
                }
                ASSERT_TRUE(known.emplace(y, x).second);
              }
            }
          }
        }
        ASSERT_EQ(known.size(), rows * cols);
      }
    }
  }
}

/// The lattices of a distance in a plane: extents, and the place of cell (0, 0).
struct Lattice {
  std::int64_t y0, x0, rows, cols;
};

TEST(LevelOrder_NeighboursInLattices_AreThoseOfTheFormat, Taps) {
  for (std::int64_t rows = 1; rows < 12; ++rows) {
    for (std::int64_t cols = 1; cols < 12; ++cols) {
      for (const std::int64_t s : {1, 2, 4}) {
        const auto places = [&](std::int64_t extent, std::int64_t first) {
          return extent <= first ? 0 : (extent - first + 2 * s - 1) / (2 * s);
        };
        const Lattice lattices[] = {{0, 0, places(rows, 0), places(cols, 0)},
                                    {0, s, places(rows, 0), places(cols, s)},
                                    {s, 0, places(rows, s), places(cols, 0)}};
        for (unsigned p = 0; p < kernels::level_contexts::kPhases; ++p) {
          const kernels::LevelPhase& phase = kernels::kLevelPhases[p];
          const auto y0 = static_cast<std::int64_t>(phase.y0) * s, x0 = static_cast<std::int64_t>(phase.x0) * s;
          for (std::int64_t y = y0; y < rows; y += 2 * s) {
            for (std::int64_t x = x0; x < cols; x += 2 * s) {
              for (unsigned n = 0; n < kernels::kLevelNeighbours; ++n) {
                const kernels::LevelTap tap = kernels::kLevelTaps[p][n];
                const Lattice& lattice = lattices[static_cast<unsigned>(tap.lattice)];
                const std::int64_t v = kernels::level_coordinate(y + phase.dy[n] * s, rows, s);
                const std::int64_t u = kernels::level_coordinate(x + phase.dx[n] * s, cols, s);
                if (lattice.rows == 0 || lattice.cols == 0) {
                  ASSERT_TRUE(v < 0 || u < 0 || v >= rows || u >= cols);
                  continue;
                }
                const std::int64_t i = std::clamp<std::int64_t>((y - y0) / (2 * s) + tap.row, 0, lattice.rows - 1);
                const std::int64_t j = std::clamp<std::int64_t>((x - x0) / (2 * s) + tap.col, 0, lattice.cols - 1);
                ASSERT_TRUE(lattice.y0 + i * 2 * s == v && lattice.x0 + j * 2 * s == u)
                    << rows << "x" << cols << " phase " << p << " at " << y << "," << x << " neighbour " << n;
              }
            }
          }
        }
      }
    }
  }
}

TEST(LevelOrder_NumbersOf64Cells_AreCounts, Words) {
  std::mt19937_64 rng(11);
  for (int round = 0; round < 200; ++round) {
    std::uint64_t v[8], there[8];
    for (std::uint64_t& word : v) word = rng() | (round % 3 == 0 ? rng() : 0);
    for (std::uint64_t& word : there) word = round % 2 == 0 ? rng() : v[rng() % 8];
    const std::uint64_t r = rng();
    const kernels::LevelNumbers around = kernels::equal_around(r, v);
    const kernels::LevelSideWords first = kernels::level_sides<0>(v, there, r);
    const kernels::LevelSideWords last = kernels::level_sides<2>(v, there, r);
    for (unsigned cell = 0; cell < 64; ++cell) {
      unsigned alike[8], differ[8], all = 0, six = 0, eight = 0;
      for (unsigned n = 0; n < 8; ++n) {
        alike[n] = ((v[n] ^ r) >> cell & 1) == 0 ? 1 : 0;
        differ[n] = (v[n] ^ there[n]) >> cell & 1;
        all += alike[n];
        eight += differ[n];
        six += n < 6 ? differ[n] : 0;
      }
      const auto of_four = [&](unsigned n) { return alike[n] + alike[n + 1] + alike[n + 2] + alike[n + 3]; };
      const auto next = [](unsigned n) { return n == 4 ? 2U : n >= 2 ? 1U : 0U; };
      const auto few = [](unsigned n) { return n <= 1 ? n : n <= 3 ? 2U : 3U; };
      ASSERT_EQ(around.of(cell), all <= 2 ? 0 : all - 2);
      ASSERT_EQ(first.near.of(cell), 2 * (alike[0] + alike[1]));
      ASSERT_EQ(first.next.of(cell), next(of_four(2)));
      ASSERT_EQ(first.differ.of(cell), few(six));
      ASSERT_EQ(last.near.of(cell), of_four(0));
      ASSERT_EQ(last.next.of(cell), next(of_four(4)));
      ASSERT_EQ(last.differ.of(cell), few(eight));
    }
  }
}

TEST(LevelModels_AnyCounts_GiveProbabilitiesWithinBounds, Counts) {
  for (unsigned z = 0; z <= kernels::LevelCounts::kMost; z += 15) {
    for (unsigned o = z == 0 ? 1 : 0; z + o <= kernels::LevelCounts::kMost; o += 15) {
      kernels::LevelCounts c{static_cast<std::uint16_t>(z), static_cast<std::uint16_t>(o)};
      const std::uint32_t p = kernels::level_probability(c);
      ASSERT_TRUE(p >= 1 && p < kernels::kLevelOne);
      ASSERT_NEAR(p, std::clamp(4096.0 * o / (z + o), 1.0, 4095.0), 0.51);
      const std::uint32_t fine = kernels::fine_probability(c, 4095);
      ASSERT_TRUE(fine >= 1 && fine < kernels::kLevelOne);
      c.add(2048, 7);
      ASSERT_LE(c.all(), kernels::LevelCounts::kMost);
      ASSERT_GT(c.all(), 0U);
    }
  }
  for (const auto& constants : kernels::kLevelConstants.counts) EXPECT_GE(constants[0] + constants[1], 1);
}

TEST(LevelModels_Batches_GrowWithWhatIsCoded, Sizes) {
  kernels::LevelBatches batches;
  EXPECT_EQ(batches.next(), 64U);
  batches.took(6143);
  EXPECT_EQ(batches.next(), 64U);
  batches.took(1);
  EXPECT_EQ(batches.next(), 96U);
  batches.took(1 << 20);
  EXPECT_EQ(batches.next(), 2048U);
}

/// Symbols of every context by one coin, through words and back, at the borders of batches.
TEST(LevelCoder_ListsOfAnyLength_ComeBack, Batches) {
  std::mt19937_64 rng(3);
  for (const std::size_t length : {1, 31, 32, 63, 64, 65, 4095, 20000, 700000}) {
    LevelEncoder encoder;
    LevelTables tables;
    LevelList list;
    list.make_room(length, length % 2 == 1);
    for (std::size_t i = 0; i < length; ++i) {
      const auto context = static_cast<unsigned>(rng() % kernels::level_contexts::kCount);
      const unsigned symbol = rng() % 9 == 0 ? 1 : 0;
      if (list.has_fine) {
        list.add(context, symbol, static_cast<unsigned>(rng() % kernels::level_contexts::kFineCount));
      } else {
        list.add(context, symbol);
      }
    }
    const LevelList sent = list;
    encoder.code(tables, list);
    const auto words = encoder.words();
    EXPECT_EQ(words.size(), kernels::level_groups(encoder.lanes()));
    Vector<Vector<std::uint8_t>> bytes;
    for (const auto& group : words) {
      bytes.emplace_back();
      for (const std::uint16_t word : group) {
        bytes.back().push_back(static_cast<std::uint8_t>(word));
        bytes.back().push_back(static_cast<std::uint8_t>(word >> 8));
      }
    }
    Vector<std::span<const std::uint8_t>> groups(bytes.begin(), bytes.end());
    LevelDecoder decoder(encoder.lanes(), groups);
    LevelTables own;
    std::fill(list.symbols.begin(), list.symbols.end(), std::uint8_t{0});
    decoder.code(own, list);
    ASSERT_EQ(list.symbols, sent.symbols) << length;
    ASSERT_TRUE(decoder.complete()) << length;
  }
}

void expect_round_trip(const SegmentMask& mask, const kernels::MaskPlanes& planes, DType dtype,
                       const std::string& what) {
  if (mask.empty()) return;
  const auto bytes = encoded(mask, planes, dtype);
  const auto back = decode_levels(bytes, planes, dtype, level_decode_bytes(planes));
  ASSERT_TRUE(back.ok()) << what << ": " << back.status().text();
  ASSERT_TRUE(*back == mask) << what;
}

TEST(LevelMask_EveryPatternAndExtents_RoundTrips, Samples) {
  for (const std::size_t kinds : {1, 2, 3, 7, 30, 0}) {
    for (const Extents& e : sample_extents()) {
      for (const Pattern p : kAllPatterns) {
        const DType dtype = kinds % 2 == 0 ? DType::f64 : DType::u8;
        expect_round_trip(make_mask(e, p, kinds, kinds != 1, dtype, 40 + kinds), kernels::MaskPlanes(e), dtype,
                          describe(e, p, dtype, 40 + kinds));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LevelMask_SmallExtents_RoundTrip, EveryBorder) {
  for (std::uint64_t planes = 1; planes < 4; ++planes) {
    for (std::uint64_t rows = 1; rows < 10; ++rows) {
      for (std::uint64_t cols = 1; cols < 10; ++cols) {
        const Extents e{planes, rows, cols};
        expect_round_trip(make_mask(e, Pattern::random, 1, false, DType::f32, rows * 16 + cols), kernels::MaskPlanes(e),
                          DType::f32, describe(e, Pattern::random, DType::f32, 0));
        SegmentMask corner = make_mask(e, Pattern::none, 1, false, DType::f32, 1);
        corner.classes.back() = 1;
        corner.masked = 1;
        expect_round_trip(corner, kernels::MaskPlanes(e), DType::f32, describe(e, Pattern::none, DType::f32, 0));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LevelMask_PlanesOfAYear_ReferToTheYearBefore, Distance) {
  const SegmentMask year = make_mask({12, 40, 60}, Pattern::random, 1, false, DType::f32, 5);
  SegmentMask years = year;
  for (int k = 1; k < 4; ++k) years.classes.insert(years.classes.end(), year.classes.begin(), year.classes.end());
  years.masked *= 4;
  const kernels::MaskPlanes planes(years.classes.size(), 40, 60);
  const auto bytes = encoded(years, planes);
  EXPECT_EQ(bytes[3], 12);
  EXPECT_LE(bytes.size(), encoded(year, {year.classes.size(), 40, 60}).size() + 40);
  expect_round_trip(years, planes, DType::f32, "years");
}

TEST(LevelMask_ShortLastPlane_RoundTrips, Views) {
  for (const Extents& e : sample_extents()) {
    for (const kernels::MaskView& view : sample_views(e)) {
      if (!kernels::is_view_of(view, kernels::MaskPlanes(e))) continue;
      expect_round_trip(make_mask(e, Pattern::coast, 2, true, DType::f32, 9), {cells_of(e), view.rows, view.cols},
                        DType::f32, describe(e, Pattern::coast, DType::f32, 9));
      if (HasFatalFailure()) return;
    }
  }
}

constexpr std::uint64_t kSlack = UINT64_C(4) << 10;  // what malloc adds

TEST(LevelMask_NarrowRows_StayWithinTheirMemory, Limits) {
  std::mt19937_64 rng(21);
  for (const std::uint64_t cols : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 64, 65, 129}) {
    for (const std::uint64_t planes : {1, 5}) {
      const Extents e{planes, 20000 / planes / cols, cols};
      SegmentMask mask = make_mask(e, Pattern::blocks, 2, false, DType::f64, 3);
      put_classes_along_rim(mask, e);
      const auto good = encoded(mask, kernels::MaskPlanes(e), DType::f64);
      const std::uint64_t limit = decode_bytes(e, MaskForm::levels);
      for (int round = 0; round < 6; ++round) {
        // Of noise most cells are coded one by one; and a writer may take the rim or not.
        Vector<std::uint8_t> bytes = good;
        if (round > 0) bytes[1] = static_cast<std::uint8_t>(bytes[1] | kernels::kLevelBesideRim);
        for (std::size_t at = 40; round > 1 && at < bytes.size(); ++at) bytes[at] = static_cast<std::uint8_t>(rng());
        const fuzz::AllocationWatch watch;
        const auto back = decode_mask(bytes, e, DType::f64, limit, MaskForm::levels);
        EXPECT_LE(watch.peak(), limit + kSlack) << cols << " columns, " << planes << " planes, round " << round;
        EXPECT_NE(back.status().code(), StatusCode::memory_limit);
        if (round == 0) {
          ASSERT_TRUE(back.ok() && *back == mask) << back.status().text();
        }
      }
    }
  }
}

/// What a box of narrow rows declares for views of it is enough for each of them.
TEST(LevelMask_AnyView_TakesWhatItsBoxDeclares, Limits) {
  for (const std::uint64_t cells : {64, 1000, 4095, 65536, 1 << 20, (1 << 30) - 8}) {
    for (std::uint64_t cols = kernels::kLeastViewExtent; cols <= 300 && cols <= cells; ++cols) {
      for (std::uint64_t rows = 1; rows <= cells / cols; rows = rows * 3 + 1) {
        const std::uint64_t whole = cells / cols * cols;
        ASSERT_LE(level_decode_bytes({whole, rows, cols}), most_level_decode_bytes({whole, 1, whole}))
            << whole << " cells, " << rows << "x" << cols;
      }
    }
  }
}

Vector<std::uint8_t> stored(const SegmentMask& mask, const Extents& e, Views views) {
  Vector<std::uint8_t> out;
  const Status status = encode_mask(mask, e, DType::f32, out, views, MaskForm::levels);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

TEST(LevelMask_AsTheStoredForm_RoundTrips, Views) {
  std::size_t seen = 0, rows = 0;
  for (const Extents& e : sample_extents()) {
    const auto views = sample_views(e);
    for (const Pattern p : kAllPatterns) {
      const SegmentMask mask = make_mask(e, p, 2, true, DType::f32, 12);
      const auto bytes = stored(mask, e, views);
      seen += is_by_levels(bytes, e) ? 1 : 0;
      rows += bytes.size() > 2 && bytes[0] == kernels::kViewMark && bytes[2] == 1 ? 1 : 0;
      const auto back = decode_mask(bytes, e, DType::f32, decode_bytes(e, MaskForm::levels), MaskForm::levels);
      ASSERT_TRUE(back.ok()) << describe(e, p, DType::f32, 12) << ": " << back.status().text();
      ASSERT_TRUE(mask.empty() ? back->empty() : *back == mask) << describe(e, p, DType::f32, 12);
      if (mask.empty()) continue;
      EXPECT_EQ(decode_mask(bytes, e, DType::f32, kPlenty).status().code(), StatusCode::corrupt)
          << "in a stream that does not announce it";
      const std::uint64_t guess = estimate_levels(mask.classes, mask.specials.size(), e, views, DType::f32);
      EXPECT_TRUE(guess <= 12 * bytes.size() + 64 && bytes.size() <= 12 * guess + 64)
          << describe(e, p, DType::f32, 12) << ": " << guess << " for " << bytes.size();
    }
  }
  EXPECT_GT(seen, 20U);
  EXPECT_GT(rows, 0U);
}

TEST(LevelMask_RowsThatRepeat_AreCodedAsPlanes, Textures) {
  const Extents e{1, 256, 512};
  for (const unsigned texture : {0U, 1U, 2U}) {
    SegmentMask mask = make_mask(e, Pattern::none, 1, false, DType::f32, 1);
    mask.classes.resize(cells_of(e));
    for (std::uint64_t cell = 0; cell < cells_of(e); ++cell) {
      const std::uint64_t y = cell / 512, x = cell % 512;
      mask.classes[cell] = texture == 0 ? (x + y) % 2 : texture == 1 ? (y % 7 == 0 ? 1 : 0) : x % 7 == 0 ? 1 : 0;
      mask.masked += mask.classes[cell];
    }
    const auto bytes = stored(mask, e, {});
    EXPECT_EQ(bytes[2], 1) << texture;  // rows of a plane
    EXPECT_LE(bytes.size(), 320U) << texture;
    const auto back = decode_mask(bytes, e, DType::f32, decode_bytes(e, MaskForm::levels), MaskForm::levels);
    ASSERT_TRUE(back.ok() && *back == mask) << texture;
  }
}

TEST(LevelMask_ViewsOfOneRow_AreForLevelsAlone, Hostile) {
  const Extents e{1, 64, 64};
  SegmentMask mask = make_mask(e, Pattern::checkerboard, 1, false, DType::f32, 3);
  auto bytes = stored(mask, e, {});
  const auto read = [&](std::size_t at, std::uint8_t byte) {
    auto changed = bytes;
    changed[at] = byte;
    return decode_mask(changed, e, DType::f32, kPlenty, MaskForm::levels).status().code();
  };
  ASSERT_EQ(bytes[0], kernels::kViewMark);
  ASSERT_EQ(bytes[2], 1);
  EXPECT_EQ(read(3, 0x08), StatusCode::corrupt);  // decisions in planes of one row
  EXPECT_EQ(read(2, 0), StatusCode::corrupt);     // planes of no row
  EXPECT_EQ(read(2, 64), StatusCode::corrupt);    // the planes of the box
  EXPECT_EQ(read(2, 65), StatusCode::corrupt);    // more rows than there are
  EXPECT_EQ(read(1, 16), StatusCode::corrupt);    // rows of four cells
  EXPECT_EQ(decode_mask(bytes, e, DType::f32, 4096, MaskForm::levels).status().code(), StatusCode::memory_limit);
}

TEST(LevelMask_Coast_CostsAboutWhatItDoesToday, Bytes) {
  const Extents e{1, 400, 700};
  SegmentMask mask = make_mask(e, Pattern::none, 1, false, DType::f32, 1);
  for (std::uint64_t cell = 0; cell < cells_of(e); ++cell) {
    const std::uint64_t y = cell / 700, x = cell % 700;
    mask.classes[cell] = (x - 350) * (x - 350) / 3 + (y - 200) * (y - 200) + (x / 9 * y / 7) % 640 < 19000 ? 1 : 0;
    mask.masked += mask.classes[cell];
  }
  Vector<std::uint8_t> today;
  ASSERT_TRUE(encode_mask(mask, e, DType::f32, today).ok());
  const auto bytes = encoded(mask, kernels::MaskPlanes(e));
  EXPECT_LE(bytes.size(), today.size() * 115 / 100);
  EXPECT_GE(bytes.size(), today.size() / 2);
}

TEST(LevelMask_ThatDoesNotFit_IsRefused, Arguments) {
  Vector<std::uint8_t> out;
  const SegmentMask mask = make_mask({1, 4, 8}, Pattern::blocks, 1, false, DType::f32, 2);
  EXPECT_EQ(encode_levels(mask, {33, 4, 8}, DType::f32, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ(encode_levels(SegmentMask{}, {32, 4, 8}, DType::f32, out).code(), StatusCode::invalid_argument);
  EXPECT_TRUE(out.empty());
}

/// A status, or a mask that is consistent.
void expect_safe(const Result<SegmentMask>& result, const kernels::MaskPlanes& planes, const std::string& what) {
  if (!result.ok()) {
    const StatusCode code = result.status().code();
    ASSERT_TRUE(code == StatusCode::corrupt || code == StatusCode::truncated || code == StatusCode::trailing_data)
        << what << ": " << result.status().text();
    return;
  }
  ASSERT_EQ(result->classes.size(), planes.cells) << what;
  std::uint64_t masked = 0, verbatim = 0;
  for (const std::uint8_t c : result->classes) {
    ASSERT_TRUE(c <= result->specials.size() || c == kVerbatimClass) << what;
    masked += c != 0 ? 1 : 0;
    verbatim += c == kVerbatimClass ? 1 : 0;
  }
  ASSERT_TRUE(masked == result->masked && masked > 0 && verbatim == result->verbatim.size()) << what;
}

TEST(LevelDecoder_DamagedBytes_NeverMisbehave, Damage) {
  std::mt19937_64 rng(77);
  std::size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const Extents& e = sample_extents()[rng() % sample_extents().size()];
    const Pattern pattern = kAllPatterns[1 + rng() % (std::size(kAllPatterns) - 1)];
    const SegmentMask mask = make_mask(e, pattern, rng() % 5, true, DType::f32, rng());
    if (mask.empty()) continue;
    auto bytes = encoded(mask, kernels::MaskPlanes(e));
    damage(bytes, rng);
    const auto result = decode_levels(bytes, kernels::MaskPlanes(e), DType::f32, kPlenty);
    refused += result.ok() ? 0 : 1;
    expect_safe(result, kernels::MaskPlanes(e),
                describe(e, pattern, DType::f32, 0) + " round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 1500U);
}

TEST(LevelDecoder_EveryByteMissing_IsSeen, Truncation) {
  const Extents e{3, 20, 70};
  const SegmentMask mask = make_mask(e, Pattern::coast, 2, true, DType::f32, 4);
  auto bytes = encoded(mask, kernels::MaskPlanes(e));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto result = decode_levels(std::span(bytes).first(n), kernels::MaskPlanes(e), DType::f32, kPlenty);
    ASSERT_EQ(result.status().code(), StatusCode::truncated) << n;
  }
  bytes.push_back(0);
  EXPECT_EQ(decode_levels(bytes, kernels::MaskPlanes(e), DType::f32, kPlenty).status().code(),
            StatusCode::trailing_data);
}

TEST(LevelDecoder_Head_IsChecked, Numbers) {
  const Extents e{3, 20, 70};
  const auto good = encoded(make_mask(e, Pattern::coast, 2, true, DType::f32, 4), kernels::MaskPlanes(e));
  const auto code = [&](std::size_t at, std::uint8_t byte) {
    auto bytes = good;
    bytes[at] = byte;
    return decode_levels(bytes, kernels::MaskPlanes(e), DType::f32, kPlenty).status().code();
  };
  EXPECT_EQ(code(0, 0xF8), StatusCode::corrupt);
  EXPECT_EQ(code(1, 0), StatusCode::corrupt);     // no class
  EXPECT_EQ(code(1, 31), StatusCode::corrupt);    // 31 special values
  EXPECT_EQ(code(1, 0x62), StatusCode::corrupt);  // a flag that means nothing
  EXPECT_EQ(code(2, 7), StatusCode::corrupt);     // 512 lanes
  EXPECT_EQ(code(3, 0), StatusCode::corrupt);     // a plane that refers to itself
  EXPECT_EQ(code(3, 65), StatusCode::corrupt);
  EXPECT_EQ(decode_levels(good, kernels::MaskPlanes(e), DType::f32, 1000).status().code(), StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern::mask

// Views: masks coded in rows and planes of the array's own axes. Which ones an array offers, which one is chosen, round
// trips, and what a decoder refuses.
#include <gtest/gtest.h>

#include <array>

#include "kernels/mask/walk.h"
#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;

std::vector<std::pair<std::uint64_t, std::uint64_t>> views_of(const std::vector<std::uint64_t>& shape,
                                                              const Extents& grid) {
  const kernels::MaskViews views(shape, grid);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
  for (const kernels::MaskView& view : views.all()) pairs.emplace_back(view.rows, view.cols);
  return pairs;
}

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(MaskViews_AxesThatAreNotMerged_OfferNone, Shapes) {
  EXPECT_EQ(views_of({12, 291, 360}, {12, 291, 360}), Pairs());
  EXPECT_EQ(views_of({384, 320}, {1, 384, 320}), Pairs());
  EXPECT_EQ(views_of({1, 384, 1, 320}, {1, 384, 320}), Pairs());
  EXPECT_EQ(views_of({100}, {1, 1, 100}), Pairs());
  EXPECT_EQ(views_of({}, {1, 1, 1}), Pairs());
}

TEST(MaskViews_MergedAxes_OfferEveryCutThatFits, Shapes) {
  EXPECT_EQ(views_of({12, 291, 360}, {1, 3492, 360}), (Pairs{{291, 360}, {3492, 360}}));
  EXPECT_EQ(views_of({40, 8761}, {1, 1, 350440}), (Pairs{{40, 8761}}));
  EXPECT_EQ(views_of({12, 15, 40, 90}, {1, 12, 54000}),
            (Pairs{{40, 90}, {600, 90}, {7200, 90}, {15, 3600}, {180, 3600}, {12, 54000}}));
  // Rows and planes of fewer than eight places are none.
  EXPECT_EQ(views_of({1200, 19, 2, 3}, {1, 1200, 114}), (Pairs{{1200, 114}}));
  EXPECT_EQ(views_of({3, 5, 7, 11, 2, 2, 2, 2}, {1, 1, 18480}).size(), 11U);
}

Vector<std::uint8_t> encoded(const SegmentMask& mask, const Extents& e, Views views) {
  Vector<std::uint8_t> out;
  const Status status = encode_mask(mask, e, DType::f32, out, views);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

TEST(MaskCodec_EveryView_RoundTrips, Samples) {
  std::size_t seen = 0;
  for (const Extents& e : sample_extents()) {
    for (const kernels::MaskView& view : sample_views(e)) {
      for (const Pattern p : kAllPatterns) {
        const SegmentMask mask = make_mask(e, p, 2, true, DType::f32, 11);
        const auto bytes = encoded(mask, e, {&view, 1});
        seen += !bytes.empty() && bytes[0] == kernels::kViewMark ? 1 : 0;
        const auto back = decode_mask(bytes, e, DType::f32, kPlenty);
        ASSERT_TRUE(back.ok()) << describe(e, p, DType::f32, 11) << ": " << back.status().text();
        ASSERT_TRUE(mask.empty() ? back->empty() : *back == mask) << describe(e, p, DType::f32, 11);
        const bool noisy = p == Pattern::random || p == Pattern::rare || p == Pattern::checkerboard;
        const std::size_t own = encoded(mask, e, {}).size();
        EXPECT_TRUE(noisy || bytes.size() <= own + own / 8 + 8) << describe(e, p, DType::f32, 11);
      }
    }
  }
  EXPECT_GT(seen, 20U);
}

/// The same coast in every plane.
SegmentMask repeated_coast(std::uint64_t planes, std::uint64_t rows, std::uint64_t cols) {
  const Extents plane{1, rows, cols};
  SegmentMask mask = make_mask(plane, Pattern::coast, 1, false, DType::f32, 5);
  const auto one = mask.classes;
  for (std::uint64_t i = 1; i < planes; ++i) mask.classes.insert(mask.classes.end(), one.begin(), one.end());
  mask.masked *= planes;
  return mask;
}

TEST(MaskCodec_PlanesOfAMergedGrid_CostWhatPlanesCost, SameCoast) {
  const SegmentMask mask = repeated_coast(20, 50, 120);
  const std::uint64_t shape[] = {20, 50, 120};
  const auto own = encoded(mask, {20, 50, 120}, {});
  for (const Extents& merged : {Extents{1, 1000, 120}, Extents{1, 1, 120000}, Extents{1, 20, 6000}}) {
    const kernels::MaskViews views(shape, merged);
    EXPECT_LE(encoded(mask, merged, views.all()).size(), own.size() + 4);
  }
  EXPECT_GT(encoded(mask, {1, 1000, 120}, {}).size(), 5 * own.size());
  EXPECT_GT(encoded(mask, {1, 1, 120000}, {}).size(), 5 * own.size());
}

TEST(MaskCodec_SegmentThatEndsWithinAPlane_KeepsItsPlanes, LastPlaneIsShort) {
  SegmentMask mask = repeated_coast(4, 50, 120);
  mask.classes.resize(3 * 50 * 120 + 17 * 120);
  mask.masked =
      cells_of({1, 167, 120}) - static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), 0));
  const kernels::MaskView view{50, 120};
  const Extents merged{1, 167, 120};
  const auto bytes = encoded(mask, merged, {&view, 1});
  ASSERT_EQ(bytes[0], kernels::kViewMark);
  EXPECT_LE(bytes.size(), encoded(mask, merged, {}).size() / 2);
  const auto back = decode_mask(bytes, merged, DType::f32, kPlenty);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == mask);
}

TEST(MaskCodec_ViewThatSavesNothing_IsNotTaken, OneRun) {
  const Extents e{1, 1, 8400};
  SegmentMask mask = make_mask(e, Pattern::none, 1, false, DType::f32, 1);
  for (std::size_t cell = 100; cell < 6000; ++cell) mask.classes[cell] = 1;
  mask.masked = 5900;
  const kernels::MaskView view{70, 120};
  EXPECT_EQ(encoded(mask, e, {&view, 1}), encoded(mask, e, {}));
}

TEST(MaskDecoder_ViewOfNoSegment_IsRefused, Numbers) {
  const SegmentMask mask = repeated_coast(20, 50, 120);
  const Extents merged{1, 1000, 120};
  const kernels::MaskView view{50, 120};
  const auto good = encoded(mask, merged, {&view, 1});
  ASSERT_EQ(Vector<std::uint8_t>(good.begin(), good.begin() + 3), (Vector<std::uint8_t>{0xF8, 1, 50}));
  const auto code = [&](const Vector<std::uint8_t>& head) {
    Vector<std::uint8_t> bytes = head;
    bytes.insert(bytes.end(), good.begin() + 3, good.end());
    return decode_mask(bytes, merged, DType::f32, kPlenty).status().code();
  };
  EXPECT_EQ(code({0xF8, 1, 50}), StatusCode::ok);
  for (const std::uint8_t mark : std::array<std::uint8_t, 3>{0xF9, 0xFC, 0xFF})
    EXPECT_EQ(code({mark, 1, 50}), StatusCode::corrupt);
  EXPECT_EQ(code({0xF8, 0, 50}), StatusCode::corrupt);           // no rows
  EXPECT_EQ(code({0xF8, 16, 50}), StatusCode::corrupt);          // rows that do not fill those of the box
  EXPECT_EQ(code({0xF8, 20, 50}), StatusCode::corrupt);          // too few columns
  EXPECT_EQ(code({0xF8, 1, 7}), StatusCode::corrupt);            // too few rows
  EXPECT_EQ(code({0xF8, 1, 0xE8, 0x07}), StatusCode::corrupt);   // the planes of the box
  EXPECT_EQ(code({0xF8, 1, 0xE9, 0x07}), StatusCode::corrupt);   // more rows than there are
  EXPECT_EQ(code({0xF8, 0x81, 0x00, 50}), StatusCode::corrupt);  // not the fewest bytes
  EXPECT_EQ(code({0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 50}), StatusCode::corrupt);
  for (std::size_t n = 1; n < 4; ++n) {
    EXPECT_EQ(decode_mask(std::span(good).first(n), merged, DType::f32, kPlenty).status().code(),
              StatusCode::truncated);
  }
}

TEST(MaskDecoder_MemoryOfAnyView_IsWhatIsAnnounced, Limit) {
  std::mt19937_64 rng(4);
  for (int round = 0; round < 400; ++round) {
    const kernels::MaskView view{8 + rng() % 60, 8 + rng() % 60};
    const Extents e{1, 1, view.cols * (view.rows * (1 + rng() % 3) + rng() % 20)};
    if (!kernels::is_view_of(view, kernels::MaskPlanes(e))) continue;
    const kernels::MaskShape shape(kernels::MaskPlanes(cells_of(e), view.rows, view.cols));
    ASSERT_LE(kernels::MaskWalkSizes(shape).bytes(), kernels::MaskWalkSizes::bytes_of_views(cells_of(e)));
    const SegmentMask mask = make_mask(e, Pattern::blocks, 1, false, DType::f32, 3);
    if (mask.empty()) continue;
    ASSERT_TRUE(decode_mask(encoded(mask, e, {&view, 1}), e, DType::f32, decode_bytes(e)).ok());
  }
}

}  // namespace
}  // namespace quern::mask

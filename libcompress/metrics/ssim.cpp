// Structural similarity on the host: tiles of windows, each a unit of work and of summation. The definition is in
// kernels/metrics/similarity.h.
#include <quern/memory.h>

#include "libcompress/metrics/ssim.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "kernels/metrics/compensated_sum.h"
#include "kernels/metrics/similarity.h"
#include "kernels/metrics/validity.h"
#include "libcompress/metrics/element.h"

namespace quern::metrics {
namespace {

using verifier::kFar;
using verifier::kWindow;

// Windows (not elements) of a tile. Fixed: a tile is the unit of work and of summation.
constexpr std::uint64_t kTileZ = 32;
constexpr std::uint64_t kTileY = 16;
constexpr std::uint64_t kTileX = 256;
constexpr std::uint64_t kRowElems = kTileX + kWindow - 1;
constexpr std::uint64_t kTileRows = kTileY + kWindow - 1;

enum Quantity : std::size_t { kX, kY, kSquares, kProduct, kValid, kQuantities };

using Triple = std::array<std::uint64_t, 3>;
using Row = std::array<double, kTileX>;
using RowSet = std::array<Row, kQuantities>;
using Plane = std::array<RowSet, kTileY>;

struct Layout : verifier::WindowLayout {
  Triple tiles{1, 1, 1};

  explicit Layout(const Shape& shape) : WindowLayout(shape.extents()) {
    const Triple tile{kTileZ, kTileY, kTileX};
    for (std::size_t a = 0; a < 3; ++a) tiles[a] = (positions[a] + tile[a] - 1) / tile[a];
  }
  std::uint64_t tile_count() const { return volumes * tiles[0] * tiles[1] * tiles[2]; }
};

struct TileResult {
  double sum = 0.0;
  std::uint64_t windows = 0;
};

/// Sums over `window` neighbours of a row, `n` results. Additions alone: a running sum would drag a huge value's
/// rounding error along.
void add_neighbours(const double* in, std::uint64_t n, std::uint64_t window, double* out) {
  if (window == kWindow) {
    for (std::uint64_t i = 0; i < n; ++i)
      out[i] = ((in[i] + in[i + 1]) + (in[i + 2] + in[i + 3])) + ((in[i + 4] + in[i + 5]) + in[i + 6]);
    return;
  }
  std::copy_n(in, n, out);
  for (std::uint64_t j = 1; j < window; ++j)
    for (std::uint64_t i = 0; i < n; ++i) out[i] += in[i + j];
}

/// Window sums of one tile, plane after plane: rows along x, then along y, then a ring of planes along z.
template <class E>
class Tile : public Allocated {
 public:
  using Bits = typename E::Bits;

  Tile(const ArrayView& original, const ArrayView& reconstructed, std::span<const std::uint64_t> fill_bits,
       const SsimRange& range, const Layout& layout)
      : x_(static_cast<const std::byte*>(original.data)),
        y_(static_cast<const std::byte*>(reconstructed.data)),
        validity_(fill_bits),
        range_(range),
        layout_(layout),
        quantities_(range.all_valid ? kValid : kQuantities),
        length_(range.max - range.min),
        middle_(range.min + length_ / 2),
        rows_(kTileRows),
        ring_(layout.window[0]) {}

  static std::uint64_t scratch_bytes(const Layout& layout) {
    return sizeof(Tile) + kTileRows * sizeof(RowSet) + layout.window[0] * sizeof(Plane);
  }

  TileResult run(std::uint64_t tile) {
    Triple begin{};
    Triple count{};
    const Triple size{kTileZ, kTileY, kTileX};
    for (std::size_t a = 3; a-- > 0;) {
      begin[a] = tile % layout_.tiles[a] * size[a];
      tile /= layout_.tiles[a];
      count[a] = std::min(size[a], layout_.positions[a] - begin[a]);
    }
    const std::uint64_t volume = tile;
    TileResult result;
    for (std::uint64_t z = 0; z < count[0] + layout_.window[0] - 1; ++z) {
      fill_plane(((volume * layout_.extents[0] + begin[0] + z) * layout_.extents[1] + begin[1]) * layout_.extents[2] +
                     begin[2],
                 count, ring_[z % layout_.window[0]]);
      if (z + 1 >= layout_.window[0])
        for (std::uint64_t y = 0; y < count[1]; ++y) add_row(y, count[2], result);
    }
    return result;
  }

 private:
  void fill_plane(std::uint64_t first, const Triple& count, Plane& plane) {
    const std::uint64_t columns = count[2] + layout_.window[2] - 1;
    for (std::uint64_t y = 0; y < count[1] + layout_.window[1] - 1; ++y) {
      load_row(first + y * layout_.extents[2], columns);
      for (std::size_t q = 0; q < quantities_; ++q)
        add_neighbours(row_[q].data(), count[2], layout_.window[2], rows_[y][q].data());
    }
    for (std::uint64_t y = 0; y < count[1]; ++y)
      for (std::size_t q = 0; q < quantities_; ++q) {
        Row& sum = plane[y][q];
        std::copy_n(rows_[y][q].begin(), count[2], sum.begin());
        for (std::uint64_t j = 1; j < layout_.window[1]; ++j)
          for (std::uint64_t i = 0; i < count[2]; ++i) sum[i] += rows_[y + j][q][i];
      }
  }

  void load_row(std::uint64_t begin, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      const Bits x = load<Bits>(x_, begin + i);
      const double original = (E::value(x) - middle_) / length_;
      const double reconstructed = original - verifier::difference<E>(x, load<Bits>(y_, begin + i)) / length_;
      row_[kX][i] = original;
      row_[kY][i] = std::min(std::max(reconstructed, -kFar), kFar);
    }
    if (!range_.all_valid)
      for (std::uint64_t i = 0; i < n; ++i) {
        const bool valid = validity_.is_valid(load<Bits>(x_, begin + i));
        row_[kValid][i] = valid ? 1.0 : 0.0;
        row_[kX][i] = valid ? row_[kX][i] : 0.0;
        row_[kY][i] = valid ? row_[kY][i] : 0.0;
      }
    for (std::uint64_t i = 0; i < n; ++i) {
      row_[kSquares][i] = row_[kX][i] * row_[kX][i] + row_[kY][i] * row_[kY][i];
      row_[kProduct][i] = row_[kX][i] * row_[kY][i];
    }
  }

  void add_row(std::uint64_t y, std::uint64_t n, TileResult& result) {
    for (std::size_t q = 0; q < quantities_; ++q) {
      std::copy_n(ring_[0][y][q].begin(), n, sums_[q].begin());
      for (std::size_t j = 1; j < ring_.size(); ++j)
        for (std::uint64_t i = 0; i < n; ++i) sums_[q][i] += ring_[j][y][q][i];
    }
    similarities(n);
    const double whole = layout_.window_elems();
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!range_.all_valid && sums_[kValid][i] != whole) continue;
      result.sum += similarity_[i];
      ++result.windows;
    }
  }

  void similarities(std::uint64_t n) {
    const double elems = layout_.window_elems();
    const double offset = middle_ / length_;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double mean_x = sums_[kX][i] / elems;
      const double mean_y = sums_[kY][i] / elems;
      const double variances =
          std::max(0.0, (sums_[kSquares][i] - elems * (mean_x * mean_x + mean_y * mean_y)) / (elems - 1));
      const double covariance = (sums_[kProduct][i] - elems * (mean_x * mean_y)) / (elems - 1);
      similarity_[i] = verifier::similarity(mean_x, mean_y, variances, covariance, offset);
    }
  }

  const std::byte* x_;
  const std::byte* y_;
  verifier::Validity<E> validity_;
  SsimRange range_;
  Layout layout_;
  std::size_t quantities_;
  double length_;
  double middle_;
  std::array<std::array<double, kRowElems>, kQuantities> row_;
  RowSet sums_;
  Row similarity_;
  Vector<RowSet> rows_;
  Vector<Plane> ring_;
};

}  // namespace

bool has_ssim(const Shape& shape) { return Layout(shape).has_windows(); }

Result<std::optional<double>> mean_ssim(const ArrayView& original, const ArrayView& reconstructed,
                                        std::span<const std::uint64_t> fill_bits, const SsimRange& range,
                                        std::uint64_t memory_limit, TaskRunner& runner, Progress& progress) {
  if (!has_ssim(original.shape)) return std::optional<double>();
  const Layout layout(original.shape);
  if (Tile<verifier::F64>::scratch_bytes(layout) > memory_limit / std::max<std::size_t>(1, runner.width()))
    return Status(StatusCode::memory_limit, "structural similarity needs {0} bytes for each thread",
                  static_cast<std::int64_t>(Tile<verifier::F64>::scratch_bytes(layout)));
  verifier::CompensatedSum sum;
  std::uint64_t windows = 0;
  const auto fold = [&](const TileResult& tile) {
    sum.add(tile.sum);
    windows += tile.windows;
  };
  const Status status = visit_dtype(original.dtype, [&](auto type) {
    using E = typename decltype(type)::Element;
    const auto body = [&](std::uint64_t tile, TileResult& result) {
      result = std::make_unique<Tile<E>>(original, reconstructed, fill_bits, range, layout)->run(tile);
    };
    const std::uint64_t tiles = layout.tile_count();
    return for_blocks<TileResult>(tiles, (original.elems() + tiles - 1) / tiles, runner, progress, body, fold);
  });
  if (!status.ok()) return status;
  if (windows == 0) return std::optional<double>();
  return std::optional<double>(sum.value() / static_cast<double>(windows));
}

}  // namespace quern::metrics

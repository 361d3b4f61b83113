// Taps and weights by classes of rows.
#include "codecs/stencil/raster/tables.h"

#include <algorithm>

#include "codecs/stencil/raster/planes.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {
namespace {

using kernels::kMeanPlane;
using kernels::RasterJob;
using kernels::RasterList;
using kernels::RasterTap;
using kernels::Tap;

static_assert(kernels::kRasterNearTaps == kernels::kMaxNearTaps);

/// Taps in lists: those into rows of the same plane (of a chunk of single rows all), and those into planes before.
template <class Weight>
class TapTable {
 public:
  TapTable(bool single_rows, Vector<RasterTap<Weight>>& table) : single_rows_(single_rows), table_(table) {}

  void add(const Tap& tap, Weight weight) {
    RasterTap<Weight> out;
    out.weight = weight;
    out.mean = tap.plane == kMeanPlane;
    out.plane = out.mean || single_rows_ ? std::int8_t{0} : tap.plane;
    out.row = single_rows_ && !out.mean ? tap.plane : tap.row;
    out.column = tap.column;
    (single_rows_ || tap.plane == 0 ? rows_ : before_).push_back(out);
  }
  /// Ends the lists.
  void take(RasterList& rows, RasterList& before) {
    rows = move_to_table(rows_);
    before = move_to_table(before_);
  }

 private:
  RasterList move_to_table(Vector<RasterTap<Weight>>& from) {
    const RasterList list{static_cast<std::uint32_t>(table_.size()), static_cast<std::uint32_t>(from.size())};
    table_.insert(table_.end(), from.begin(), from.end());
    from.clear();
    return list;
  }
  bool single_rows_;
  Vector<RasterTap<Weight>>& table_;
  Vector<RasterTap<Weight>> rows_;
  Vector<RasterTap<Weight>> before_;
};

void set_extents(const std::array<std::uint64_t, 3>& box, const kernels::StencilExtents& extents,
                 const RasterStrides& strides, RasterJob& head) {
  const bool by_second = box[0] == 1;  // as stencil_extents() takes them
  const std::uint64_t plane = by_second ? strides.elements[1] : strides.elements[0];
  const std::uint64_t special = by_second ? strides.special[1] : strides.special[0];
  const bool single_rows = extents.rows == 1;
  head.planes = single_rows ? 1 : static_cast<std::uint32_t>(extents.planes);
  head.rows = static_cast<std::uint32_t>(single_rows ? extents.planes : extents.rows);
  head.columns = static_cast<std::uint32_t>(extents.columns);
  head.plane_stride = single_rows ? 0 : plane;
  head.row_stride = single_rows ? plane : strides.elements[1];
  head.special_plane_stride = single_rows ? 0 : special;
  head.special_row_stride = single_rows ? special : strides.special[1];
}

}  // namespace

void describe_raster(DType dtype, const RasterModel& model, const std::array<std::uint64_t, 3>& box,
                     const RasterStrides& strides, RasterJob& head, RasterTables& tables) {
  const kernels::StencilExtents extents = kernels::stencil_extents(box);
  head.element = element_of(dtype);
  head.masked = model.format.masked;
  head.mean = model.mean;
  set_extents(box, extents, strides, head);
  head.base = model.format.base;
  head.unit = model.format.unit();
  head.weight_bits = model.format.weight_bits;
  head.fraction_bits = model.format.fraction_bits;
  head.context_constant = model.context_constant;
  const kernels::StencilShape shape = extents.shape();
  TapTable<double> taps(extents.rows == 1, tables.taps);
  for (std::size_t c = 0; c < kernels::kRowClasses; ++c) {
    const SplitWeights split = split_weights(shape, c, model);
    kernels::RasterClass& plan = head.classes[c];
    plan.near_count = static_cast<std::uint32_t>(split.near_count);
    std::copy(split.near.begin(), split.near.end(), plan.near);
    for (std::size_t t = 0; t < split.far_count; ++t) taps.add(split.far_taps[t], split.far_weights[t]);
    taps.take(plan.rows, plan.before);
  }
  TapTable<std::uint32_t> context_taps(extents.rows == 1, tables.context_taps);
  const auto contexts = kernels::context_taps(shape);
  for (std::size_t t = 0; t < contexts.size(); ++t) {
    if (t < kernels::kNearContextTaps) {
      head.near_context[t] = model.context_weights[t];
    } else if (model.context_weights[t] != 0) {
      context_taps.add(contexts[t], model.context_weights[t]);
    }
  }
  context_taps.take(head.context_rows, head.context_before);
}

}  // namespace quern::codec::stencil

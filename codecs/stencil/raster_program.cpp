// Parsing with the decoder's own functions, then taps and weights by classes of rows.
#include "codecs/stencil/raster_program.h"

#include "codecs/stencil/planes.h"
#include "codecs/stencil/program_parts.h"
#include "kernels/core/raster_program.h"

namespace quern::codec::stencil {
namespace {

using kernels::kMeanPlane;
using kernels::RasterList;
using kernels::RasterProgram;
using kernels::RasterTap;
using kernels::Tap;

static_assert(kernels::kRasterClasses == kernels::kRowClasses && kernels::kRasterNearTaps == kernels::kMaxNearTaps);

/// Taps in lists: those into rows of the same plane (of a chunk of single rows all), and those into planes before.
template <class Weight>
class TapTable {
 public:
  explicit TapTable(bool single_rows) : single_rows_(single_rows) {}

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
  const Vector<RasterTap<Weight>>& table() const { return table_; }

 private:
  RasterList move_to_table(Vector<RasterTap<Weight>>& from) {
    const RasterList list{static_cast<std::uint32_t>(table_.size()), static_cast<std::uint32_t>(from.size())};
    table_.insert(table_.end(), from.begin(), from.end());
    from.clear();
    return list;
  }
  bool single_rows_;
  Vector<RasterTap<Weight>> table_;
  Vector<RasterTap<Weight>> rows_;
  Vector<RasterTap<Weight>> before_;
};

void set_extents(const MutableBox3& box, const kernels::StencilExtents& extents, RasterProgram& head) {
  const bool by_second = box.extents[0] == 1;  // as stencil_extents() takes them
  const std::uint64_t plane = by_second ? box.strides[1] : box.strides[0];
  const std::uint64_t special = by_second ? box.special_strides[1] : box.special_strides[0];
  const bool single_rows = extents.rows == 1;
  head.planes = single_rows ? 1 : static_cast<std::uint32_t>(extents.planes);
  head.rows = static_cast<std::uint32_t>(single_rows ? extents.planes : extents.rows);
  head.columns = static_cast<std::uint32_t>(extents.columns);
  head.plane_stride = single_rows ? 0 : plane;
  head.row_stride = single_rows ? plane : box.strides[1];
  head.special_plane_stride = single_rows ? 0 : special;
  head.special_row_stride = single_rows ? special : box.special_strides[1];
}

void lay_out_work(RasterProgram& head) {
  const std::uint64_t elems = std::uint64_t{head.planes} * head.rows * head.columns;
  std::uint64_t bytes = 0;
  const auto take = [&](std::uint64_t count, std::size_t width) {
    const auto begin = static_cast<std::uint32_t>(bytes);
    bytes += (count * width + kernels::kProgramAlignment - 1) / kernels::kProgramAlignment * kernels::kProgramAlignment;
    return begin;
  };
  head.values = take(elems, sizeof(double));
  head.magnitudes = take(elems, sizeof(std::uint32_t));
  head.means = take(head.mean ? std::uint64_t{head.rows} * head.columns : 0, sizeof(double));
  head.head.work_bytes = static_cast<std::uint32_t>(bytes);
}

}  // namespace

bool append_raster_program(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                           Vector<std::uint8_t>& out) {
  if (in.empty() || in[0] != static_cast<std::uint8_t>(Mode::raster)) return false;
  in = in.subspan(1);
  const kernels::StencilExtents extents = kernels::stencil_extents(box.extents);
  ChunkModel model;
  if (!read_model(in, extents, model).ok() || model.masked != (box.special != nullptr)) return false;
  RasterProgram head;
  ProgramParts parts;
  if (!parts.take_starts(model, head.serving)) return false;
  Reader reader(in);
  if (!parts.take_exceptions(spec.dtype, reader, extents.elems())) return false;
  if (std::size_t{1} << model.lane_bits > extents.planes * extents.rows) return false;
  LaneSources lanes;
  if (!lanes.open(model.lane_bits, reader, in).ok()) return false;
  parts.take_lanes(lanes, head.lanes);

  head.element = static_cast<kernels::Element>(spec.dtype);
  head.masked = model.masked;
  head.mean = model.mean;
  set_extents(box, extents, head);
  lay_out_work(head);
  head.base = model.base;
  head.unit = model.unit();
  head.weight_bits = model.weight_bits;
  head.fraction_bits = model.fraction_bits;
  head.context_constant = model.context_constant;
  const kernels::StencilShape shape = extents.shape();
  TapTable<double> taps(extents.rows == 1);
  for (std::size_t c = 0; c < kernels::kRowClasses; ++c) {
    const SplitWeights split = split_weights(shape, c, model);
    kernels::RasterClass& plan = head.classes[c];
    plan.near_count = static_cast<std::uint32_t>(split.near_count);
    std::copy(split.near.begin(), split.near.end(), plan.near);
    for (std::size_t t = 0; t < split.far_count; ++t) taps.add(split.far_taps[t], split.far_weights[t]);
    taps.take(plan.rows, plan.before);
  }
  TapTable<std::uint32_t> context_taps(extents.rows == 1);
  const auto contexts = kernels::context_taps(shape);
  for (std::size_t t = 0; t < contexts.size(); ++t) {
    if (t < kernels::kNearContextTaps) {
      head.near_context[t] = model.context_weights[t];
    } else if (model.context_weights[t] != 0) {
      context_taps.add(contexts[t], model.context_weights[t]);
    }
  }
  context_taps.take(head.context_rows, head.context_before);
  head.table_count = static_cast<std::uint32_t>(parts.starts.size());
  head.exception_count = static_cast<std::uint32_t>(parts.exceptions.size());

  ProgramAppender program(out, sizeof head);
  head.taps = program.add(taps.table());
  head.context_taps = program.add(context_taps.table());
  head.starts = program.add(parts.starts);
  head.exceptions = program.add(parts.exceptions);
  head.words = program.add(parts.words);
  head.head.bytes = program.bytes();
  program.set_head(head);
  return true;
}

}  // namespace quern::codec::stencil

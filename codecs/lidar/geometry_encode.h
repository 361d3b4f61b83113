// One attempt at a scan's geometry: the points that take part, on one lattice, by tool O (octree) or tool R (rays).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/scan_header.h"

namespace quern::codec::lidar {

struct GeometryTask {
  std::span<const FinePoint> points;
  std::span<const std::uint32_t> words;  ///< of these points; mode `exact` alone
  Mode mode = Mode::set;
  Scale scale;
  bool whole_units = false;  ///< mode `exact`: all points are whole units
  Lattice lattice;           ///< mode `exact` with whole units has one of its own
  std::int64_t reach = 0;
  std::uint32_t slices = 0;
  bool few_points = false;  ///< mode `set`: each point that comes back costs bytes beside its coordinates
};

struct CodedGeometry {
  Lattice lattice;
  bool rays = false;
  bool predicted = false;
  Vector<BlockEntry> blocks;                 ///< tool O
  Vector<Vector<std::uint8_t>> block_parts;  ///< tool O
  Vector<std::uint8_t> order;                ///< tool O: the order of points; tool R: everything
  Vector<std::uint8_t> residuals;
  std::uint64_t points = 0;  ///< that it decodes to

  std::uint64_t bytes() const {
    std::uint64_t sum = order.size() + residuals.size();
    for (const Vector<std::uint8_t>& part : block_parts) sum += part.size();
    return sum;
  }
};

/// Codes with the tool that takes fewer bytes, once for each prediction; tool O with it and without, as in
/// encode_scan(). A tool that can hardly win is not tried. What no prediction changes is coded once. May throw
/// std::bad_alloc.
Result<Vector<CodedGeometry>> code_geometry(const GeometryTask& task, std::span<const Prediction> predictions,
                                            TaskRunner& runner);

}  // namespace quern::codec::lidar

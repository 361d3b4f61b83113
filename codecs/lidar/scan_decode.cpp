#include "codecs/lidar/scan_decode.h"

#include "codecs/lidar/columns/column_coder.h"
#include "codecs/lidar/exact/residuals.h"
#include "codecs/lidar/octree/tree.h"
#include "codecs/lidar/order/order_coder.h"
#include "codecs/lidar/prediction/expected_sites.h"
#include "codecs/lidar/rays/rays.h"
#include "kernels/common/bits.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"

namespace quern::codec::lidar {
namespace {

Status corrupt() { return Status(StatusCode::corrupt, "a scan's parts do not hold what its header promises"); }

struct Sites {
  Vector<Site> sites;
  Vector<std::uint32_t> counts;
};

Status check_prediction(const ScanHeader& header, Prediction prediction) {
  if (!header.predicted) return {};
  if (is_prediction(prediction) && knows_more(prediction) == header.knowing &&
      prediction_check(prediction, header.weighed) == header.prediction_check)
    return {};
  return Status(StatusCode::invalid_argument, "a scan was coded with another prediction than the {0} points given",
                static_cast<std::int64_t>(prediction.size()));
}

Result<Sites> decode_sites(const ScanHeader& header, PartReader& parts, Prediction prediction, TaskRunner& runner) {
  Vector<std::span<const std::uint8_t>> bytes;
  for (const BlockEntry& entry : header.blocks) {
    QUERN_ASSIGN_OR_RETURN(const auto part, parts.next(entry.part));
    bytes.push_back(part);
  }
  const Surroundings surroundings{header.lattice, header.scale.per_metre};
  PredictedSites predicted;
  if (header.predicted) predicted = predicted_sites(prediction, header.lattice);
  Vector<Block> blocks(header.blocks.size());
  QUERN_RETURN_IF_ERROR(run_tasks(runner, blocks.size(), [&](std::size_t i) {
    blocks[i].origin = header.blocks[i].origin;
    blocks[i].depth = header.blocks[i].depth;
    BlockPrediction own;
    if (header.predicted) own = block_prediction(predicted, blocks[i].origin, blocks[i].depth, header.lattice.centred);
    if (!header.weighed) own.expected.weights.clear();
    return decode_block(bytes[i], surroundings, header.blocks[i].cubes, header.counted(), header.blocks[i].points,
                        blocks[i], own);
  }));
  Sites result;
  for (const Block& block : blocks) {
    append_sites(block, header.lattice.centred, result.sites);
    result.counts.insert(result.counts.end(), block.counts.begin(), block.counts.end());
  }
  return result;
}

/// Coordinates in units of the points at sites: in the order of the sites, or in that of the scan.
Result<Vector<Site>> decode_units(const ScanHeader& header, PartReader& parts, Prediction prediction,
                                  TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const Sites sites, decode_sites(header, parts, prediction, runner));
  QUERN_ASSIGN_OR_RETURN(const auto order_bytes, parts.next(header.order));
  Vector<Site> units(static_cast<std::size_t>(header.points - header.verbatim));
  if (header.rays) {
    QUERN_RETURN_IF_ERROR(decode_rays(order_bytes, header.lattice.spacing, units));
    return units;
  }
  if (header.counted()) {
    Vector<std::uint32_t> order(units.size());
    if (!order.empty()) QUERN_RETURN_IF_ERROR(decode_order(order_bytes, sites.sites, sites.counts, order));
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = sites.sites[order[i]];
  } else {
    if (sites.sites.size() != units.size()) return corrupt();
    units = sites.sites;
  }
  for (Site& site : units)
    for (std::int64_t& at : site) at *= header.lattice.spacing;
  return units;
}

/// Adds the residuals and makes words.
Result<Vector<std::uint32_t>> finish_words(const ScanHeader& header, std::span<const Site> units,
                                           std::span<const std::uint8_t> residuals) {
  Vector<std::int64_t> values;
  values.reserve(3 * units.size());
  const bool of_patterns = !residuals.empty() && !header.whole_units;
  for (const Site& site : units)
    for (const std::int64_t at : site)
      values.push_back(of_patterns ? std::int64_t{kernels::ordered_key<std::uint32_t>(word_of(at, header.scale))} : at);
  QUERN_RETURN_IF_ERROR(apply_residuals(residuals, values));
  Vector<std::uint32_t> words;
  words.reserve(values.size());
  for (const std::int64_t value : values) {
    if (of_patterns && (value < 0 || value > UINT32_MAX)) return corrupt();
    words.push_back(of_patterns ? kernels::ordered_key<std::uint32_t>(static_cast<std::uint32_t>(value))
                                : word_of(value, header.scale));
  }
  return words;
}

/// Puts the verbatim points into their places; in mode `set`, behind the others.
Result<Vector<std::uint32_t>> merge_verbatim(const ScanHeader& header, std::span<const std::uint8_t> bytes,
                                             Vector<std::uint32_t> words) {
  if (header.verbatim == 0) return bytes.empty() ? Result<Vector<std::uint32_t>>(std::move(words)) : corrupt();
  Reader in(bytes);
  Vector<std::uint32_t> merged;
  merged.reserve(static_cast<std::size_t>(3 * header.points));
  std::size_t taken = 0;
  const auto take_until = [&](std::uint64_t words_before) {
    while (merged.size() < words_before && taken < words.size()) merged.push_back(words[taken++]);
  };
  if (!header.counted()) take_until(UINT64_MAX);
  for (std::uint64_t left = header.verbatim; left > 0;) {
    std::uint64_t run = left;
    if (header.counted()) {
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t between, in.varint(header.points));
      QUERN_ASSIGN_OR_RETURN(run, in.varint(left));
      if (run == 0) return corrupt();
      take_until(merged.size() + 3 * between);
    }
    left -= run;
    for (std::uint64_t i = 0; i < 3 * run; ++i) {
      QUERN_ASSIGN_OR_RETURN(const std::uint32_t word, in.u32());
      merged.push_back(word);
    }
  }
  take_until(UINT64_MAX);
  QUERN_RETURN_IF_ERROR(in.expect_end());
  if (merged.size() != 3 * header.points) return corrupt();
  return merged;
}

Result<ScanHeader> open_scan(std::span<const std::uint8_t> bytes, std::uint64_t most_points) {
  QUERN_ASSIGN_OR_RETURN(ScanHeader header, parse_scan_header(bytes));
  if (header.points > most_points)
    return Status(StatusCode::memory_limit, "a scan has {0} points, above the limit of {1}",
                  static_cast<std::int64_t>(header.points), static_cast<std::int64_t>(most_points));
  return header;
}

}  // namespace

Result<std::span<const std::uint8_t>> PartReader::next(const PartEntry& entry) {
  if (entry.bytes > rest_.size()) return Status(StatusCode::truncated, "a scan ends before its parts do");
  const auto part = rest_.first(static_cast<std::size_t>(entry.bytes));
  rest_ = rest_.subspan(part.size());
  if (static_cast<std::uint32_t>(checksum64(part)) != entry.check)
    return Status(StatusCode::checksum_mismatch, "a part of a scan is damaged");
  return part;
}

Result<Vector<std::uint32_t>> decode_geometry(const ScanHeader& header, PartReader& parts, Prediction prediction,
                                              TaskRunner& runner) {
  QUERN_RETURN_IF_ERROR(check_prediction(header, prediction));
  QUERN_ASSIGN_OR_RETURN(const Vector<Site> units, decode_units(header, parts, prediction, runner));
  QUERN_ASSIGN_OR_RETURN(const auto residuals, parts.next(header.residuals));
  QUERN_ASSIGN_OR_RETURN(Vector<std::uint32_t> words, finish_words(header, units, residuals));
  QUERN_ASSIGN_OR_RETURN(const auto verbatim, parts.next(header.verbatim_part));
  return merge_verbatim(header, verbatim, std::move(words));
}

Result<Cloud> decode_scan(std::span<const std::uint8_t> bytes, std::uint64_t most_points, TaskRunner& runner,
                          Prediction prediction) {
  QUERN_ASSIGN_OR_RETURN(const ScanHeader header, open_scan(bytes, most_points));
  PartReader parts(bytes.subspan(static_cast<std::size_t>(header.header_bytes)));
  Cloud cloud;
  cloud.type = header.scale.type;
  QUERN_ASSIGN_OR_RETURN(cloud.words, decode_geometry(header, parts, prediction, runner));
  Vector<std::span<const std::uint8_t>> column_bytes;
  for (const ColumnEntry& entry : header.columns) {
    QUERN_ASSIGN_OR_RETURN(const auto part, parts.next(entry.part));
    column_bytes.push_back(part);
    Column& column = cloud.columns.emplace_back();
    column.element_bytes = entry.element_bytes;
    column.values.resize(static_cast<std::size_t>(header.points) * entry.element_bytes);
  }
  QUERN_RETURN_IF_ERROR(run_tasks(runner, cloud.columns.size(), [&](std::size_t i) {
    return decode_column(column_bytes[i], cloud.columns[i].element_bytes, cloud.columns[i].values);
  }));
  return cloud;
}

Result<ScanInfo> scan_info(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const ScanHeader header, parse_scan_header(bytes));
  ScanInfo info;
  info.mode = header.mode;
  info.type = header.scale.type;
  info.max_error = header.max_error;
  info.achieved_error = header.achieved_error;
  info.source_points = header.source_points;
  info.points = header.points;
  info.dropped_points = header.dropped;
  info.verbatim_points = header.verbatim;
  info.slices = header.blocks.size();
  info.rays = header.rays;
  info.predicted = header.predicted;
  info.geometry_bytes = header.residuals.bytes + header.verbatim_part.bytes;
  for (const BlockEntry& block : header.blocks) info.geometry_bytes += block.part.bytes;
  (header.rays ? info.geometry_bytes : info.order_bytes) += header.order.bytes;
  for (const ColumnEntry& column : header.columns) info.column_bytes += column.part.bytes;
  return info;
}

}  // namespace quern::codec::lidar

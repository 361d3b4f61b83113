// Encoding: choose a lattice, make blocks, code them, decode the result, check it; points that miss their bound are
// kept verbatim and everything is done again, until nothing misses.
#include <algorithm>
#include <optional>
#include <utility>

#include "codecs/lidar/columns/column_coder.h"
#include "codecs/lidar/exact/exact_scale.h"
#include "codecs/lidar/geometry/both_ways.h"
#include "codecs/lidar/geometry_encode.h"
#include "codecs/lidar/prediction/expected_sites.h"
#include "codecs/lidar/scan_decode.h"
#include "codecs/lidar/scan_header.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lidar {
namespace {

constexpr unsigned kMostAttempts = 6;
/// Geometry that takes more than its raw bytes and these is kept verbatim.
constexpr std::uint64_t kHeaderAllowance = 100;
/// Bound of the points under the residuals of mode `exact`, in units: where coordinates are no decimal numbers.
constexpr std::uint32_t kResidualError = 50;

Status check_request(const CloudView& cloud, const ScanOptions& options) {
  if (cloud.words.size() % 3 != 0 || cloud.points() > kMostPoints)
    return Status(StatusCode::invalid_argument, "a scan has {0} coordinates; at most {1} points are possible",
                  static_cast<std::int64_t>(cloud.words.size()), static_cast<std::int64_t>(kMostPoints));
  if (options.mode != Mode::exact && (options.max_error < 1 || options.max_error > kMostMaxError))
    return Status(StatusCode::invalid_bound, "a scan's error bound is {0} units; 1 to {1} are possible",
                  options.max_error, kMostMaxError);
  if (cloud.columns.size() > kMostColumns)
    return Status(StatusCode::invalid_argument, "a scan has {0} columns; {1} are possible",
                  static_cast<std::int64_t>(cloud.columns.size()), static_cast<std::int64_t>(kMostColumns));
  for (const ColumnView& column : cloud.columns) {
    const unsigned width = column.element_bytes;
    if ((width != 1 && width != 2 && width != 4 && width != 8) || column.values.size() != cloud.points() * width)
      return Status(StatusCode::invalid_argument, "a column has {0} bytes for {1} points",
                    static_cast<std::int64_t>(column.values.size()), static_cast<std::int64_t>(cloud.points()));
  }
  return {};
}

class ScanEncoder {
 public:
  ScanEncoder(const CloudView& cloud, const ScanOptions& options, Prediction prediction)
      : cloud_(cloud), options_(options), prediction_(prediction) {
    start();
  }

  /// What the first attempt codes; none where no lattice keeps the bound. Valid until the encoder changes.
  std::optional<GeometryTask> first_task() {
    if (!choose_lattice()) return std::nullopt;
    return geometry_task();
  }

  /// `first`: what the first attempt gives, or null.
  Result<CodedScan> run(TaskRunner& runner, CodedGeometry* first) {
    runner_ = &runner;
    for (unsigned attempt = 0; attempt < kMostAttempts; ++attempt) {
      if (attempt + 1 == kMostAttempts || !choose_lattice()) keep_all_verbatim();
      if (attempt == 0 && first != nullptr) {
        take(std::move(*first));
      } else {
        QUERN_RETURN_IF_ERROR(make_geometry());
      }
      if (geometry_bytes() > raw_bytes() && !fine_.points.empty()) {
        keep_all_verbatim();
        QUERN_RETURN_IF_ERROR(make_geometry());
      }
      QUERN_ASSIGN_OR_RETURN(decoded_, decode_own());
      QUERN_ASSIGN_OR_RETURN(const bool done, holds());
      if (done) break;
      if (attempt + 1 == kMostAttempts)
        return Status(StatusCode::internal, "a scan does not come back within its bound");
    }
    QUERN_RETURN_IF_ERROR(code_columns());
    return CodedScan{assemble(), std::move(decoded_)};
  }

 private:
  bool is_set() const { return options_.mode == Mode::set; }
  std::int64_t enforced() const { return enforceable(options_.max_error); }

  std::uint64_t raw_bytes() const { return 4 * cloud_.words.size() + kHeaderAllowance; }
  /// Of the header and all parts.
  std::uint64_t geometry_bytes() const {
    std::uint64_t bytes = serialize_scan_header(header_).size();
    for (const Vector<std::uint8_t>& part : parts_) bytes += part.size();
    return bytes;
  }

  void start() {
    header_.mode = options_.mode;
    header_.scale.type = cloud_.type;
    header_.scale.per_metre = cloud_.type == CoordinateType::i32 ? 1 : kUnitsPerMetre;
    header_.max_error = options_.mode == Mode::exact ? 0 : options_.max_error;
    header_.source_points = cloud_.points();
    if (options_.mode == Mode::exact) exact_ = exact_scale(cloud_.type, cloud_.words);
    if (exact_) header_.scale = *exact_;
    fine_ = fine_points(cloud_.words, header_.scale);
    if (exact_) drop_inexact();
    if (is_set() && !options_.keep_non_finite) drop_non_finite();
    slack_ = rounding_slack();
    header_.prediction_check = prediction_check(prediction_, true);
  }

  /// Points that the decimal scale of mode `exact` does not give back go to the verbatim ones.
  void drop_inexact() {
    Vector<std::uint32_t> missed;
    for (std::size_t i = 0; i < fine_.points.size(); ++i)
      if (!comes_back(cloud_.words.subspan(std::size_t{3} * fine_.sources[i], 3), header_.scale))
        missed.push_back(static_cast<std::uint32_t>(i));
    keep_verbatim(missed);
  }
  void drop_non_finite() {
    const auto finite = [&](std::uint32_t point) {
      for (unsigned axis = 0; axis < 3; ++axis)
        if (!std::isfinite(std::bit_cast<float>(cloud_.words[std::size_t{3} * point + axis]))) return false;
      return true;
    };
    const auto kept = std::remove_if(fine_.verbatim.begin(), fine_.verbatim.end(), [&](auto p) { return !finite(p); });
    header_.dropped = static_cast<std::uint64_t>(fine_.verbatim.end() - kept);
    fine_.verbatim.erase(kept, fine_.verbatim.end());
  }

  /// How far a decoder's rounding to binary32 can move a point, in fine units, rounded up: half a unit in the last
  /// place of the largest coordinate for each axis, at most sqrt(3) < 2 of it in all.
  std::int64_t rounding_slack() const {
    if (cloud_.type == CoordinateType::i32) return 0;
    std::int64_t most = 0;
    for (const FinePoint& point : fine_.points)
      for (const std::int64_t at : point) most = std::max(most, at < 0 ? -at : at);
    return (most >> 23) + 1;
  }

  /// False where no lattice keeps the bound.
  bool choose_lattice() {
    if (exact_) {
      header_.lattice = {1, false};
      reach_ = kFine;
      return true;
    }
    reach_ = (options_.mode == Mode::exact ? enforceable(kResidualError) : enforced()) - slack_;
    const auto lattice = lattice_for(reach_);
    if (lattice) header_.lattice = *lattice;
    return lattice.has_value();
  }

  /// Takes points, by their places among the fine ones, rising, out of the lattice.
  void keep_verbatim(std::span<const std::uint32_t> places) {
    if (places.empty()) return;
    std::size_t next = 0;
    std::size_t left = 0;
    for (std::size_t i = 0; i < fine_.points.size(); ++i) {
      if (next < places.size() && places[next] == i) {
        fine_.verbatim.push_back(fine_.sources[i]);
        ++next;
        continue;
      }
      fine_.points[left] = fine_.points[i];
      fine_.sources[left++] = fine_.sources[i];
    }
    fine_.points.resize(left);
    fine_.sources.resize(left);
    std::sort(fine_.verbatim.begin(), fine_.verbatim.end());
  }
  void keep_all_verbatim() {
    Vector<std::uint32_t> all(fine_.points.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
    keep_verbatim(all);
  }

  GeometryTask geometry_task() {
    GeometryTask task;
    task.points = fine_.points;
    task.mode = options_.mode;
    task.scale = header_.scale;
    task.whole_units = exact_.has_value();
    task.lattice = header_.lattice;
    task.reach = reach_;
    task.slices = options_.slices;
    task.few_points = !cloud_.columns.empty();
    if (options_.mode == Mode::exact && !exact_) task_words_ = participating_words();
    task.words = task_words_;
    return task;
  }

  Status make_geometry() {
    QUERN_ASSIGN_OR_RETURN(auto coded, code_geometry(geometry_task(), {&prediction_, 1}, *runner_));
    take(std::move(coded.front()));
    return {};
  }

  void take(CodedGeometry coded) {
    header_.lattice = coded.lattice;
    header_.rays = coded.rays;
    header_.predicted = coded.predicted;
    header_.weighed = coded.predicted;
    header_.knowing = coded.predicted && knows_more(prediction_);
    header_.whole_units = exact_.has_value();
    header_.verbatim = fine_.verbatim.size();
    header_.points = header_.verbatim + coded.points;
    header_.blocks = std::move(coded.blocks);
    header_.order = entry_of(coded.order);
    header_.residuals = entry_of(coded.residuals);
    parts_ = std::move(coded.block_parts);
    parts_.push_back(std::move(coded.order));
    parts_.push_back(std::move(coded.residuals));
    parts_.push_back(verbatim_part());
    header_.verbatim_part = entry_of(parts_.back());
  }

  /// Words of the points that are coded.
  Vector<std::uint32_t> participating_words() const {
    Vector<std::uint32_t> words;
    words.reserve(3 * fine_.sources.size());
    for (const std::uint32_t source : fine_.sources)
      for (unsigned axis = 0; axis < 3; ++axis) words.push_back(cloud_.words[std::size_t{3} * source + axis]);
    return words;
  }

  /// In the scan's order, runs of neighbours: points before the run, points of the run, their words. In mode `set` the
  /// words alone.
  Vector<std::uint8_t> verbatim_part() const {
    Vector<std::uint8_t> bytes;
    Writer out(bytes);
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < fine_.verbatim.size();) {
      std::size_t end = i + 1;
      while (end < fine_.verbatim.size() && fine_.verbatim[end] == fine_.verbatim[end - 1] + 1) ++end;
      if (!is_set()) {
        out.varint(fine_.verbatim[i] - next);
        out.varint(end - i);
      }
      for (; i < end; ++i)
        for (unsigned axis = 0; axis < 3; ++axis) out.u32(cloud_.words[std::size_t{3} * fine_.verbatim[i] + axis]);
      next = fine_.verbatim[end - 1] + 1;
    }
    return bytes;
  }

  /// What the stream's geometry decodes to, from its bytes.
  Result<Vector<std::uint32_t>> decode_own() {
    header_.columns.clear();
    const Vector<std::uint8_t> stream = assemble();
    QUERN_ASSIGN_OR_RETURN(const ScanHeader header, parse_scan_header(stream));
    PartReader reader(std::span<const std::uint8_t>(stream).subspan(static_cast<std::size_t>(header.header_bytes)));
    return decode_geometry(header, reader, prediction_, *runner_);
  }

  Vector<std::uint8_t> assemble() const {
    Vector<std::uint8_t> stream = serialize_scan_header(header_);
    for (const Vector<std::uint8_t>& part : parts_) stream.insert(stream.end(), part.begin(), part.end());
    for (const Vector<std::uint8_t>& column : columns_) stream.insert(stream.end(), column.begin(), column.end());
    return stream;
  }

  /// Whether all promises hold of what was decoded; else what misses has been put aside for the next attempt.
  Result<bool> holds() {
    if (decoded_.size() != 3 * header_.points) return false;
    if (options_.mode == Mode::exact)
      return std::equal(decoded_.begin(), decoded_.end(), cloud_.words.begin(), cloud_.words.end());
    return is_set() ? set_holds() : Result<bool>(points_hold());
  }

  bool points_hold() {
    Vector<std::uint32_t> missed;
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < fine_.points.size(); ++i) {
      const FinePoint decoded = decoded_point(fine_.sources[i]);
      const std::int64_t square = squared_distance(fine_.points[i], decoded);
      if (square > enforced() * enforced()) {
        missed.push_back(static_cast<std::uint32_t>(i));
      } else {
        largest = std::max(largest, square);
      }
    }
    keep_verbatim(missed);
    note_achieved(largest);
    return missed.empty() && verbatim_holds();
  }
  bool verbatim_holds() const {
    for (std::size_t i = 0; i < fine_.verbatim.size(); ++i) {
      const std::size_t place = is_set() ? header_.points - header_.verbatim + i : fine_.verbatim[i];
      for (unsigned axis = 0; axis < 3; ++axis)
        if (decoded_[3 * place + axis] != cloud_.words[std::size_t{3} * fine_.verbatim[i] + axis]) return false;
    }
    return true;
  }

  Result<bool> set_holds() {
    Vector<FinePoint> decoded;
    const std::size_t sites = static_cast<std::size_t>(header_.points - header_.verbatim);
    for (std::size_t i = 0; i < sites; ++i) decoded.push_back(decoded_point(i));
    QUERN_ASSIGN_OR_RETURN(const BothWays found, check_both_ways(fine_.points, decoded, enforced(), *runner_));
    note_achieved(found.largest_square);
    sources_.clear();
    if (found.strays > 0) {
      slack_ = 2 * slack_ + kFine;
      return false;
    }
    for (const std::uint32_t place : found.nearest_source) sources_.push_back(fine_.sources[place]);
    keep_verbatim(found.uncovered);
    return found.uncovered.empty() && verbatim_holds();
  }

  /// A decoded point that has no fine coordinates lies nowhere near.
  FinePoint decoded_point(std::size_t point) const {
    FinePoint at;
    for (unsigned axis = 0; axis < 3; ++axis)
      at[axis] = fine_of(decoded_[3 * point + axis], header_.scale).value_or(INT64_C(1) << 60);
    return at;
  }
  void note_achieved(std::int64_t largest_square) {
    if (largest_square == 0) {
      header_.achieved_error = 0;
      return;
    }
    // The exact distance is below the measured one by less than 2 fine units, or above it.
    const std::uint64_t root = integer_root(static_cast<std::uint64_t>(largest_square)) + 1 + 2;
    header_.achieved_error =
        static_cast<std::uint32_t>(std::min<std::uint64_t>((root + kFine - 1) / kFine, options_.max_error));
  }

  Status code_columns() {
    if (is_set()) {
      for (const std::uint32_t point : fine_.verbatim) sources_.push_back(point);
    }
    columns_.assign(cloud_.columns.size(), {});
    QUERN_RETURN_IF_ERROR(run_tasks(*runner_, columns_.size(), [&](std::size_t i) { return code_column(i); }));
    for (std::size_t i = 0; i < columns_.size(); ++i)
      header_.columns.push_back({cloud_.columns[i].element_bytes, entry_of(columns_[i])});
    return {};
  }

  Status code_column(std::size_t i) {
    const ColumnView& column = cloud_.columns[i];
    Vector<std::uint8_t> gathered;
    std::span<const std::uint8_t> values = column.values;
    if (is_set()) {
      for (const std::uint32_t source : sources_) {
        const auto element = column.values.subspan(std::size_t{source} * column.element_bytes, column.element_bytes);
        gathered.insert(gathered.end(), element.begin(), element.end());
      }
      values = gathered;
    }
    columns_[i] = encode_column(values, column.element_bytes);
    Vector<std::uint8_t> back(values.size());
    QUERN_RETURN_IF_ERROR(decode_column(columns_[i], column.element_bytes, back));
    if (!std::equal(back.begin(), back.end(), values.begin(), values.end()))
      return Status(StatusCode::internal, "column {0} of a scan does not come back", static_cast<std::int64_t>(i));
    return {};
  }

  const CloudView& cloud_;
  const ScanOptions& options_;
  TaskRunner* runner_ = nullptr;
  Prediction prediction_;
  ScanHeader header_;
  std::optional<Scale> exact_;  ///< mode `exact`: coordinates are whole numbers of these units
  FinePoints fine_;
  std::int64_t slack_ = 0;
  std::int64_t reach_ = 0;
  Vector<Vector<std::uint8_t>> parts_;  ///< blocks, order, residuals, verbatim
  Vector<Vector<std::uint8_t>> columns_;
  Vector<std::uint32_t> task_words_;  ///< that a GeometryTask names
  Vector<std::uint32_t> decoded_;
  Vector<std::uint32_t> sources_;  ///< mode `set`: of each decoded point, the point whose attributes it gets
};

/// Removes the encoders of geometries that are clearly larger than the smallest.
void leave_out(std::span<const CodedGeometry> geometries, std::span<std::optional<ScanEncoder>> encoders) {
  std::uint64_t least = UINT64_MAX;
  for (const CodedGeometry& geometry : geometries) least = std::min(least, geometry.bytes());
  for (std::size_t i = 0; i < geometries.size(); ++i)
    if (geometries[i].bytes() - least >= kClearlyLarger) encoders[i].reset();
}

}  // namespace

Result<Vector<std::uint8_t>> encode_scan(const CloudView& cloud, const ScanOptions& options, TaskRunner& runner,
                                         Prediction prediction) {
  QUERN_ASSIGN_OR_RETURN(auto coded, encode_scans(cloud, options, runner, {&prediction, 1}));
  return std::move(coded.front().bytes);
}

Result<Vector<CodedScan>> encode_scans(const CloudView& cloud, const ScanOptions& options, TaskRunner& runner,
                                       std::span<const Prediction> predictions) {
  QUERN_RETURN_IF_ERROR(check_request(cloud, options));
  for (const Prediction& prediction : predictions)
    if (!is_prediction(prediction))
      return Status(StatusCode::invalid_argument,
                    "a predicted point lies beyond {0} units or has a weight that is not possible",
                    kMostPredictedUnits);
  Vector<std::optional<ScanEncoder>> encoders(predictions.size());
  QUERN_RETURN_IF_ERROR(run_tasks(runner, encoders.size(), [&](std::size_t i) {
    encoders[i].emplace(cloud, options, predictions[i]);
    return Status();
  }));
  Vector<CodedScan> scans(predictions.size());
  if (encoders.empty()) return scans;
  // All begin with the same points on the same lattice.
  Vector<CodedGeometry> first;
  if (const auto task = encoders.front()->first_task()) {
    QUERN_ASSIGN_OR_RETURN(first, code_geometry(*task, predictions, runner));
  }
  // In mode `set` the geometry decides what columns take.
  if (options.mode != Mode::set || cloud.columns.empty()) leave_out(first, encoders);
  const auto running = static_cast<std::size_t>(
      std::count_if(encoders.begin(), encoders.end(), [](const auto& encoder) { return encoder.has_value(); }));
  // One encoder has the threads for its check, several run side by side.
  SerialRunner serial;
  TaskRunner& outer = running == 1 ? static_cast<TaskRunner&>(serial) : runner;
  TaskRunner& inner = running == 1 ? runner : static_cast<TaskRunner&>(serial);
  QUERN_RETURN_IF_ERROR(run_tasks(outer, encoders.size(), [&](std::size_t i) {
    if (!encoders[i]) return Status();
    QUERN_ASSIGN_OR_RETURN(scans[i], encoders[i]->run(inner, first.empty() ? nullptr : &first[i]));
    encoders[i].reset();
    return Status();
  }));
  return scans;
}

}  // namespace quern::codec::lidar

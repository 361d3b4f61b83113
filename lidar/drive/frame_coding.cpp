// Which coordinates the scan codec sees. Binary64 has two ways: a grid of 0.1 mm under a bound, or binary32 and what
// rounding took, for mode exact.
#include "lidar/drive/frame_coding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lidar/cloud/length.h"
#include "lidar/cloud/little_endian.h"
#include "lidar/images/range_cloud.h"

namespace quern::lidar {
namespace {

namespace scan = codec::lidar;

constexpr double kGridStep = 1e-4;
constexpr std::uint64_t kGridStepNm = 100'000;
/// Half the diagonal of a cell of the grid is below one step.
constexpr std::uint32_t kGridMoves = 1;
constexpr std::uint8_t kRemainderBytes = 8;

Status invalid(const char* what) { return Status(StatusCode::invalid_argument, what); }

/// Columns of the cloud as the codec takes them; of a filtered cloud copies.
struct Columns {
  Vector<Vector<std::uint8_t>> owned;
  Vector<scan::ColumnView> views;

  void add(std::uint8_t width, std::span<const std::uint8_t> values) { views.push_back({width, values}); }
};

Status check_cloud(const PointCloud& cloud) {
  const bool is_f64 = cloud.kind == CoordinateKind::f64;
  if ((is_f64 ? cloud.doubles.size() : cloud.words.size()) % 3 != 0)
    return invalid("coordinates are not three a point");
  if (cloud.points() > scan::kMostPoints)
    return Status(StatusCode::invalid_argument, "{0} points are more than a frame takes ({1})",
                  static_cast<std::int64_t>(cloud.points()), static_cast<std::int64_t>(scan::kMostPoints));
  const std::size_t most = scan::kMostColumns - (is_f64 ? 3 : 0);
  if (cloud.columns.size() > most)
    return Status(StatusCode::invalid_argument, "{0} columns of attributes are more than a frame takes ({1})",
                  static_cast<std::int64_t>(cloud.columns.size()), static_cast<std::int64_t>(most));
  for (const CloudColumn& column : cloud.columns)
    if (column.values.size() != cloud.points() * dtype_bytes(column.type))
      return invalid("a column of attributes does not have one element a point");
  return {};
}

/// The bound in units of `unit_nm`, which a scale stands for in decimal.
Result<std::uint32_t> bound_in_units(std::uint64_t bound_nm, std::uint64_t unit_nm, std::uint32_t taken) {
  if (bound_nm > kMostMaxErrorNm) return invalid("the largest error allowed is above 104 m");
  const std::uint64_t units = bound_nm / unit_nm;
  if (units < 1 + std::uint64_t{taken})
    return Status(StatusCode::invalid_argument,
                  "the largest error allowed is below {0} micrometres, the resolution of these coordinates; raise it "
                  "or use mode exact",
                  static_cast<std::int64_t>((1 + taken) * unit_nm / 1000));
  const std::uint64_t kept = units - taken;
  if (kept > scan::kMostMaxError) return invalid("the largest error allowed is too many steps of these coordinates");
  return static_cast<std::uint32_t>(kept);
}

/// A scale as whole nanometres; 0 where it is none.
std::uint64_t scale_nm(double scale) {
  const double nm = scale * 1e9;
  const double whole = std::round(nm);
  if (!(whole >= 1) || whole > 1e15 || std::abs(nm - whole) > 1e-3) return 0;
  return static_cast<std::uint64_t>(whole);
}

Result<std::uint32_t> scaled_bound(const PointCloud& cloud, std::uint64_t bound_nm) {
  const auto& scale = cloud.grid.scale;
  if (scale[0] != scale[1] || scale[0] != scale[2])
    return invalid("the coordinates have another scale on each axis, so only mode exact can code them");
  const std::uint64_t unit = scale_nm(scale[0]);
  if (unit == 0) return invalid("the scale of the coordinates is no whole number of nanometres; use mode exact");
  return bound_in_units(bound_nm, unit, 0);
}

/// Takes a scan into a frame.
Status take(scan::CodedScan coded, CodedFrame& out) {
  out.scan = std::move(coded.bytes);
  QUERN_ASSIGN_OR_RETURN(const auto info, scan::scan_info(out.scan));
  out.dropped_points += info.dropped_points;
  out.achieved_error = frame_errors(out.description, info).achieved;
  return {};
}

Status encode(const scan::CloudView& view, const scan::ScanOptions& options, TaskRunner& runner, CodedFrame& out) {
  const scan::Prediction none;
  QUERN_ASSIGN_OR_RETURN(auto coded, scan::encode_scans(view, options, runner, {&none, 1}));
  return take(std::move(coded.front()), out);
}

/// `frames`: one for each prediction.
Status encode_words(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner,
                    std::span<const scan::Prediction> predictions, std::span<CodedFrame> frames) {
  const bool is_f32 = cloud.kind == CoordinateKind::f32;
  scan::ScanOptions scan_options;
  scan_options.mode = options.mode;
  if (options.mode != Mode::exact) {
    QUERN_ASSIGN_OR_RETURN(scan_options.max_error, is_f32 ? bound_in_units(options.max_error_nm, kGridStepNm, 0)
                                                          : scaled_bound(cloud, options.max_error_nm));
  }
  Columns columns;
  for (const CloudColumn& column : cloud.columns)
    columns.add(static_cast<std::uint8_t>(dtype_bytes(column.type)), column.values);
  const scan::CloudView view{is_f32 ? scan::CoordinateType::f32 : scan::CoordinateType::i32, cloud.words,
                             columns.views};
  const Vector<scan::Prediction> none(predictions.size());
  QUERN_ASSIGN_OR_RETURN(auto coded,
                         scan::encode_scans(view, scan_options, runner, is_f32 ? predictions : std::span(none)));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i].description.kind = is_f32 ? CodedKind::f32 : CodedKind::scaled;
    frames[i].description.grid = cloud.grid;
    if (coded[i].bytes.empty()) continue;
    frames[i].words = std::move(coded[i].words);
    QUERN_RETURN_IF_ERROR(take(std::move(coded[i]), frames[i]));
    QUERN_ASSIGN_OR_RETURN(const auto info, scan::scan_info(frames[i].scan));
    if (info.predicted) frames[i].prediction.assign(predictions[i].begin(), predictions[i].end());
  }
  return {};
}

/// Mode exact of an image's cloud: coordinates follow from its ranges, so zeros stand for them.
Status encode_image(const PointCloud& cloud, TaskRunner& runner, std::span<CodedFrame> frames) {
  CodedFrame& out = frames.front();
  out.description.kind = CodedKind::projected;
  const Vector<std::uint32_t> zeros(cloud.words.size());
  Columns columns;
  for (const CloudColumn& column : cloud.columns)
    columns.add(static_cast<std::uint8_t>(dtype_bytes(column.type)), column.values);
  scan::ScanOptions scan_options;
  scan_options.mode = Mode::exact;
  QUERN_RETURN_IF_ERROR(encode({scan::CoordinateType::f32, zeros, columns.views}, scan_options, runner, out));
  out.words = cloud.words;
  std::fill(frames.begin() + 1, frames.end(), out);
  return {};
}

/// The points of a decoded image.
Status project_image(PointCloud& out) {
  const auto sensor = read_range_sensor(out.file_header);
  if (!sensor.ok()) return sensor.status();
  if (out.columns.empty() || out.columns.front().type != DType::u32 || sensor->pixels() != out.points() ||
      out.rows != sensor->beams.size())
    return Status(StatusCode::corrupt, "a range image has other pixels than its sensor, or no column of ranges");
  QUERN_ASSIGN_OR_RETURN(out.words, project(*sensor, out.columns.front().values));
  return {};
}

/// The binary64 bits that a binary32 pattern stands for; a NaN keeps its payload.
std::uint64_t widened(std::uint32_t word) {
  const bool is_nan = (word & 0x7FFFFFFF) > 0x7F800000;
  if (!is_nan) return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(word)));
  return std::uint64_t{word >> 31} << 63 | UINT64_C(0x7FF0000000000000) | std::uint64_t{word & 0x7FFFFF} << 29;
}

std::uint32_t narrowed(double value) {
  if (!std::isnan(value)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto payload = static_cast<std::uint32_t>(bits >> 29 & 0x7FFFFF);
  return static_cast<std::uint32_t>(bits >> 63) << 31 | 0x7F800000 | (payload == 0 ? 1U : payload);
}

/// Mode exact: what binary32 takes from the bits goes into columns of its own.
Status encode_remainders(const PointCloud& cloud, TaskRunner& runner, CodedFrame& out) {
  out.description.kind = CodedKind::f64_remainders;
  Vector<std::uint32_t> words(cloud.doubles.size());
  Columns columns;
  columns.owned.resize(3);
  for (auto& column : columns.owned) column.resize(static_cast<std::size_t>(cloud.points()) * kRemainderBytes);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = narrowed(cloud.doubles[i]);
    const std::uint64_t rest = std::bit_cast<std::uint64_t>(cloud.doubles[i]) - widened(words[i]);
    store_le(rest, columns.owned[i % 3].data() + i / 3 * kRemainderBytes);
  }
  for (const CloudColumn& column : cloud.columns)
    columns.add(static_cast<std::uint8_t>(dtype_bytes(column.type)), column.values);
  for (const auto& column : columns.owned) columns.add(kRemainderBytes, column);
  const scan::CloudView view{scan::CoordinateType::f32, words, columns.views};
  scan::ScanOptions scan_options;
  scan_options.mode = Mode::exact;
  return encode(view, scan_options, runner, out);
}

/// A grid whose origin lies in the middle of the finite points. Fails where they are too far apart.
Status choose_grid(const PointCloud& cloud, const Vector<std::uint64_t>& kept, CoordinateGrid& grid) {
  grid.scale = {kGridStep, kGridStep, kGridStep};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double low = 0;
    double high = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double value = cloud.doubles[static_cast<std::size_t>(3 * kept[i]) + axis];
      low = i == 0 ? value : std::min(low, value);
      high = i == 0 ? value : std::max(high, value);
    }
    if (!(high - low < 400'000) || std::abs(low) > 1e9 || std::abs(high) > 1e9)
      return invalid("binary64 coordinates more than 400 km apart, or above 10^9 m, are coded in mode exact only");
    grid.offset[axis] = std::round(low + (high - low) / 2);
  }
  return {};
}

/// Under a bound: the points on a grid of 0.1 mm, with columns of those that are kept.
Status encode_on_grid(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner, CodedFrame& out) {
  out.description.kind = CodedKind::grid_of_f64;
  scan::ScanOptions scan_options;
  scan_options.mode = options.mode;
  QUERN_ASSIGN_OR_RETURN(scan_options.max_error, bound_in_units(options.max_error_nm, kGridStepNm, kGridMoves));
  Vector<std::uint64_t> kept;
  for (std::uint64_t i = 0; i < cloud.points(); ++i)
    if (cloud.is_finite(i)) kept.push_back(i);
  out.dropped_points = cloud.points() - kept.size();
  if (out.dropped_points != 0 && options.mode == Mode::points)
    return invalid("binary64 coordinates that are NaN or infinite need mode set, which drops them, or exact");
  QUERN_RETURN_IF_ERROR(choose_grid(cloud, kept, out.description.grid));
  Vector<std::uint32_t> words;
  words.reserve(3 * kept.size());
  for (const std::uint64_t point : kept)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double value = cloud.doubles[static_cast<std::size_t>(3 * point) + axis];
      words.push_back(static_cast<std::uint32_t>(
          static_cast<std::int32_t>(std::round((value - out.description.grid.offset[axis]) / kGridStep))));
    }
  Columns columns;
  columns.owned.resize(cloud.columns.size());
  for (std::size_t c = 0; c < cloud.columns.size(); ++c) {
    const std::size_t width = dtype_bytes(cloud.columns[c].type);
    const std::uint8_t* const values = cloud.columns[c].values.data();
    for (const std::uint64_t point : kept)
      columns.owned[c].insert(columns.owned[c].end(), values + point * width, values + (point + 1) * width);
    columns.add(static_cast<std::uint8_t>(width), columns.owned[c]);
  }
  const scan::CloudView view{scan::CoordinateType::i32, words, columns.views};
  return encode(view, scan_options, runner, out);
}

/// Bits of binary64 from those of binary32 and the last three columns, which are taken away.
void join_remainders(scan::Cloud& decoded, PointCloud& out) {
  const std::size_t first = decoded.columns.size() - 3;
  out.kind = CoordinateKind::f64;
  out.doubles.resize(decoded.words.size());
  for (std::size_t i = 0; i < decoded.words.size(); ++i) {
    const auto rest = load_le<std::uint64_t>(decoded.columns[first + i % 3].values.data() + i / 3 * kRemainderBytes);
    out.doubles[i] = std::bit_cast<double>(widened(decoded.words[i]) + rest);
  }
  decoded.columns.resize(first);
}

std::size_t remainder_columns(CodedKind kind) { return kind == CodedKind::f64_remainders ? 3 : 0; }

}  // namespace

FrameErrors frame_errors(const FrameDescription& description, const scan::ScanInfo& info) {
  if (info.mode == Mode::exact) return {};
  const std::uint32_t moved = description.kind == CodedKind::grid_of_f64 ? kGridMoves : 0;
  const auto metres = [&](std::uint32_t units) {
    const auto n = static_cast<double>(units);
    return description.kind == CodedKind::scaled ? n * description.grid.scale[0] : n / scan::kUnitsPerMetre;
  };
  return {metres(info.max_error + moved), metres(info.achieved_error + moved)};
}

Status check_frame(const FrameDescription& description, const scan::ScanInfo& info) {
  const bool is_grid = description.kind == CodedKind::scaled || description.kind == CodedKind::grid_of_f64;
  if ((info.type == scan::CoordinateType::i32) != is_grid)
    return Status(StatusCode::corrupt, "a frame's description and its scan tell of other coordinates");
  if (description.kind == CodedKind::f64_remainders && info.mode != Mode::exact)
    return Status(StatusCode::corrupt, "a frame's remainders of coordinates need mode exact");
  if (description.kind == CodedKind::projected && info.mode != Mode::exact)
    return Status(StatusCode::corrupt, "the coordinates of a range image need mode exact");
  if (description.rows != 0 && (info.mode == Mode::set || info.points % description.rows != 0))
    return Status(StatusCode::corrupt, "the points of an organised frame are not whole rows");
  return {};
}

Result<CodedFrame> encode_frame(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner) {
  const scan::Prediction none;
  QUERN_ASSIGN_OR_RETURN(auto frames, encode_frames(cloud, options, runner, {&none, 1}));
  return std::move(frames.front());
}

Result<Vector<CodedFrame>> encode_frames(const PointCloud& cloud, const FrameOptions& options, TaskRunner& runner,
                                         std::span<const scan::Prediction> predictions) {
  QUERN_RETURN_IF_ERROR(check_cloud(cloud));
  CodedFrame out;
  out.points = cloud.points();
  FrameDescription& description = out.description;
  description.format = cloud.format;
  description.source_bytes = cloud.source_bytes;
  const bool keeps_order = options.mode != Mode::set;
  const bool is_organised = cloud.rows != 0 && cloud.points() % cloud.rows == 0;
  description.rows = keeps_order && is_organised ? cloud.rows : 0;
  if (cloud.file_header.size() <= kMaxFileHeaderBytes) description.file_header = cloud.file_header;
  for (const CloudColumn& column : cloud.columns)
    description.columns.push_back({is_column_name(column.name) ? column.name : String("column"), column.type});
  if (cloud.kind == CoordinateKind::f64) {
    QUERN_RETURN_IF_ERROR(options.mode == Mode::exact ? encode_remainders(cloud, runner, out)
                                                      : encode_on_grid(cloud, options, runner, out));
    return Vector<CodedFrame>(predictions.size(), out);
  }
  Vector<CodedFrame> frames(predictions.size(), out);
  if (options.mode == Mode::exact && is_image(cloud)) {
    QUERN_RETURN_IF_ERROR(encode_image(cloud, runner, frames));
    return frames;
  }
  QUERN_RETURN_IF_ERROR(encode_words(cloud, options, runner, predictions, frames));
  return frames;
}

Result<PointCloud> decode_frame(const FrameDescription& description, std::span<const std::uint8_t> bytes,
                                std::uint64_t most_points, TaskRunner& runner, scan::Prediction prediction) {
  QUERN_ASSIGN_OR_RETURN(const auto info, scan::scan_info(bytes));
  QUERN_RETURN_IF_ERROR(check_frame(description, info));
  QUERN_ASSIGN_OR_RETURN(auto decoded, scan::decode_scan(bytes, most_points, runner, prediction));
  if (decoded.columns.size() != description.columns.size() + remainder_columns(description.kind))
    return Status(StatusCode::corrupt, "a frame's scan has {0} columns, its description another number",
                  static_cast<std::int64_t>(decoded.columns.size()));
  for (std::size_t i = 0; i < decoded.columns.size(); ++i) {
    const std::size_t width =
        i < description.columns.size() ? dtype_bytes(description.columns[i].type) : kRemainderBytes;
    if (decoded.columns[i].element_bytes != width)
      return Status(StatusCode::corrupt, "column {0} of a frame's scan has elements of another size than described",
                    static_cast<std::int64_t>(i));
  }
  PointCloud out;
  out.format = description.format;
  out.source_bytes = description.source_bytes;
  out.rows = description.rows;
  out.file_header = description.file_header;
  if (description.kind == CodedKind::f64_remainders) {
    join_remainders(decoded, out);
  } else {
    out.kind = is_f32(description.kind) ? CoordinateKind::f32 : CoordinateKind::scaled;
    out.grid = description.grid;
    out.words = std::move(decoded.words);
  }
  for (std::size_t i = 0; i < decoded.columns.size(); ++i)
    out.columns.push_back(
        {description.columns[i].name, description.columns[i].type, std::move(decoded.columns[i].values)});
  if (description.kind == CodedKind::projected) QUERN_RETURN_IF_ERROR(project_image(out));
  return out;
}

}  // namespace quern::lidar

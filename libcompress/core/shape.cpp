// Shapes and boxes: checked products and the text forms users write.
#include <quern/shape.h>

#include <charconv>

namespace quern {
namespace {

bool parse_number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// A place on an axis; a negative one counts from the end.
enum class Place { read, unreadable, outside };
Place parse_place(std::string_view text, std::uint64_t extent, std::uint64_t& out) {
  const bool from_end = text.starts_with('-');
  if (!parse_number(from_end ? text.substr(1) : text, out)) return Place::unreadable;
  if (!from_end) return Place::read;
  if (out > extent) return Place::outside;
  out = extent - out;
  return Place::read;
}

}  // namespace

Result<Shape> Shape::make(std::span<const std::uint64_t> extents) {
  if (extents.size() > kMaxRank)
    return Status(StatusCode::invalid_shape, "the shape has {0} axes; at most {1} are possible (merge some)",
                  static_cast<std::int64_t>(extents.size()), static_cast<std::int64_t>(kMaxRank));
  if (const auto shape = try_make(extents)) return *shape;
  return Status(StatusCode::invalid_shape, "the shape has more elements than 64-bit sizes can hold (axis {0})",
                static_cast<std::int64_t>(first_axis_too_long(extents)));
}

Result<Shape> Shape::parse(std::string_view text) {
  std::array<std::uint64_t, kMaxRank + 1> extents{};
  std::size_t rank = 0;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = text.find('x', at);
    std::uint64_t value = 0;
    if (!parse_number(text.substr(at, end == std::string_view::npos ? end : end - at), value))
      return Status(StatusCode::invalid_shape,
                    "the shape cannot be read at axis {0}: write extents slowest first, joined by x, as in 50x100x100",
                    static_cast<std::int64_t>(rank));
    if (rank > kMaxRank) break;
    extents[rank++] = value;
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return make({extents.data(), rank});
}

std::string Shape::text() const {
  if (rank_ == 0) return "scalar";
  std::string out;
  for (std::size_t a = 0; a < rank_; ++a) {
    if (a != 0) out += 'x';
    out += std::to_string(extents_[a]);
  }
  return out;
}

Box Box::whole(const Shape& shape) {
  Box box;
  box.rank = shape.rank();
  for (std::size_t a = 0; a < box.rank; ++a) box.end[a] = shape[a];
  return box;
}

Result<Box> Box::parse(std::string_view text, const Shape& shape) {
  Box box;
  box.rank = shape.rank();
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const auto number = static_cast<std::int64_t>(axis);
    if (at > text.size())
      return Status(StatusCode::invalid_argument,
                    "the region has {0} axes, the array has {1}: write one a:b for each, joined by commas", number,
                    static_cast<std::int64_t>(shape.rank()));
    const std::size_t comma = text.find(',', at);
    const std::string_view part = text.substr(at, comma == std::string_view::npos ? comma : comma - at);
    at = comma == std::string_view::npos ? text.size() + 1 : comma + 1;
    const std::size_t colon = part.find(':');
    std::uint64_t begin = 0;
    std::uint64_t end = shape[axis];
    Place first = Place::read;
    Place last = Place::read;
    if (colon == std::string_view::npos) {
      first = parse_place(part, shape[axis], begin);
      end = begin + 1;
    } else {
      if (colon > 0) first = parse_place(part.substr(0, colon), shape[axis], begin);
      if (colon + 1 < part.size()) last = parse_place(part.substr(colon + 1), shape[axis], end);
    }
    if (first == Place::unreadable || last == Place::unreadable)
      return Status(StatusCode::invalid_argument,
                    "the region cannot be read at axis {0}: write a:b, a:, :b, : or one index", number);
    if (first == Place::outside || last == Place::outside)
      return Status(StatusCode::invalid_argument, "the region leaves the array at axis {0}, whose extent is {1}",
                    number, static_cast<std::int64_t>(shape[axis]));
    box.begin[axis] = begin;
    box.end[axis] = end;
  }
  if (at <= text.size())
    return Status(StatusCode::invalid_argument, "the region has more axes than the array, which has {0}",
                  static_cast<std::int64_t>(shape.rank()));
  QUERN_RETURN_IF_ERROR(box.check(shape));
  return box;
}

Result<Shape> Box::shape() const {
  std::array<std::uint64_t, kMaxRank> extents{};
  for (std::size_t a = 0; a < rank; ++a) extents[a] = end[a] - begin[a];
  return Shape::make({extents.data(), rank});
}

Status Box::check(const Shape& shape) const {
  if (rank != shape.rank())
    return Status(StatusCode::invalid_argument, "the region has {0} axes, the array has {1}",
                  static_cast<std::int64_t>(rank), static_cast<std::int64_t>(shape.rank()));
  for (std::size_t a = 0; a < rank; ++a)
    if (begin[a] > end[a] || end[a] > shape[a])
      return Status(StatusCode::invalid_argument, "the region leaves the array at axis {0}, whose extent is {1}",
                    static_cast<std::int64_t>(a), static_cast<std::int64_t>(shape[a]));
  return {};
}

}  // namespace quern

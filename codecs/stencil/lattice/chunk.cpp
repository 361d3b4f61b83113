#include "codecs/stencil/lattice/chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codecs/stencil/elements.h"
#include "libcompress/core/scattered_sample.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {

namespace {

constexpr std::size_t kQuickEstimate = 64;  ///< numbers that show most chunks to have no lattice
constexpr std::size_t kSample = 2048;       ///< numbers that a lattice is found from
constexpr double kMostReach = 4;            ///< places that the bound may span on either side
constexpr double kLeastGain = 1 + 0x1p-6;   ///< codes are that much further apart than the bound lets them be
constexpr double kRoundings = 1.25;         ///< distances are off by up to so many spacings of the type
constexpr double kLeastNoises = 8;          ///< a spacing is that many noises, or it is taken for noise

/// Some of a chunk's ordinary elements, scattered without a period, in order; their distances from one another and from
/// the first, and from their neighbours in the chunk's rows.
struct Sample {
  std::array<double, kSample> numbers;        // NOLINT: filled
  std::array<double, 3 * kSample> distances;  // NOLINT: filled
  std::size_t count = 0;
  std::size_t distance_count = 0;

  std::span<double> known_distances() { return {distances.data(), distance_count}; }
};

template <class Element>
void gather(const ConstBox3& in, std::size_t size, Sample& sample) {
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  const std::uint64_t elems = in.elems();
  const std::uint64_t columns = in.extents[2];
  sample.count = sample.distance_count = 0;
  const std::uint64_t count = std::min<std::uint64_t>(elems, size);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = scattered_sample(elems, count, i);
    const std::uint64_t x = at % columns;
    const auto* const row = data + row_offset(in, at / columns);
    const std::uint8_t* const special = special_row(in, at / columns);
    const auto ordinary = [&](std::uint64_t place) {
      const double v = Element::value(row[place]);
      return (special == nullptr || special[place] == 0) && v - v == 0;
    };
    if (!ordinary(x)) continue;
    const double v = Element::value(row[x]);
    if (x > 0 && ordinary(x - 1)) sample.distances[sample.distance_count++] = std::fabs(v - Element::value(row[x - 1]));
    sample.numbers[sample.count++] = v;
  }
  std::sort(sample.numbers.begin(), sample.numbers.begin() + static_cast<std::ptrdiff_t>(sample.count));
  for (std::size_t i = 1; i < sample.count; ++i) {
    sample.distances[sample.distance_count++] = sample.numbers[i] - sample.numbers[i - 1];
    sample.distances[sample.distance_count++] = sample.numbers[i] - sample.numbers[0];
  }
}

/// The distance of the element type's numbers at the largest magnitude.
double spacing_of_type(std::span<const double> numbers, DType dtype) {
  double largest = 0;
  for (const double x : numbers) largest = std::max(largest, std::fabs(x));
  if (largest == 0) return 0;
  return std::ldexp(1.0, std::ilogb(largest) - (dtype == DType::f64 ? 52 : 23));
}

/// What a lattice must be to be looked for.
struct Search {
  Search(const EncodeSpec& spec, const Sample& sample)
      : numbers(sample.numbers.data(), sample.count),
        // Places further apart than this are further apart than codes at twice the bound.
        pays(2 * spec.bound * kLeastGain / (2 * kMostReach + 1)),
        // Numbers were rounded, perhaps more than once; and less than that does not matter where the bound is wider.
        noise(std::max(kRoundings * spacing_of_type(numbers, spec.dtype), spec.bound * 0x1p-8)),
        clear(std::max(pays, kLeastNoises * noise)) {}

  std::span<const double> numbers;
  double pays;
  double noise;
  double clear;  ///< spacings of at least this are told from noise
};

template <class Element>
std::optional<Lattice> find(const EncodeSpec& spec, const ConstBox3& in) {
  Sample sample;
  gather<Element>(in, kQuickEstimate, sample);
  const Search sampled(spec, sample);
  if (!find_binary_lattice(sampled.numbers, sampled.pays) &&
      !may_have_lattice(sample.known_distances(), sampled.clear, sampled.noise))
    return std::nullopt;
  gather<Element>(in, kSample, sample);
  const Search search(spec, sample);
  const auto binary = find_binary_lattice(search.numbers, search.pays);
  const auto lattice = find_lattice(search.numbers, sample.known_distances(), search.clear, search.noise);
  // Of two the coarser; the binary one is exact.
  return lattice && (!binary || lattice->spacing > 1.5 * binary->spacing) ? lattice : binary;
}

/// Numbers every ordinary element; false when one misses the bound `reach` places to either side of its own.
template <class Element>
bool number_all(const EncodeSpec& spec, const ConstBox3& in, const Lattice& lattice, std::int32_t reach,
                std::int32_t* numbers) {
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  const std::size_t rows = static_cast<std::size_t>(in.extents[0] * in.extents[1]);
  const std::size_t columns = static_cast<std::size_t>(in.extents[2]);
  std::int32_t last = 0;
  for (std::size_t r = 0; r < rows; ++r, numbers += columns) {
    const auto* const row = data + row_offset(in, r);
    const std::uint8_t* const special = special_row(in, r);
    for (std::size_t x = 0; x < columns; ++x) {
      if (special == nullptr || special[x] == 0) {
        const double place = nearest((Element::value(row[x]) - lattice.origin) / lattice.spacing);
        if (!(std::fabs(place) < kMostPlaces)) return false;
        last = static_cast<std::int32_t>(place);
        // Its own place and the ends; rounding is monotone: what is between them is within the bound, too.
        for (std::int32_t n = last - reach; n <= last + reach; n += std::max(reach, 1))
          if (!keeps_bound<Element>(row[x], Element::bits(lattice.value(n)), spec.bound)) return false;
      }
      numbers[x] = last;
    }
  }
  return true;
}

template <class Element>
void find_places(const EncodeSpec& spec, const ConstBox3& in, LatticePlaces& found) {
  const auto lattice = find<Element>(spec, in);
  if (!lattice) return;
  found.lattice = *lattice;
  const double spacing = found.lattice.spacing;
  double reach = std::min(std::floor(spec.bound / spacing), kMostReach);
  // Elements off their places by some rounding may leave room for a place less.
  for (int tries = 0; tries < 2 && reach >= 0; ++tries, --reach) {
    if (!((2 * reach + 1) * spacing >= 2 * spec.bound * kLeastGain)) return;
    found.numbers.resize(static_cast<std::size_t>(in.elems()));
    if (!number_all<Element>(spec, in, found.lattice, static_cast<std::int32_t>(reach), found.numbers.data())) {
      found.numbers.clear();
      continue;
    }
    found.box = in;
    found.box.data = found.numbers.data();
    found.box.strides = {in.extents[1] * in.extents[2], in.extents[2]};
    found.spec = integer_spec(spec);
    found.spec.bound = reach + 0.5;
    return;
  }
}

template <class Element>
void spread(const Lattice& lattice, const MutableBox3& box) {
  spread_integers<typename Element::Bits>(nullptr, box,
                                          [&](std::int32_t n) { return Element::bits(lattice.value(n)); });
}

}  // namespace

LatticePlaces lattice_places(const EncodeSpec& spec, const ConstBox3& in) {
  LatticePlaces found;
  if (spec.dtype == DType::f32) find_places<F32>(spec, in, found);
  if (spec.dtype == DType::f64) find_places<F64>(spec, in, found);
  return found;
}

void write_lattice(const Lattice& lattice, std::span<std::uint8_t> out) {
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(Mode::lattice));
  writer.f64(lattice.origin);
  writer.f64(lattice.spacing);
}

Result<Lattice> read_lattice(DType dtype, std::span<const std::uint8_t>& in) {
  const auto corrupt = [](const char* text) { return Status(StatusCode::corrupt, text); };
  if (!may_lie_on_lattice(dtype)) return corrupt("stencil: elements of this type have no lattice");
  Reader reader(in);
  Lattice lattice;
  QUERN_ASSIGN_OR_RETURN(lattice.origin, reader.f64());
  QUERN_ASSIGN_OR_RETURN(lattice.spacing, reader.f64());
  if (!std::isfinite(lattice.origin) || !std::isfinite(lattice.spacing) || !(lattice.spacing > 0))
    return corrupt("stencil: a lattice is no lattice");
  in = in.last(reader.remaining());
  if (in.empty() || !may_be_inside(in[0])) return corrupt("stencil: a chunk on a lattice holds no chunk of integers");
  return lattice;
}

void spread_lattice(const Lattice& lattice, DType dtype, const MutableBox3& box) {
  if (dtype == DType::f32) spread<F32>(lattice, box);
  if (dtype == DType::f64) spread<F64>(lattice, box);
}

}  // namespace quern::codec::stencil

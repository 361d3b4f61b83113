// Sensors of range images: any bytes become a sensor or a status; a sensor comes back from its own bytes; points of any
// ranges are finite, within reach, or NaN where the range is 0.
#include <bit>
#include <cmath>

#include "lidar/images/range_sensor.h"
#include "tests/fuzz/fuzz_common.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quern;
  using namespace quern::lidar;
  const fuzz::AllocationWatch watch;
  const auto sensor = read_range_sensor({data, size});
  QUERN_FUZZ_CHECK(watch.peak() <= 64 * size + 4096);
  if (!sensor.ok()) return 0;
  const auto again = read_range_sensor(write_range_sensor(*sensor));
  QUERN_FUZZ_CHECK(again.ok());
  QUERN_FUZZ_CHECK(again->transform == sensor->transform && again->beams.size() == sensor->beams.size());
  if (sensor->pixels() > 20000) return 0;
  Vector<std::uint8_t> ranges(static_cast<std::size_t>(4 * sensor->pixels()));
  for (std::size_t i = 0; i < ranges.size(); i += 4)
    for (std::size_t b = 0; b < 3; ++b) ranges[i + b] = b < 2 ? data[(i + b) % size] : data[(i + b) % size] & 15;
  const auto words = project(*sensor, ranges);
  QUERN_FUZZ_CHECK(words.ok());
  for (std::size_t i = 0; i < words->size(); ++i) {
    const float at = std::bit_cast<float>((*words)[i]);
    const bool is_empty = ranges[i / 3 * 4] == 0 && ranges[i / 3 * 4 + 1] == 0 && ranges[i / 3 * 4 + 2] == 0;
    QUERN_FUZZ_CHECK(is_empty ? std::isnan(at) : std::fabs(at) < 4000);
  }
  return 0;
}

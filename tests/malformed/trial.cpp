// Running trials and holding the paths against each other.
#include "tests/malformed/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "tests/support/instrumented.h"
#include "tests/support/thorough.h"

namespace quern::malformed {
namespace {

// Strides share no factor with the bits of a byte, nor with the trials of one.
const Limits kLimits = testing::kInstrumented ? Limits{20, testing::thorough() ? std::size_t{11} : std::size_t{31}}
                                              : Limits{2, testing::thorough() ? std::size_t{1} : std::size_t{11}};

Execution limited() {
  Execution execution;
  execution.memory_limit = kMemoryLimit;
  return execution;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool equal(const testing::OwnedArray& a, const testing::OwnedArray& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

/// The upper half of every axis of the first stream.
void try_region(const std::string& name, std::span<const std::uint8_t> bytes, const testing::OwnedArray* whole) {
  MemorySource source(bytes);
  DecompressOptions options;
  options.offset = 0;
  auto decoder = Decoder::open(source, builtin_codecs(), limited(), options);
  if (!decoder.ok()) {
    EXPECT_EQ(whole, nullptr) << name << ": " << decoder.status().text();
    return;
  }
  const Shape shape = (*decoder)->info().shape;
  Box box = Box::whole(shape);
  for (std::size_t a = 0; a < shape.rank(); ++a) box.begin[a] = shape[a] / 2;
  const auto box_shape = box.shape();
  const std::size_t width = dtype_bytes((*decoder)->info().dtype);
  if (!box_shape.ok() || box_shape->elems() > kMostValues / width) return;
  Vector<std::uint8_t> values(static_cast<std::size_t>(box_shape->elems()) * width);
  const Status status = (*decoder)->region(box, {values.data(), (*decoder)->info().dtype, *box_shape});
  if (whole == nullptr) return;
  ASSERT_TRUE(status.ok()) << name << ": the whole decodes, a region does not: " << status.text();
  // Element i of the box, compared with its place in the whole.
  for (std::uint64_t i = 0; i < box_shape->elems(); ++i) {
    std::uint64_t rest = i;
    std::uint64_t flat = 0;
    std::uint64_t stride = 1;
    for (std::size_t a = shape.rank(); a-- > 0;) {
      flat += (box.begin[a] + rest % (*box_shape)[a]) * stride;
      rest /= (*box_shape)[a];
      stride *= shape[a];
    }
    const auto at = [width](std::uint64_t index) { return static_cast<std::ptrdiff_t>(index * width); };
    ASSERT_TRUE(std::equal(values.begin() + at(i), values.begin() + at(i + 1), whole->bytes.begin() + at(flat)))
        << name << ": element " << i << " of a region differs from the whole";
  }
}

}  // namespace

Limits limits() { return kLimits; }

std::string Tally::text() const {
  std::ostringstream out;
  out << trials << " trials, " << refused << " refused, " << accepted << " accepted, slowest " << slowest_seconds * 1e3
      << " ms (" << slowest << ")";
  return out.str();
}

Result<std::vector<testing::OwnedArray>> decode_strictly(const std::string& name, std::span<const std::uint8_t> bytes,
                                                         Tally& tally) {
  const Stopwatch watch;
  auto arrays = golden::decode(bytes, limited(), {}, kMostValues);
  const double seconds = watch.seconds();
  ++tally.trials;
  ++(arrays.ok() ? tally.accepted : tally.refused);
  if (seconds > tally.slowest_seconds) {
    tally.slowest_seconds = seconds;
    tally.slowest = name;
  }
  EXPECT_LT(seconds, kLimits.seconds) << name;
  return arrays;
}

void try_other_paths(const std::string& name, std::span<const std::uint8_t> bytes,
                     const Result<std::vector<testing::OwnedArray>>& strict) {
  const Stopwatch watch;
  MemorySource source(bytes);
  const auto info = inspect(source, builtin_codecs());
  MemorySource again(bytes);
  const auto spans = list_streams(again);
  DecompressOptions options;
  options.keep_going = true;
  Vector<Hole> holes;
  const auto kept = golden::decode(bytes, limited(), options, kMostValues, &holes);
  const bool stopped = strict.status().code() == StatusCode::destination_too_small;
  if (strict.ok()) {
    EXPECT_TRUE(info.ok()) << name;
    EXPECT_TRUE(spans.ok()) << name;
    ASSERT_TRUE(kept.ok()) << name << ": " << kept.status().text();
    EXPECT_TRUE(holes.empty()) << name;
    ASSERT_EQ(kept->size(), strict.value().size()) << name;
    for (std::size_t i = 0; i < kept->size(); ++i)
      EXPECT_TRUE(equal((*kept)[i], strict.value()[i])) << name << ": stream " << i << " differs with keep_going";
  } else if (kept.ok() && !stopped && kept->size() == 1) {
    // The first stream was damaged behind its header: what is missing is told. Damage to the trailer alone leaves no
    // hole.
    for (const Hole& hole : holes) EXPECT_FALSE(hole.why.ok()) << name;
  }
  try_region(name, bytes, strict.ok() ? &strict.value().front() : nullptr);
  EXPECT_LT(watch.seconds(), 4 * kLimits.seconds) << name;
}

}  // namespace quern::malformed

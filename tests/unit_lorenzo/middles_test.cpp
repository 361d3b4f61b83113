// Numbers near the middle between two codes, in whole chunks and by every instruction set: none misses the bound, and
// under a step with slack no code that is promised makes an exception.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include <quern/memory.h>

#include "codecs/lorenzo/rules.h"
#include "codecs/lorenzo/step.h"
#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/lorenzo/tile_code.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::ChunkRules;
using kernels::IsaLevel;

constexpr std::uint64_t kTile = 1024;
constexpr double kBounds[] = {0.5, 0.1, 1.0 / 3, 1e-3, 2.5, 1e-29, 1e25, 7e-6};

ChunkRules line_rules(DType dtype, double bound) {
  ChunkRules rules = make_rules(dtype, {BoundKind::abs, bound}, {});
  rules.candidates[rules.candidate_count++] = kernels::Predictor::none;
  return rules;
}

std::size_t tiles_with_exceptions(std::span<const std::uint8_t> chunk, std::size_t tiles) {
  const std::uint8_t* in = chunk.data();
  const std::uint8_t* const end = in + chunk.size();
  if (*in++ == kernels::kFormConstant) return 0;
  std::size_t count = 0;
  std::uint64_t seed = 0;
  for (std::size_t t = 0; t < tiles; ++t) {
    kernels::TileHead head;
    EXPECT_TRUE(kernels::get_head(in, end, head, seed));
    seed = head.seed;
    count += head.exceptions || head.exact ? 1 : 0;
  }
  return count;
}

/// Codes numbers tile by tile with one instruction set, checks the bound, and counts tiles with exceptions.
template <class T>
class Coder {
 public:
  Coder(const ChunkRules& rules, double bound, IsaLevel isa)
      : rules_(rules), bound_(bound), kernels_(kernels::lorenzo_kernels(isa)) {
    EXPECT_TRUE(scratch_.resize(std::max(kernels_.encode_scratch_bytes, kernels_.decode_scratch_bytes)).ok());
    chunk_.resize(kernels::max_lorenzo_chunk_bytes(rules.element, 1));
  }

  void add(T value) {
    values_.push_back(value);
    if (values_.size() == kTile) flush();
  }

  void flush() {
    if (values_.empty()) return;
    const ChunkBox box{{1, 1, values_.size()}, {values_.size(), values_.size()}};
    std::vector<T> back(values_.size());
    const std::size_t bytes = kernels_.encode(rules_, values_.data(), box, chunk_.data(), scratch_.data());
    ASSERT_TRUE(kernels_.decode(rules_, chunk_.data(), bytes, back.data(), box, scratch_.data()));
    for (std::size_t i = 0; i < back.size(); ++i) {
      // The difference of numbers this near is exact; where the code is 0, so is it.
      const long double error = std::fabs(static_cast<long double>(values_[i]) - static_cast<long double>(back[i]));
      ASSERT_LE(error, static_cast<long double>(bound_)) << values_[i];
    }
    exceptions += tiles_with_exceptions({chunk_.data(), bytes}, 1);
    values_.clear();
  }

  std::size_t exceptions = 0;  ///< tiles that have some

 private:
  ChunkRules rules_;
  double bound_;
  const kernels::LorenzoKernels& kernels_;
  AlignedBuffer scratch_;
  std::vector<std::uint8_t> chunk_;
  std::vector<T> values_;
};

/// Adds the numbers within 3 units in the last place of the middle above code n, of both signs.
template <class T>
void add_middle(Coder<T>& coder, double step, std::uint64_t n) {
  T x = static_cast<T>((static_cast<double>(n) + 0.5) * step);
  for (int i = 0; i < 3; ++i) x = std::nextafter(x, T{0});
  for (int i = 0; i < 7; ++i, x = std::nextafter(x, static_cast<T>(INFINITY))) {
    coder.add(x);
    coder.add(-x);
  }
}

void for_instruction_sets(const std::function<void(IsaLevel)>& visit) {
  for (std::size_t level = 0; level < kernels::kIsaLevels; ++level) {
    const auto isa = static_cast<IsaLevel>(level);
    if (!kernels::isa_available(isa)) continue;
    SCOPED_TRACE(kernels::isa_name(isa));
    visit(isa);
  }
}

TEST(Middles, OfAllPromisedCodes_MakeNoException) {
  for (const double bound : {0.37, 1e-3, 1e5 / 3, 0x1.3c4d5ep-70})
    for (const std::uint64_t served : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{6000}, std::uint64_t{80000}})
      for_instruction_sets([&](IsaLevel isa) {
        SCOPED_TRACE(::testing::Message() << "bound " << bound << ", codes up to " << served);
        const ChunkRules plain = line_rules(DType::f32, bound);
        ChunkRules rules = plain;
        set_slack(served, rules.params);
        Coder<float> coder(rules, bound, isa);
        Coder<float> without(plain, bound, isa);
        for (std::uint64_t n = 0; n < served; ++n) {
          add_middle(coder, rules.params.step, n);
          add_middle(without, plain.params.step, n);
        }
        coder.flush();
        without.flush();
        EXPECT_EQ(coder.exceptions, 0u);
        if (served >= 100) {
          EXPECT_GT(without.exceptions, 0u);
        }
      });
}

/// A number whose code is beyond what is promised and misses the bound; else one that has no code.
float number_beyond(const ChunkRules& rules, std::mt19937_64& random) {
  const kernels::AbsQuantizer32<kernels::Binary32> quantizer(rules.params);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t n = rules.params.promised + 1 + random() % (UINT64_C(1) << 21);
    const auto x = static_cast<float>((static_cast<double>(n) + 0.5) * rules.params.step);
    std::uint32_t code = 0;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if (!quantizer.encode(bits, code) && !quantizer.accepts_exactly(bits)) return x;
  }
  EXPECT_GT(rules.params.promised, 10000u);
  return static_cast<float>(0x1p23 * rules.params.step);
}

TEST(Middles, BeyondThePromise_AreExceptionsWhereTheyMissTheBound) {
  std::mt19937_64 random(27);
  for (const double bound : {0.37, 1e-3, 1e5 / 3, 0x1.3c4d5ep-70})
    for (const std::uint64_t served : {1, 100, 6000, 80000}) {
      ChunkRules rules = line_rules(DType::f32, bound);
      set_slack(served, rules.params);
      const float beyond = number_beyond(rules, random);
      for_instruction_sets([&](IsaLevel isa) {
        SCOPED_TRACE(::testing::Message() << "bound " << bound << ", codes up to " << served << ", seed 27");
        Coder<float> coder(rules, bound, isa);
        for (std::uint64_t i = 0; i < 3 * kTile; ++i)
          coder.add(i == kTile + 77 ? beyond : static_cast<float>(rules.params.step * static_cast<double>(i % served)));
        EXPECT_EQ(coder.exceptions, 1u);
      });
    }
}

/// Middles of the first codes and of random ones up to `most`, under every bound. Returns tiles with exceptions.
template <class T>
std::size_t try_edges(DType dtype, std::uint64_t served, std::uint64_t most) {
  std::size_t exceptions = 0;
  for (const double bound : kBounds)
    for_instruction_sets([&](IsaLevel isa) {
      SCOPED_TRACE(::testing::Message() << "bound " << bound << ", slack for " << served << ", seed 28");
      std::mt19937_64 random(28);
      ChunkRules rules = line_rules(dtype, bound);
      if (served != 0) set_slack(served, rules.params);
      Coder<T> coder(rules, bound, isa);
      for (std::uint64_t n = 0; n < 3000; ++n) add_middle(coder, rules.params.step, n);
      for (int i = 0; i < 3000; ++i) add_middle(coder, rules.params.step, random() % (most >> random() % 8));
      coder.flush();
      exceptions += coder.exceptions;
    });
  return exceptions;
}

TEST(Middles, OfBinary32_KeepEveryBound) {
  EXPECT_GT(try_edges<float>(DType::f32, 0, UINT64_C(1) << 21), 0u);
  EXPECT_GT(try_edges<float>(DType::f32, 6000, UINT64_C(1) << 21), 0u);
}

TEST(Middles, OfBinary64_KeepEveryBound) { EXPECT_GT(try_edges<double>(DType::f64, 0, UINT64_C(1) << 50), 0u); }

}  // namespace
}  // namespace quern::codec::lorenzo

// Kernels of the bounded modes: every instruction set against plain code element by element, at counts around the
// widths of vectors, with every kind of value that has its own path; and the quick check against the one that decides
// each element.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/tensor/cpu/bound_check.h"
#include "kernels/tensor/cpu/bounds.h"
#include "kernels/tensor/cpu/logs.h"
#include "kernels/tensor/cpu/residuals.h"

namespace quern::kernels {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<IsaLevel> levels() {
  std::vector<IsaLevel> all;
  for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512})
    if (isa_available(level)) all.push_back(level);
  return all;
}

constexpr std::size_t kCounts[] = {1, 7, 8, 9, 31, 255, 256, 257, 2000, 5003};

/// Small numbers mostly; some of every size below 2^30.
std::vector<std::int32_t> make_residuals(std::size_t count, unsigned seed, unsigned spread) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> residuals(count);
  for (auto& r : residuals) {
    const unsigned bits = random() % 64 == 0 ? static_cast<unsigned>(random() % 30) : spread;
    const auto magnitude = static_cast<std::int32_t>(random() & ((1u << bits) - 1));
    r = random() % 2 == 0 ? magnitude : -magnitude;
  }
  return residuals;
}

TEST(ResidualKernels_Symbols, AreThoseOfEachResidual) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts) {
      std::vector<std::int32_t> residuals = make_residuals(count, 3, 6);
      for (unsigned bit = 0; bit < 30 && bit < count; ++bit)
        residuals[bit] = static_cast<std::int32_t>((1u << bit) - (bit % 2)) * (bit % 3 == 0 ? -1 : 1);
      Bytes symbols(count);
      tensor_residual_kernels(level).symbols(residuals.data(), count, symbols.data());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(symbols[i], tensor_symbol(residuals[i]).symbol) << isa_name(level) << ' ' << residuals[i];
    }
}

TEST(ResidualKernels_Symbols, HoldAroundEveryPowerOfTwo) {
  std::vector<std::int32_t> residuals;
  for (unsigned bit = 0; bit < 30; ++bit)
    for (std::int32_t off = -70; off <= 70; ++off) {
      const std::int32_t r = static_cast<std::int32_t>(1u << bit) + off;
      if (r < 0 || r >= 1 << 30) continue;
      residuals.push_back(r);
      residuals.push_back(-r);
    }
  for (const IsaLevel level : levels()) {
    Bytes symbols(residuals.size());
    tensor_residual_kernels(level).symbols(residuals.data(), residuals.size(), symbols.data());
    for (std::size_t i = 0; i < residuals.size(); ++i) ASSERT_EQ(symbols[i], tensor_symbol(residuals[i]).symbol);
  }
}

TEST(ResidualKernels_SumsAndCounts, AreThoseOfALoop) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts) {
      const auto& kernels = tensor_residual_kernels(level);
      const auto residuals = make_residuals(count, 4, 28);
      constexpr std::uint32_t kMost = 1u << 20;
      std::uint64_t sum = 0;
      std::vector<std::uint32_t> sums(count, 5), expected(count, 5);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t m = std::min<std::uint32_t>(static_cast<std::uint32_t>(std::abs(residuals[i])), kMost);
        sum += m;
        expected[i] += m;
      }
      EXPECT_EQ(kernels.magnitude_sum(residuals.data(), count, kMost), sum);
      kernels.add_magnitudes(residuals.data(), count, kMost, sums.data());
      EXPECT_EQ(sums, expected);

      std::mt19937 random(5);
      Bytes symbols(count), contexts(count);
      std::vector<std::uint32_t> counts(kTensorPlaces * kTensorContexts), wanted(counts.size());
      for (std::size_t i = 0; i < count; ++i) {
        symbols[i] = static_cast<std::uint8_t>(random() % kTensorSymbols);
        contexts[i] = static_cast<std::uint8_t>(random() % kTensorContexts);
        ++wanted[contexts[i] * kTensorPlaces + symbols[i]];
      }
      kernels.count(symbols.data(), contexts.data(), count, counts.data());
      EXPECT_EQ(counts, wanted);
    }
}

TEST(ResidualKernels_ChooseTables, LooksUpTheContextOfEachLevel) {
  std::mt19937 random(6);
  std::array<std::uint8_t, kTensorContexts> table_of{};
  for (auto& t : table_of) t = static_cast<std::uint8_t>(random());
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts) {
      std::vector<std::int32_t> columns(count);
      for (auto& c : columns) c = static_cast<std::int32_t>(random() % 300) - 150;
      for (const std::int32_t row : {0, 40, 127}) {
        Bytes tables(count);
        tensor_residual_kernels(level).choose_tables(columns.data(), count, row, table_of.data(), tables.data());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(tables[i], table_of[tensor_context(row + columns[i])]) << isa_name(level);
      }
    }
}

/// Tables of some symbols; the second lacks many, which escape.
struct Tables {
  std::vector<TensorEncodeTable> encode;
  std::vector<TensorDecodeTable> decode;

  Tables() : encode(3), decode(3) {
    for (unsigned t = 0; t < 3; ++t) {
      std::array<std::uint32_t, kTensorSymbols> frequencies{};
      frequencies[kTensorEscape] = t == 2 ? 4095 : 1;  // the largest frequency there is
      std::uint32_t left = kTensorSum - frequencies[kTensorEscape];
      if (t == 2) frequencies[0] = 1, left = 0;
      for (unsigned s = 0; s < kTensorEscape && left > 0; s += t == 1 ? 7 : 1) {
        frequencies[s] = std::min<std::uint32_t>(left, t == 0 ? 1 + 2048u / (1 + s * s) : 300);
        left -= frequencies[s];
      }
      frequencies[0] += left;
      std::uint32_t start = 0;
      for (unsigned s = 0; s < kTensorSymbols; ++s) {
        encode[t].entries[s] = tensor_entry(frequencies[s], start);
        for (std::uint32_t i = 0; i < frequencies[s]; ++i)
          decode[t].entries[start + i] = s | (frequencies[s] - 1) << 8 | i << 20;
        start += frequencies[s];
      }
    }
  }
};

TEST(ResidualKernels_Coder, WritesTheSameOnEverySetAndReadsItBack) {
  const Tables tables;
  for (const std::size_t count : kCounts)
    for (const unsigned spread : {2u, 5u, 9u, 20u}) {
      const auto residuals = make_residuals(count, 7 + spread, spread);
      std::mt19937 random(8);
      Bytes numbers(count);
      for (auto& n : numbers) n = static_cast<std::uint8_t>(random() % 3);
      std::vector<std::uint16_t> first;
      std::array<std::uint32_t, kTensorStates> states{};
      for (const IsaLevel level : levels()) {
        std::vector<std::uint16_t> words(4 * count + kTensorWordSlack);
        TensorEncodeJob job;
        job.residuals = residuals.data();
        job.tables = numbers.data();
        job.count = count;
        job.table = tables.encode.data();
        job.words = words.data() + words.size();
        std::fill(std::begin(job.states), std::end(job.states), kRansFloor);
        tensor_residual_kernels(level).encode(job);
        const std::vector<std::uint16_t> written(job.words, words.data() + words.size());
        if (level == IsaLevel::baseline) {
          first = written;
          std::copy(std::begin(job.states), std::end(job.states), states.begin());
        }
        ASSERT_EQ(written, first) << isa_name(level) << " count " << count << " spread " << spread;
        ASSERT_TRUE(std::equal(states.begin(), states.end(), std::begin(job.states)));
      }
      Bytes bytes(2 * first.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        bytes[2 * i] = static_cast<std::uint8_t>(first[i]);
        bytes[2 * i + 1] = static_cast<std::uint8_t>(first[i] >> 8);
      }
      for (const IsaLevel level : levels()) {
        std::vector<std::int32_t> back(count);
        TensorDecodeJob job;
        job.residuals = back.data();
        job.tables = numbers.data();
        job.count = count;
        job.table = tables.decode.data();
        job.source.at = bytes.data();
        job.source.end = bytes.data() + bytes.size();
        std::copy(states.begin(), states.end(), std::begin(job.states));
        tensor_residual_kernels(level).decode(job);
        EXPECT_EQ(back, residuals) << isa_name(level);
        EXPECT_FALSE(job.source.failed);
        EXPECT_EQ(job.source.at, job.source.end);
        for (const std::uint32_t state : job.states) EXPECT_EQ(state, kRansFloor);
      }
    }
}

TEST(ResidualKernels_Coder, DamagedWordsGiveTheSameOnEverySet) {
  const Tables tables;
  std::mt19937 random(9);
  for (unsigned round = 0; round < 200; ++round) {
    const std::size_t count = 8 + random() % 300;
    Bytes numbers(count), bytes(2 * (random() % 400));
    for (auto& n : numbers) n = static_cast<std::uint8_t>(random() % 3);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::array<std::uint32_t, kTensorStates> states{};
    for (auto& state : states) state = random() % 4 == 0 ? random() % 4 : static_cast<std::uint32_t>(random());
    std::vector<std::int32_t> first;
    bool first_failed = false;
    for (const IsaLevel level : levels()) {
      std::vector<std::int32_t> back(count);
      TensorDecodeJob job;
      job.residuals = back.data();
      job.tables = numbers.data();
      job.count = count;
      job.table = tables.decode.data();
      job.source.at = bytes.data();
      job.source.end = bytes.data() + bytes.size();
      std::copy(states.begin(), states.end(), std::begin(job.states));
      tensor_residual_kernels(level).decode(job);
      if (level == IsaLevel::baseline) first = back, first_failed = job.source.failed;
      ASSERT_EQ(back, first) << isa_name(level) << " round " << round;
      ASSERT_EQ(job.source.failed, first_failed);
    }
  }
}

/// Values of all kinds: ordinary ones, zeros, denormals, infinities, NaN.
Bytes make_floats(std::size_t count, unsigned seed, float scale, bool positive) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  constexpr std::array<std::uint32_t, 9> kOdd{0,           0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00001u,
                                              0x00000001u, 0x807fffffu, 0x7f7fffffu, 0x00800000u};
  Bytes bytes(4 * count);
  for (std::size_t i = 0; i < count; ++i) {
    float x = scale * normal(random);
    if (positive) x = x * x;
    auto bits = std::bit_cast<std::uint32_t>(x);
    if (random() % 16 == 0) bits = kOdd[random() % kOdd.size()];
    std::memcpy(bytes.data() + 4 * i, &bits, 4);
  }
  return bytes;
}
std::uint32_t bits_at(const Bytes& bytes, std::size_t i) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + 4 * i, 4);
  return bits;
}
float float_at(const Bytes& bytes, std::size_t i) { return std::bit_cast<float>(bits_at(bytes, i)); }

TEST(BoundKernels_Updates, AreWhatTheFormatSays) {
  const double eps = 0.05;
  const UpdateUnit unit{static_cast<float>(2 * eps * (1 - 0x1p-22)), eps * eps * (1 - 0x1p-48)};
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts) {
      const auto& kernels = tensor_bound_kernels(level);
      const Bytes values = make_floats(count, 10, 0.01f, false);
      const Bytes base = make_floats(count, 11, 0.01f, false);
      const Bytes second = make_floats(count, 12, 0.01f, true);
      std::vector<std::int32_t> codes(count), predictions(count);
      Bytes decoded(4 * count), again(4 * count), marks(count), stepless(count);
      const bool any =
          kernels.update_codes(unit, values.data(), second.data(), count, codes.data(), decoded.data(), marks.data());
      const bool any_stepless = kernels.update_marks(second.data(), count, stepless.data());
      kernels.update_predictions(unit, 50, base.data(), second.data(), count, predictions.data());
      kernels.update_values(unit, codes.data(), second.data(), count, again.data());
      bool marked = false;
      bool without_step = false;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t v = bits_at(second, i);
        const bool has_step = is_positive_pattern(v);
        const float value = float_at(values, i);
        const float step = has_step ? unit.two_eps * __builtin_sqrtf(float_at(second, i)) : 0;
        const float quotient = has_step ? value / step : 0;
        const bool fits = has_step && quotient >= -0x1p20f && quotient <= 0x1p20f && bits_at(values, i) != 0x80000000u;
        const std::int32_t code = fits ? nearest_integer(quotient) : 0;
        const float back = static_cast<float>(code) * step;
        const double off = static_cast<double>(back) - static_cast<double>(value);
        const bool coded = fits && off * off <= unit.square * static_cast<double>(float_at(second, i));
        ASSERT_EQ(marks[i], coded ? 0 : 1) << isa_name(level) << ' ' << i;
        ASSERT_EQ(codes[i], coded ? code : 0);
        ASSERT_EQ(bits_at(decoded, i), coded ? std::bit_cast<std::uint32_t>(back) : 0);
        if (coded) {
          ASSERT_EQ(bits_at(again, i), bits_at(decoded, i));
        }
        ASSERT_EQ(stepless[i], has_step ? 0 : 1);
        marked = marked || !coded;
        without_step = without_step || !has_step;
        const bool known = has_step && is_finite_pattern(bits_at(base, i));
        const float by_base = known ? float_at(base, i) / step : 0;
        const std::int32_t kept = nearest_integer(std::clamp(by_base, -0x1p20f, 0x1p20f));
        ASSERT_EQ(predictions[i], known ? (50 * kept + 32) >> 6 : 0) << isa_name(level) << ' ' << i;
      }
      EXPECT_EQ(any, marked);
      EXPECT_EQ(any_stepless, without_step);
    }
}

TEST(BoundKernels_Steps, AreWhatTheFormatSays) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts)
      for (const double bound : {1e-3, 1e-7, 0.0}) {
        const auto& kernels = tensor_bound_kernels(level);
        StepUnit unit{static_cast<float>(2 * bound * (1 - 0x1p-22)), bound};
        if (unit.step == 0) unit.step = std::bit_cast<float>(1u);
        const Bytes values = make_floats(count, 13, 0.02f, false);
        std::vector<float> around(count);
        for (std::size_t i = 0; i < count; ++i)
          around[i] = is_finite_pattern(bits_at(values, i)) ? 0.9f * float_at(values, i) : 0;
        for (const bool with_predictions : {false, true}) {
          const float* const predictions = with_predictions ? around.data() : nullptr;
          std::vector<std::int32_t> codes(count);
          Bytes decoded(4 * count), again(4 * count), marks(count);
          const bool any =
              kernels.step_codes(unit, values.data(), predictions, count, codes.data(), decoded.data(), marks.data());
          kernels.step_values(unit.step, codes.data(), predictions, count, again.data());
          bool marked = false;
          for (std::size_t i = 0; i < count; ++i) {
            const float p = predictions == nullptr ? 0 : predictions[i];
            const float value = float_at(values, i);
            const float quotient = (value - p) / unit.step;
            const bool fits = quotient >= -0x1p21f && quotient <= 0x1p21f;
            const std::int32_t code = fits ? nearest_integer(quotient) : 0;
            const float back = p + static_cast<float>(code) * unit.step;
            const double off = static_cast<double>(back) - static_cast<double>(value);
            const bool coded = fits && ((value != 0 && off < bound && -off < bound) ||
                                        std::bit_cast<std::uint32_t>(back) == bits_at(values, i));
            ASSERT_EQ(marks[i], coded ? 0 : 1) << isa_name(level) << ' ' << i << ' ' << value;
            ASSERT_EQ(codes[i], coded ? code : 0);
            ASSERT_EQ(bits_at(decoded, i), coded ? std::bit_cast<std::uint32_t>(back) : 0);
            if (coded) {
              ASSERT_EQ(bits_at(again, i), bits_at(decoded, i));
            }
            marked = marked || !coded;
          }
          EXPECT_EQ(any, marked);
        }
      }
}

TEST(BoundKernels_Sums, AreInTheOrderOfElements) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts) {
      const auto& kernels = tensor_bound_kernels(level);
      const Bytes values = make_floats(count, 14, 3.0f, false);
      std::array<double, 8> sums{}, squares{}, wanted{}, wanted_squares{};
      std::uint64_t finite = 0;
      std::uint32_t lowest = UINT32_MAX, highest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = bits_at(values, i);
        if (is_positive_pattern(bits)) lowest = std::min(lowest, bits), highest = std::max(highest, bits);
        if (!is_finite_pattern(bits)) continue;
        const double x = static_cast<double>(float_at(values, i));
        wanted[i % 8] = wanted[i % 8] + x;
        wanted_squares[i % 8] = wanted_squares[i % 8] + (x - 0.25) * (x - 0.25);
        ++finite;
      }
      EXPECT_EQ(kernels.finite_sums(values.data(), count, sums.data()), finite);
      kernels.finite_squares(values.data(), count, 0.25, squares.data());
      EXPECT_EQ(sums, wanted);
      EXPECT_EQ(squares, wanted_squares);
      std::uint32_t low = 0, high = 0;
      kernels.positive_range(values.data(), count, low, high);
      EXPECT_EQ(low, lowest);
      EXPECT_EQ(high, highest);
    }
}

struct LogCase {
  std::vector<std::int32_t> bins, known, columns, above;
  std::size_t width = 0;

  LogCase(std::size_t count, unsigned seed, std::int32_t spread) : width(count) {
    std::mt19937 random(seed);
    const auto fill = [&](std::vector<std::int32_t>& numbers, std::size_t size) {
      numbers.resize(size);
      for (auto& n : numbers) n = static_cast<std::int32_t>(random() % static_cast<unsigned>(2 * spread)) - spread;
    };
    fill(bins, count);
    for (auto& bin : bins) bin = random() % 20 == 0 ? -1 : std::abs(bin);
    fill(known, count);
    fill(columns, count);
    fill(above, kLogRowsAbove * count);
  }
  LogRow row(bool wide) const {
    LogRow r;
    r.row_mean = -17;
    r.column_means = columns.data();
    r.known = known.data();
    r.above = above.data() + (kLogRowsAbove - 1) * width;
    r.width = width;
    r.shares[0] = 60, r.shares[1] = -30, r.shares[2] = 9;
    r.wide = wide;
    return r;
  }
};

TEST(LogKernels, AreThoseOfALoop) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : kCounts)
      for (const std::int32_t spread : {300, 1 << 17}) {
        const auto& kernels = tensor_log_kernels(level);
        const LogCase given(count, 15, spread);
        std::int64_t sum = 0;
        std::size_t regular = 0;
        std::vector<std::int32_t> sums(count, 3), wanted_sums(count, 3);
        std::vector<std::uint32_t> counts(count, 1), wanted_counts(count, 1);
        std::vector<std::int16_t> narrow(count), wanted_narrow(count);
        std::int32_t most = 0;
        for (std::size_t i = 0; i < count; ++i) {
          if (given.bins[i] < 0) continue;
          const std::int32_t x = 4 * given.bins[i] - given.known[i];
          sum += x - given.columns[i];
          ++regular;
          wanted_sums[i] += x + 17;
          ++wanted_counts[i];
          wanted_narrow[i] = static_cast<std::int16_t>(std::clamp(x + 17 - given.columns[i], -16384, 16384));
          most = std::max(most, std::abs(std::int32_t{wanted_narrow[i]}));
        }
        std::size_t found = 0;
        EXPECT_EQ(kernels.sum(given.bins.data(), given.known.data(), given.columns.data(), count, found), sum);
        EXPECT_EQ(found, regular);
        kernels.add_columns(given.bins.data(), given.known.data(), -17, count, sums.data(), counts.data());
        EXPECT_EQ(sums, wanted_sums);
        EXPECT_EQ(counts, wanted_counts);
        EXPECT_EQ(kernels.narrow(given.bins.data(), given.known.data(), -17, given.columns.data(), count, 16384,
                                 narrow.data()),
                  most);
        EXPECT_EQ(narrow, wanted_narrow);
        std::int64_t product = 0;
        const std::size_t few = std::min<std::size_t>(count, 16);
        for (std::size_t i = 0; i < few; ++i) product += std::int64_t{narrow[i]} * narrow[few - 1 - i];
        const std::vector<std::int16_t> turned(narrow.rend() - static_cast<std::ptrdiff_t>(few), narrow.rend());
        EXPECT_EQ(kernels.product(narrow.data(), turned.data(), few), product);

        for (const bool wide : {false, true}) {
          if (!wide && spread > 1000) continue;
          const LogRow row = given.row(wide);
          std::vector<std::int32_t> residuals = given.bins, deviations(count);
          kernels.residuals(row, count, residuals.data(), deviations.data());
          std::vector<std::int32_t> bins = residuals, deviations_again(count);
          for (std::size_t i = 0; i < count; ++i) {
            const std::int32_t plain = -17 + given.columns[i] + given.known[i];
            std::int64_t part = 32;
            for (std::size_t a = 0; a < kLogRowsAbove; ++a)
              part += std::int64_t{row.shares[a]} * given.above[(kLogRowsAbove - 1 - a) * count + i];
            const std::int32_t predicted = (plain + static_cast<std::int32_t>(part >> 6) + 2) >> 2;
            const bool special = given.bins[i] < 0;
            ASSERT_EQ(residuals[i], special ? 0 : given.bins[i] - predicted) << isa_name(level);
            ASSERT_EQ(deviations[i], special ? 0 : 4 * given.bins[i] - plain);
          }
          const auto there = static_cast<std::uint32_t>(spread) / 2;
          const bool inside = kernels.bins(row, count, there, bins.data(), deviations_again.data());
          bool all = true;
          for (std::size_t i = 0; i < count; ++i) {
            if (given.bins[i] < 0) continue;  // its bin is that of residual 0, which nothing is said of
            const bool is_there = static_cast<std::uint32_t>(given.bins[i]) < there;
            ASSERT_EQ(bins[i], is_there ? given.bins[i] : 0);
            if (is_there) {
              ASSERT_EQ(deviations_again[i], deviations[i]);
            }
            all = all && is_there;
          }
          if (inside) {
            EXPECT_TRUE(all);
          }
        }
      }
}

/// What bound_check.cpp asks of each element.
bool keeps(double bound, std::uint32_t was, std::uint32_t is) {
  if (was == is) return true;
  const auto number = [](std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  return is_finite_pattern(was) && is_finite_pattern(is) && (was & 0x7fffffffu) != 0 &&
         std::abs(number(is) - number(was)) < bound;
}

TEST(QuickCheck, SaysYesExactlyWhereAllElementsKeepTheBound) {
  constexpr std::size_t kElems = 100;
  std::mt19937 random(16);
  for (unsigned round = 0; round < 600; ++round) {
    Bytes values = make_floats(kElems, round, 1.0f, false);
    Bytes decoded = values;
    Bytes second = make_floats(kElems, round + 1000, 1.0f, true);
    const bool odd = round % 2 == 0;
    for (std::size_t i = 0; i < kElems; ++i) {
      const std::uint32_t bits = bits_at(values, i);
      if (!is_finite_pattern(bits) || (bits & 0x7fffffffu) == 0) continue;
      const float moved = float_at(values, i) + 1e-3f * (static_cast<float>(random() % 2000) / 1000 - 1);
      std::memcpy(decoded.data() + 4 * i, &moved, 4);
    }
    if (odd) {  // one element that may or may not be wrong
      const std::size_t at = random() % kElems;
      constexpr std::array<std::uint32_t, 5> kPatterns{0, 0x80000000u, 0x7fc00000u, 0x3f800000u, 0x7f800000u};
      const std::uint32_t pattern = kPatterns[random() % kPatterns.size()];
      std::memcpy((random() % 2 == 0 ? values : decoded).data() + 4 * at, &pattern, 4);
    }
    bool steps = true;
    bool updates = true;
    double absolute = 0;
    double relative = 0;
    for (std::size_t i = 0; i < kElems; ++i) {
      const std::uint32_t was = bits_at(values, i), is = bits_at(decoded, i);
      steps = steps && keeps(2e-3, was, is);
      if (was == is) continue;
      const double off = std::abs(static_cast<double>(float_at(decoded, i)) - static_cast<double>(float_at(values, i)));
      const double v = static_cast<double>(float_at(second, i));
      updates = updates && keeps(1e30, was, is) && is_positive_pattern(bits_at(second, i)) && off * off <= 1e-2 * v;
      absolute = std::max(absolute, off);
      relative = std::max(relative, off * off / v);
    }
    for (const IsaLevel level : levels()) {
      CheckWorst worst;
      ASSERT_EQ(bound_check_kernels(level).steps(2e-3, values.data(), decoded.data(), kElems, worst), steps) << round;
      if (steps) {
        EXPECT_EQ(worst.absolute, absolute);
      }
      CheckWorst update;
      ASSERT_EQ(bound_check_kernels(level).updates(1e-2, values.data(), decoded.data(), second.data(), kElems, update),
                updates);
      if (updates) {
        EXPECT_EQ(update.relative, relative);
      }
    }
  }
}

TEST(QuickCheck_Logs, SaysYesExactlyWhereAllRatiosAreInside) {
  constexpr std::size_t kElems = 64;
  std::mt19937 random(17);
  unsigned yes = 0;
  for (unsigned round = 0; round < 400; ++round) {
    Bytes values = make_floats(kElems, round, 1.0f, true);
    Bytes decoded = values;
    bool good = true;
    double most = 0;
    for (std::size_t i = 0; i < kElems; ++i) {
      if (is_positive_pattern(bits_at(values, i)) && bits_at(values, i) > 0x01000000u && random() % 8 != 0) {
        const float moved = float_at(values, i) * (1 + 0.05f * (static_cast<float>(random() % 2001) / 1000 - 1));
        std::memcpy(decoded.data() + 4 * i, &moved, 4);
      }
      const std::uint32_t was = bits_at(values, i), is = bits_at(decoded, i);
      if (was == is) continue;
      if (!is_positive_pattern(was) || !is_positive_pattern(is)) {
        good = false;
        continue;
      }
      const double a = static_cast<double>(float_at(values, i)), b = static_cast<double>(float_at(decoded, i));
      most = std::max(most, std::max(a, b) / std::min(a, b));
    }
    const double ratio = round % 2 == 0 ? 1.053 : 1.02;
    good = good && most <= ratio;
    yes += good ? 1 : 0;
    for (const IsaLevel level : levels()) {
      CheckWorst worst;
      ASSERT_EQ(bound_check_kernels(level).logs(ratio, values.data(), decoded.data(), kElems, worst), good) << round;
      if (good) {
        EXPECT_EQ(worst.relative, most);
      }
    }
  }
  EXPECT_GT(yes, 20u);
}

}  // namespace
}  // namespace quern::kernels

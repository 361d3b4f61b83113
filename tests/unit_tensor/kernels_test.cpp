// Kernels of byte planes: each instruction set against plain code of the test's own, and the rANS coder of each against
// that of all others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/entropy/frequency_table.h"
#include "kernels/tensor/cpu/planes.h"
#include "tests/unit_tensor/tensor_cases.h"

namespace quern::kernels {
namespace {

using codec::tensor::Bytes;

std::vector<IsaLevel> levels() {
  std::vector<IsaLevel> all;
  for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512})
    if (isa_available(level)) all.push_back(level);
  return all;
}

std::uint64_t word_at(const Bytes& bytes, std::size_t i, unsigned width) {
  std::uint64_t word = 0;
  for (unsigned k = 0; k < width; ++k) word |= std::uint64_t{bytes[i * width + k]} << (8 * k);
  return word;
}

TEST(PlaneKernels_Split, PlanesAreTheBytesOfRotatedWords) {
  for (const IsaLevel level : levels())
    for (const unsigned width : {1u, 2u, 4u, 8u})
      for (const std::size_t count : {1, 31, 1024, 1027, 5000})
        for (const bool rotate : {false, true}) {
          std::mt19937 random(7);
          Bytes elements(count * width);
          for (auto& byte : elements) byte = static_cast<std::uint8_t>(random());
          std::vector<Bytes> planes(width, Bytes(count));
          std::uint8_t* to[kMostPlanes];
          const std::uint8_t* from[kMostPlanes];
          for (unsigned k = 0; k < width; ++k) from[k] = to[k] = planes[k].data();
          const PlaneKernels& kernels = plane_kernels(level);
          kernels.split(elements.data(), count, width, rotate, to);
          for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t word = word_at(elements, i, width);
            if (rotate) word = word << 1 | (word >> (8 * width - 1) & 1);
            for (unsigned k = 0; k < width; ++k)
              ASSERT_EQ(planes[k][i], static_cast<std::uint8_t>(word >> (8 * k))) << isa_name(level) << ' ' << i;
          }
          Bytes back(count * width);
          kernels.join(from, count, width, rotate, back.data());
          ASSERT_EQ(back, elements) << isa_name(level) << " width " << width;
        }
}

TEST(PlaneKernels_Subtract, AddsBackOnEverySet) {
  for (const unsigned width : {1u, 2u, 4u, 8u})
    for (const float scale : {1.0f, 0.95f, 0x1p-8f, 2.0f}) {
      const std::size_t count = 3001;
      std::mt19937 random(9);
      Bytes elements(count * width);
      Bytes reference(count * width);
      for (auto& byte : elements) byte = static_cast<std::uint8_t>(random());
      for (auto& byte : reference) byte = static_cast<std::uint8_t>(random());
      Bytes first;
      for (const IsaLevel level : levels()) {
        Bytes differences(count * width);
        plane_kernels(level).subtract(elements.data(), reference.data(), count, width, {scale}, differences.data());
        if (first.empty()) first = differences;
        ASSERT_EQ(differences, first) << isa_name(level);
        plane_kernels(level).add(differences.data(), reference.data(), count, width, {scale});
        ASSERT_EQ(differences, elements) << isa_name(level);
      }
    }
}

TEST(PlaneKernels_Subtract, ScalesOrdinaryReferencesAlone) {
  const float base[] = {1.0f, -3.0f, 0x1p-112f, 0x1p-111f, 0x1p-140f, 0.0f};
  const float known[] = {0.5f, -1.5f, 0x1p-112f, 0x1p-112f, 0x1p-140f, 0.0f};
  for (const IsaLevel level : levels()) {
    Bytes from(sizeof(base)), differences(sizeof(base));
    std::memcpy(from.data(), base, sizeof(base));
    Bytes values(sizeof(known));
    std::memcpy(values.data(), known, sizeof(known));
    plane_kernels(level).subtract(values.data(), from.data(), 6, 4, {0.5f}, differences.data());
    EXPECT_EQ(differences, Bytes(sizeof(base), 0)) << isa_name(level);
  }
}

TEST(PlaneKernels_Pack, KeepsTheBitsOfTheMaskOnly) {
  for (const IsaLevel level : levels())
    for (const std::size_t count : {1, 7, 8, 64, 1003})
      for (const unsigned mask : {1u, 0x80u, 0x5au, 0xfeu, 0x7fu}) {
        std::mt19937 random(3);
        const auto fixed = static_cast<std::uint8_t>(0xa5 & ~mask);
        Bytes symbols(count);
        for (auto& symbol : symbols) symbol = static_cast<std::uint8_t>((random() & mask) | fixed);
        const std::size_t bytes = packed_bytes(count, static_cast<unsigned>(std::popcount(mask)));
        Bytes packed(bytes + 8);
        const PlaneKernels& kernels = plane_kernels(level);
        EXPECT_EQ(kernels.pack(symbols.data(), count, static_cast<std::uint8_t>(mask), packed.data()),
                  packed.data() + bytes);
        // Exactly the bytes it may read.
        const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[bytes]);
        std::copy_n(packed.begin(), bytes, exact.get());
        Bytes back(count);
        kernels.unpack(exact.get(), count, static_cast<std::uint8_t>(mask), fixed, back.data());
        EXPECT_EQ(back, symbols) << isa_name(level) << ' ' << count << ' ' << mask;
        std::uint64_t first_bits = 0;
        for (unsigned bit = 0, to = 0; bit < 8; ++bit)
          if ((mask >> bit & 1) != 0) first_bits |= std::uint64_t{symbols[0] >> bit & 1u} << to++;
        const unsigned low = (1u << std::popcount(mask)) - 1;
        EXPECT_EQ(exact[0] & low, first_bits) << isa_name(level);
        EXPECT_EQ(kernels.varying_bits(symbols.data(), count) & ~mask, 0);
      }
}

TEST(PlaneKernels_Classify, CountsThresholdsNotAbove) {
  for (const IsaLevel level : levels()) {
    const Bytes elements = codec::tensor::make_values(codec::tensor::ElementType::f32, 2500, "weights");
    const std::uint8_t thresholds[] = {110, 118, 121};
    Bytes classes(2500);
    plane_kernels(level).classify(elements.data(), 2500, 4, 23, thresholds, 3, classes.data());
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto known = static_cast<std::uint8_t>(word_at(elements, i, 4) >> 23);
      ASSERT_EQ(classes[i], (known >= 110) + (known >= 118) + (known >= 121)) << i;
    }
  }
}

/// Symbols with a peak, tables for each context, and what one set makes of them.
struct Coded {
  Bytes bytes;  ///< words of all parts
  std::vector<std::size_t> ends;
  std::vector<std::uint32_t> states;
};

class RansCase {
 public:
  RansCase(std::size_t count, LaneContext source, int spread) : count_(count), source_(source) {
    std::mt19937 random(static_cast<unsigned>(count) + 5);
    symbols_.resize(count);
    for (auto& symbol : symbols_) {
      int value = 100;
      for (int k = 0; k < spread && (random() & 1) != 0; ++k) ++value;
      symbol = static_cast<std::uint8_t>(spread > 255 ? random() : value);
    }
    contexts_.resize(count);
    const std::size_t contexts = source == LaneContext::none ? 1 : 3;
    if (source == LaneContext::given) {
      for (auto& context : contexts_) context = static_cast<std::uint8_t>(random() % 3);
    }
    if (source == LaneContext::previous) {
      const std::size_t groups = lane_part_groups(count);
      for (std::size_t g = 0; g * kRansLanes < count; ++g) {
        const bool first = g == 0 || (groups > 0 && g % groups == 0 && g / groups < lane_parts(count));
        unsigned sum = 0;
        for (std::size_t i = 0; i < kRansLanes && !first; ++i) sum += symbols_[(g - 1) * kRansLanes + i];
        contexts_[g] = static_cast<std::uint8_t>((sum >= kThresholds[0]) + (sum >= kThresholds[1]));
      }
    }
    encode_.reset(new LaneEncodeTable[contexts]());
    decode_.reset(new LaneDecodeTable[contexts]());
    for (std::size_t c = 0; c < contexts; ++c) {
      Counts counts{};
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t context = source == LaneContext::none       ? 0
                                    : source == LaneContext::previous ? contexts_[i / kRansLanes]
                                                                      : contexts_[i];
        if (context == c) ++counts[symbols_[i]];
      }
      if (std::all_of(counts.begin(), counts.end(), [](std::uint32_t n) { return n == 0; })) counts[0] = 1;
      Frequencies frequencies;
      normalize_counts<kLaneSumBits>(counts, frequencies);
      std::uint32_t start = 0;
      for (unsigned s = 0; s < 256; ++s) {
        if (frequencies[s] > 0) set_lane_symbol(encode_[c], s, frequencies[s], start);
        for (std::uint32_t k = 0; k < frequencies[s]; ++k)
          decode_[c].entries[start + k] = std::uint32_t{frequencies[s]} << 20 | k << 8 | s;
        start += frequencies[s];
      }
    }
  }

  Coded encode(IsaLevel level, bool windowed = false) const {
    const std::size_t parts = lane_parts(count_);
    LaneSink sinks[kMostLaneParts];
    std::vector<std::vector<std::uint16_t>> words(parts, std::vector<std::uint16_t>(count_ + 32));
    for (std::size_t p = 0; p < parts; ++p) {
      sinks[p].words = words[p].data() + words[p].size();
      std::fill(std::begin(sinks[p].states), std::end(sinks[p].states), kLaneFloor);
    }
    LaneEncodeJob job{symbols_.data(), count_, encode_.get(), source_, contexts_.data(), sinks};
    job.windowed = windowed;
    job.window = 70;
    plane_kernels(level).encode(job);
    Coded coded;
    for (std::size_t p = 0; p < parts; ++p) {
      for (const std::uint16_t* at = sinks[p].words; at != words[p].data() + words[p].size(); ++at) {
        coded.bytes.push_back(static_cast<std::uint8_t>(*at));
        coded.bytes.push_back(static_cast<std::uint8_t>(*at >> 8));
      }
      coded.ends.push_back(coded.bytes.size());
      coded.states.insert(coded.states.end(), std::begin(sinks[p].states), std::end(sinks[p].states));
    }
    return coded;
  }

  /// True when all was used up; the symbols are compared too when `expect` is set.
  bool decode(IsaLevel level, const Coded& coded, bool expect) const {
    LaneSource sources[kMostLaneParts];
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[coded.bytes.size() + 1]);
    std::copy(coded.bytes.begin(), coded.bytes.end(), exact.get());
    std::size_t begin = 0;
    for (std::size_t p = 0; p < coded.ends.size(); ++p) {
      sources[p].at = exact.get() + begin;
      sources[p].end = exact.get() + coded.ends[p];
      begin = coded.ends[p];
      std::copy_n(coded.states.begin() + static_cast<std::ptrdiff_t>(p * kRansLanes), kRansLanes, sources[p].states);
    }
    Bytes symbols(count_);
    LaneDecodeJob job;
    job.symbols = symbols.data();
    job.count = count_;
    job.tables = decode_.get();
    job.source = source_;
    job.contexts = contexts_.data();
    std::fill(std::begin(job.thresholds), std::end(job.thresholds), std::uint16_t{0xffff});
    if (source_ == LaneContext::previous) std::copy_n(kThresholds, 2, job.thresholds);
    job.parts = sources;
    job.readable_end = exact.get() + coded.bytes.size();
    const bool good = plane_kernels(level).decode(job);
    if (expect) {
      EXPECT_EQ(symbols, symbols_) << isa_name(level) << ' ' << count_;
    }
    return good;
  }

 private:
  static constexpr std::uint16_t kThresholds[] = {3225, 3232};
  std::size_t count_;
  LaneContext source_;
  Bytes symbols_;
  Bytes contexts_;
  std::unique_ptr<LaneEncodeTable[]> encode_;
  std::unique_ptr<LaneDecodeTable[]> decode_;
};

TEST(PlaneKernels_Rans, EverySetWritesTheSameAndReadsIt) {
  for (const LaneContext source : {LaneContext::none, LaneContext::previous, LaneContext::given})
    for (const std::size_t count : {1, 31, 32, 33, 1000, 40000, 65536, 131103})
      for (const int spread : {0, 8, 256}) {
        const RansCase one(count, source, spread);
        const Coded first = one.encode(IsaLevel::baseline);
        for (const IsaLevel level : levels()) {
          const Coded coded = one.encode(level, level != IsaLevel::baseline);
          ASSERT_EQ(one.encode(level, false).bytes, first.bytes) << isa_name(level) << ' ' << count << ' ' << spread;
          ASSERT_EQ(coded.bytes, first.bytes) << isa_name(level) << ' ' << count << ' ' << spread;
          ASSERT_EQ(coded.states, first.states) << isa_name(level) << ' ' << count;
          ASSERT_TRUE(one.decode(level, coded, true)) << isa_name(level) << ' ' << count;
        }
      }
}

TEST(PlaneKernels_Rans, DamageIsNoticedOrHarmless) {
  const RansCase one(40000, LaneContext::previous, 8);
  const Coded coded = one.encode(IsaLevel::baseline);
  for (const IsaLevel level : levels()) {
    std::mt19937 random(2);
    std::size_t noticed = 0;
    for (int trial = 0; trial < 60; ++trial) {
      Coded damaged = coded;
      if (trial % 3 == 0) {
        damaged.bytes[random() % damaged.bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
      } else if (trial % 3 == 1) {
        damaged.states[random() % damaged.states.size()] ^= 0x20;
      } else {
        damaged.bytes.resize(damaged.bytes.size() - 2 * (1 + random() % 20));
        damaged.ends.back() = damaged.bytes.size();
      }
      noticed += one.decode(level, damaged, false) ? 0 : 1;
    }
    EXPECT_EQ(noticed, 60u) << isa_name(level);
  }
}

}  // namespace
}  // namespace quern::kernels

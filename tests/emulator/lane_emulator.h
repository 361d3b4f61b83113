// Execution model for tests: 32 lanes as a warp runs them. Every operation visits its lanes in a new random order, so
// code that leans on one order shows; what was never written is poison and reading it is counted; scans and shuffles go
// in the steps of a warp. Accesses to watched memory by several lanes without a sync() between them are counted as
// races, unless all of them read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/lanes.h"

namespace quern::testing {

/// What the emulator of this thread knows. Not for use by several threads at once.
class EmulatorState {
 public:
  static EmulatorState& instance() {
    static thread_local EmulatorState state;
    return state;
  }
  /// Starts anew: order of lanes and poison follow from the seed.
  void reset(std::uint64_t seed) {
    random_.seed(seed);
    poison_reads_ = 0;
    races_ = 0;
    watch(nullptr, 0);
  }
  std::uint64_t poison_reads() const { return poison_reads_; }
  void count_poison_read() { ++poison_reads_; }
  std::uint64_t random() { return random_(); }

  /// Watches this memory, nothing else, from now on.
  void watch(const void* begin, std::size_t bytes) {
    watched_ = static_cast<const std::uint8_t*>(begin);
    cells_.assign(bytes, {});
    epoch_ = 1;
  }
  void sync() { ++epoch_; }
  std::uint64_t races() const { return races_; }
  /// Lane kEveryLane: all of them.
  void note_read(const void* at, std::size_t bytes, std::size_t lane) {
    for_watched(at, bytes, [&](Cell& cell) {
      if (cell.written == epoch_ && cell.writer != lane) ++races_;
      cell.reader = static_cast<std::uint8_t>(cell.read == epoch_ && cell.reader != lane ? kEveryLane : lane);
      cell.read = epoch_;
    });
  }
  void note_write(const void* at, std::size_t bytes, std::size_t lane) {
    for_watched(at, bytes, [&](Cell& cell) {
      if ((cell.written == epoch_ && cell.writer != lane) || (cell.read == epoch_ && cell.reader != lane)) ++races_;
      cell.written = epoch_;
      cell.writer = static_cast<std::uint8_t>(lane);
    });
  }
  static constexpr std::size_t kEveryLane = 255;

  /// The lanes in a new order.
  std::array<std::uint8_t, kernels::kLanes> order() {
    std::array<std::uint8_t, kernels::kLanes> lanes;
    for (unsigned l = 0; l < kernels::kLanes; ++l) lanes[l] = static_cast<std::uint8_t>(l);
    std::uint64_t bits = 0;
    for (unsigned l = kernels::kLanes; l > 1; --l) {
      if (l % 8 == 0) bits = random_();
      std::swap(lanes[l - 1], lanes[(bits & 0xff) % l]);
      bits >>= 8;
    }
    return lanes;
  }

 private:
  /// Who touched a byte last, and between which syncs.
  struct Cell {
    std::uint32_t written = 0;
    std::uint32_t read = 0;
    std::uint8_t writer = 0;
    std::uint8_t reader = 0;
  };
  template <class F>
  void for_watched(const void* at, std::size_t bytes, F&& f) {
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(watched_);
    for (std::size_t i = 0; i < bytes; ++i)
      if (offset + i < cells_.size()) f(cells_[offset + i]);
  }

  std::mt19937_64 random_{1};
  std::uint64_t poison_reads_ = 0;
  std::uint64_t races_ = 0;
  std::uint32_t epoch_ = 1;
  const std::uint8_t* watched_ = nullptr;
  std::vector<Cell> cells_;
};

struct LaneEmulator {
  static constexpr unsigned kLanes = kernels::kLanes;

  /// Lanes hold poison until they are set.
  template <class T>
  class vec {
   public:
    vec() {
      if constexpr (std::is_arithmetic_v<T>) {
        for (T& value : values_) value = static_cast<T>(EmulatorState::instance().random());
      } else {
        for (T& value : values_) value = T{};
      }
    }
    T read(std::size_t lane) const {
      if ((written_ >> lane & 1) == 0) EmulatorState::instance().count_poison_read();
      return values_[lane];
    }
    void write(std::size_t lane, T value) {
      values_[lane] = value;
      written_ |= 1u << lane;
    }

   private:
    T values_[kLanes];
    std::uint32_t written_ = 0;
  };

  template <class F>
  static void rows(F&& f) {
    for (std::size_t r = 0; r < kernels::kRows; ++r) f(r);
  }
  template <class F>
  static void lanes(F&& f) {
    for (const std::size_t lane : EmulatorState::instance().order()) f(lane);
  }
  template <class T>
  static T get(const vec<T>& a, std::size_t lane) {
    return a.read(lane);
  }
  template <class T>
  static void set(vec<T>& a, std::size_t lane, T value) {
    a.write(lane, value);
  }

  template <class T, class F, class... V>
  static void map(vec<T>& out, F f, const V&... in) {
    lanes([&](std::size_t l) { out.write(l, f(in.read(l)...)); });
  }
  template <class T>
  static void shift_up(vec<T>& out, const vec<T>& a, const vec<T>& fill) {
    const vec<T> left = shuffle_up(a, 1);
    const T first = fill.read(0);
    lanes([&](std::size_t l) { out.write(l, l == 0 ? first : left.read(l)); });
  }
  template <class T, class F>
  static void zip_left(vec<T>& out, F f, const vec<T>& a, const vec<T>& fill) {
    vec<T> left;
    shift_up(left, a, fill);
    map(out, f, a, left);
  }
  template <class T, class F>
  static void zip_left_from_zero(vec<T>& out, F f, const vec<T>& a) {
    const vec<T> left = shuffle_up(a, 1);
    lanes([&](std::size_t l) { out.write(l, f(a.read(l), l == 0 ? T{0} : left.read(l))); });
  }
  template <class T, class F>
  static void zip_left_keep_two(vec<T>& out, F f, const vec<T>& a) {
    const vec<T> left = shuffle_up(a, 1);
    lanes([&](std::size_t l) { out.write(l, f(a.read(l), l < 2 ? T{0} : left.read(l))); });
  }

  static void minus_left(vec<std::uint32_t>& out, const vec<std::uint32_t>& a) {
    zip_left_from_zero(
        out, [](std::uint32_t current, std::uint32_t left) { return current - left; }, a);
  }
  static std::uint32_t gather_bytes(std::uint32_t v0, std::uint32_t v1, std::uint32_t v2, std::uint32_t v3,
                                    unsigned b) {
    const auto byte = [b](std::uint32_t v) { return v >> (8 * b) & 0xff; };
    return byte(v0) | byte(v1) << 8 | byte(v2) << 16 | byte(v3) << 24;
  }

  /// Five steps of doubling distance.
  template <class T>
  static void inclusive_scan(vec<T>& a) {
    for (unsigned distance = 1; distance < kLanes; distance *= 2) {
      const vec<T> left = shuffle_up(a, distance);
      lanes([&](std::size_t l) {
        if (l >= distance) a.write(l, static_cast<T>(a.read(l) + left.read(l)));
      });
    }
  }
  template <class T>
  static void scan_skipping_first(vec<T>& a) {
    vec<T> rest;
    lanes([&](std::size_t l) { rest.write(l, l == 0 ? T{0} : a.read(l)); });
    inclusive_scan(rest);
    lanes([&](std::size_t l) {
      if (l != 0) a.write(l, rest.read(l));
    });
  }
  template <class T>
  static void add_to_first(vec<T>& a, T value) {
    a.write(0, static_cast<T>(a.read(0) + value));
  }
  template <class T>
  static void add_first_of(vec<T>& a, const vec<T>& b) {
    a.write(0, static_cast<T>(a.read(0) + b.read(0)));
  }

  static std::uint32_t ballot(const vec<bool>& flag) {
    std::uint32_t mask = 0;
    lanes([&](std::size_t l) { mask |= (flag.read(l) ? 1u : 0u) << l; });
    return mask;
  }
  static bool any(const vec<bool>& flag) { return ballot(flag) != 0; }
  static std::uint32_t reduce_add(const vec<std::uint32_t>& a) {
    return reduce(a, [](std::uint32_t x, std::uint32_t y) { return x + y; });
  }
  static std::uint32_t reduce_min(const vec<std::uint32_t>& a) {
    return reduce(a, [](std::uint32_t x, std::uint32_t y) { return std::min(x, y); });
  }
  static std::uint32_t reduce_max(const vec<std::uint32_t>& a) {
    return reduce(a, [](std::uint32_t x, std::uint32_t y) { return std::max(x, y); });
  }
  template <class T>
  static T reduce_or(const vec<T>& a) {
    return reduce(a, [](T x, T y) { return static_cast<T>(x | y); });
  }
  template <class T>
  static void exclusive_scan(vec<T>& a) {
    const vec<T> own = a;
    inclusive_scan(a);
    lanes([&](std::size_t l) { a.write(l, static_cast<T>(a.read(l) - own.read(l))); });
  }
  template <class T>
  static T broadcast(const vec<T>& a, unsigned from) {
    return a.read(from % kLanes);
  }
  /// out[l] = a[from[l]], lanes counted modulo their number.
  template <class T>
  static void shuffle(vec<T>& out, const vec<T>& a, const vec<std::uint32_t>& from) {
    const vec<T> before = a;
    lanes([&](std::size_t l) { out.write(l, before.read(from.read(l) % kLanes)); });
  }
  /// out[l] = a[l+1]; the last lane keeps its own.
  template <class T>
  static void shift_down(vec<T>& out, const vec<T>& a) {
    const vec<T> before = a;
    lanes([&](std::size_t l) { out.write(l, before.read(l + 1 < kLanes ? l + 1 : l)); });
  }
  /// Four bytes of high:low, each chosen by three bits of a digit of the selector; bit 3 takes its sign eight times.
  static std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
    const std::uint64_t both = low | static_cast<std::uint64_t>(high) << 32;
    std::uint32_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t digit = selector >> (4 * i) & 15;
      std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (digit & 7))) & 0xff;
      if (digit >= 8) byte = byte >= 0x80 ? 0xff : 0;
      out |= byte << (8 * i);
    }
    return out;
  }
  /// The least and the greatest of three.
  static std::uint32_t least(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return std::min({a, b, c}); }
  static std::uint32_t greatest(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return std::max({a, b, c}); }
  static std::int32_t least_signed(std::int32_t a, std::int32_t b, std::int32_t c) { return std::min({a, b, c}); }
  /// For compilers of device code.
  template <class V>
  static void hold(V&) {}
  /// The low word of high:low, shifted down by the low five bits of `shift`.
  static std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
    return static_cast<std::uint32_t>((low | static_cast<std::uint64_t>(high) << 32) >> (shift & 31));
  }
  static void sync() { EmulatorState::instance().sync(); }

  /// Memory that lanes share, as one lane or all of them reach it.
  template <class T>
  static T load(const T* at, std::size_t lane) {
    EmulatorState::instance().note_read(at, sizeof(T), lane);
    return *at;
  }
  template <class T>
  static T load_same(const T* at) {
    EmulatorState::instance().note_read(at, sizeof(T), EmulatorState::kEveryLane);
    return *at;
  }
  template <class T>
  static void store(T* at, std::size_t lane, T value) {
    EmulatorState::instance().note_write(at, sizeof(T), lane);
    *at = value;
  }
  /// Bytes appended one by one: where, and appending the lowest of a word if `flag` is not 0.
  static std::uint8_t* append_at(std::uint8_t* base, std::uint32_t offset) { return base + offset; }
  static void append_if(std::uint32_t flag, std::uint8_t*& at, std::size_t lane, std::uint32_t word) {
    if (flag != 0) store(at++, lane, static_cast<std::uint8_t>(word));
  }
  /// Lanes that add to the same place do not race.
  static void add_to(std::uint32_t* at, std::size_t /*lane*/, std::uint32_t value) { *at += value; }
  /// Nor do those that change bits of the same word.
  static void set_bits(std::uint32_t* at, std::size_t /*lane*/, std::uint32_t bits) { *at |= bits; }
  static void flip_bits(std::uint32_t* at, std::size_t /*lane*/, std::uint32_t bits) { *at ^= bits; }
  static std::uint32_t fetch_add(std::uint32_t* at, std::size_t /*lane*/, std::uint32_t value) {
    const std::uint32_t before = *at;
    *at += value;
    return before;
  }
  /// Nor those that bring values of which the least or the greatest stays.
  static void lower_to(std::uint64_t* at, std::size_t /*lane*/, std::uint64_t value) { *at = std::min(*at, value); }
  static void raise_to(std::uint64_t* at, std::size_t /*lane*/, std::uint64_t value) { *at = std::max(*at, value); }

 private:
  /// Lane l gets lane l - distance; the first lanes keep their own.
  template <class T>
  static vec<T> shuffle_up(const vec<T>& a, unsigned distance) {
    vec<T> out;
    lanes([&](std::size_t l) { out.write(l, a.read(l >= distance ? l - distance : l)); });
    return out;
  }
  /// Butterfly: every lane ends with the same result.
  template <class T, class F>
  static T reduce(const vec<T>& a, F f) {
    vec<T> sum = a;
    for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
      const vec<T> before = sum;
      lanes([&](std::size_t l) { sum.write(l, f(before.read(l), before.read(l ^ distance))); });
    }
    return sum.read(0);
  }
};

}  // namespace quern::testing

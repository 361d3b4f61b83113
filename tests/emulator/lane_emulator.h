// Execution model for tests: 32 lanes as a warp runs them. Every operation visits its lanes in a new random order, so
// code that leans on one order shows; what was never written is poison and reading it is counted; scans and shuffles go
// in the steps of a warp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

#include "kernels/core/tile.h"

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
  }
  std::uint64_t poison_reads() const { return poison_reads_; }
  void count_poison_read() { ++poison_reads_; }
  std::uint64_t random() { return random_(); }

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
  std::mt19937_64 random_{1};
  std::uint64_t poison_reads_ = 0;
};

struct LaneEmulator {
  static constexpr unsigned kLanes = kernels::kLanes;

  /// Lanes hold poison until they are set.
  template <class T>
  class vec {
   public:
    vec() {
      for (T& value : values_) value = static_cast<T>(EmulatorState::instance().random());
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
  template <class T>
  static T reduce_or(const vec<T>& a) {
    return reduce(a, [](T x, T y) { return static_cast<T>(x | y); });
  }
  static void exclusive_scan(vec<std::uint32_t>& a) {
    const vec<std::uint32_t> own = a;
    inclusive_scan(a);
    lanes([&](std::size_t l) { a.write(l, a.read(l) - own.read(l)); });
  }
  template <class T>
  static T broadcast(const vec<T>& a, unsigned from) {
    return a.read(from % kLanes);
  }
  template <class T>
  static void gather(vec<T>& out, const vec<T>& a, const vec<std::uint32_t>& from) {
    const vec<T> before = a;
    lanes([&](std::size_t l) { out.write(l, before.read(from.read(l) % kLanes)); });
  }
  static void sync() {}

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

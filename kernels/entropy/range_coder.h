// Adaptive binary range coder of the mask: 32-bit range, 15-bit probabilities, integers only. Encoder and decoder have
// the same member functions, so that one description of a mask serves both directions. Models lie in the caller's
// memory and are called by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

inline constexpr unsigned kModelAges = 40;

/// Probability of a binary decision. Adapts fast while young; the last rate stays.
struct alignas(4) BitModel {
  std::uint16_t p;
  std::uint16_t age;

  /// Probability of a 0 in units of 2^-15, within [32, 2^15 - 32].
  [[gnu::always_inline]] constexpr std::uint32_t zero() const {
    return 32 + ((static_cast<std::uint32_t>(p) * 32704U) >> 16);
  }
  /// `rate`: of this age.
  [[gnu::always_inline]] constexpr void update(unsigned bit, std::uint32_t rate) {
    if (bit == 0) {
      p = static_cast<std::uint16_t>(p + (((65535U - p) * rate) >> 16));
    } else {
      p = static_cast<std::uint16_t>(p - ((p * rate) >> 16));
    }
    if (age + 1U < kModelAges) ++age;
  }
};
inline constexpr BitModel kFreshModel{32768, 0};

/// Share of the distance, in units of 2^-16, that the update of a model of that age moves its probability: 1/(age+1.5).
[[gnu::always_inline]] constexpr std::uint16_t model_rate(unsigned age) {
  return static_cast<std::uint16_t>(131072U / (2 * age + 3));
}

/// Models and the rates of all ages. Tables indexed at run time lie in memory that any execution model reaches.
template <unsigned kCount>
struct ModelTable {
  static constexpr unsigned kModels = kCount;
  BitModel models[kCount];
  std::uint16_t rates[kModelAges];
};

/// A table that one thread has for itself.
template <class Table>
class OwnModels {
 public:
  constexpr explicit OwnModels(Table& table) : table_(&table) {
    for (BitModel& model : table.models) model = kFreshModel;
    for (unsigned age = 0; age < kModelAges; ++age) table.rates[age] = model_rate(age);
  }
  [[gnu::always_inline]] constexpr BitModel load(unsigned model) const { return table_->models[model]; }
  [[gnu::always_inline]] constexpr void store(unsigned model, BitModel value) const { table_->models[model] = value; }
  [[gnu::always_inline]] constexpr std::uint32_t rate(unsigned age) const { return table_->rates[age]; }

 private:
  Table* table_;
};

/// Bytes of an encoder in memory of a fixed size; what does not fit is counted and lost.
class BoundedBytes {
 public:
  constexpr BoundedBytes(std::uint8_t* out, std::uint64_t capacity) : out_(out), capacity_(capacity) {}
  constexpr void put(std::uint8_t byte) {
    if (size_ < capacity_) out_[size_] = byte;
    ++size_;
  }
  /// Adds one to the number that the bytes make. It stays below 1, so there is a byte that is not 255.
  constexpr void carry() {
    if (size_ > capacity_) return;
    std::uint64_t i = size_;
    while (++out_[--i] == 0) {
    }
  }
  constexpr std::uint64_t size() const { return size_; }
  constexpr bool fits() const { return size_ <= capacity_; }

 private:
  std::uint8_t* out_;
  std::uint64_t capacity_;
  std::uint64_t size_ = 0;
};

/// Counts the bytes of an encoder; more than `most` are as bad as any.
class ByteCount {
 public:
  constexpr explicit ByteCount(std::uint64_t most) : most_(most) {}
  constexpr void put(std::uint8_t) { ++size_; }
  constexpr void carry() {}
  constexpr std::uint64_t size() const { return size_; }
  constexpr bool fits() const { return size_ <= most_; }

 private:
  std::uint64_t most_;
  std::uint64_t size_ = 0;
};

/// `Sink` takes the bytes: put, carry and fits as above. `finish` exactly once, at the end.
template <class Models, class Sink>
class RangeEncoder {
 public:
  static constexpr bool kDecodes = false;

  constexpr RangeEncoder(const Models& models, const Sink& sink) : models_(models), sink_(sink) {}

  constexpr unsigned bit(unsigned model, unsigned value) {
    BitModel m = models_.load(model);
    const std::uint32_t bound = (range_ >> 15) * m.zero();
    if (value == 0) {
      range_ = bound;
    } else {
      low_ += bound;
      range_ -= bound;
    }
    m.update(value, models_.rate(m.age));
    models_.store(model, m);
    normalize();
    return value;
  }

  /// `count` (1..8) equiprobable bits.
  constexpr unsigned direct(unsigned count, unsigned value) {
    range_ >>= count;
    low_ += static_cast<std::uint64_t>(range_) * value;
    normalize();
    return value;
  }

  /// One byte pins the interval: its length is at least 2^24, so that it holds a multiple of 2^24.
  constexpr void finish() {
    low_ += 0xFFFFFFU;
    emit();
  }

  /// False when there is no use in going on.
  constexpr bool good() const { return sink_.fits(); }
  constexpr const Sink& sink() const { return sink_; }

 private:
  constexpr void normalize() {
    while (range_ < (1U << 24)) {
      emit();
      range_ <<= 8;
    }
  }
  constexpr void emit() {
    if ((low_ >> 32) != 0) sink_.carry();
    sink_.put(static_cast<std::uint8_t>(low_ >> 24));
    low_ = (low_ & 0xFFFFFFU) << 8;
  }

  Models models_;
  Sink sink_;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
};

/// Reads any bytes without leaving them: past the end it reads zeros, and complete() tells whether that was in order.
template <class Models>
class RangeDecoder {
 public:
  static constexpr bool kDecodes = true;

  constexpr RangeDecoder(const Models& models, const std::uint8_t* in, std::uint64_t bytes)
      : models_(models), in_(in), bytes_(bytes) {
    for (int i = 0; i < 4; ++i) code_ = (code_ << 8) | next();
    valid_ = code_ < range_;
  }

  /// The second argument is there for symmetry with the encoder.
  constexpr unsigned bit(unsigned model, unsigned = 0) {
    BitModel m = models_.load(model);
    const std::uint32_t bound = (range_ >> 15) * m.zero();
    unsigned value = 0;
    if (code_ < bound) {
      range_ = bound;
    } else {
      code_ -= bound;
      range_ -= bound;
      value = 1;
    }
    m.update(value, models_.rate(m.age));
    models_.store(model, m);
    normalize();
    return value;
  }

  constexpr unsigned direct(unsigned count, unsigned = 0) {
    range_ >>= count;
    std::uint32_t value = code_ / range_;
    if (value >> count != 0) {
      valid_ = false;
      value = (1U << count) - 1;
      code_ = 0;
    } else {
      code_ -= value * range_;
    }
    normalize();
    return value;
  }

  /// True while the bytes read so far can belong to a whole code: the last one read may be three past the end.
  constexpr bool good() const { return valid_ && at_ <= bytes_ + 3; }
  constexpr bool valid() const { return valid_; }
  constexpr bool has_more() const { return at_ < bytes_ + 3; }

 private:
  constexpr void normalize() {
    while (range_ < (1U << 24)) {
      code_ = (code_ << 8) | next();
      range_ <<= 8;
    }
  }
  constexpr std::uint32_t next() {
    const std::uint32_t byte = at_ < bytes_ ? in_[at_] : 0;
    ++at_;
    return byte;
  }

  Models models_;
  const std::uint8_t* in_;
  std::uint64_t bytes_;
  std::uint64_t at_ = 0;
  std::uint32_t code_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
  bool valid_ = true;
};

}  // namespace quern::kernels

// Binary decisions with a probability that the caller brings, on the range coder of kernels/entropy. Writer and reader
// have the same member functions, so that one description of a stream serves both directions.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "kernels/entropy/range_coder.h"

namespace quern::codec::lidar {

/// The range coder's model with a probability from outside. It does not adapt.
class GivenOdds {
 public:
  explicit GivenOdds(const std::uint16_t* zero) : zero_(zero) {}
  kernels::BitModel load(unsigned) const { return {*zero_, kernels::kModelAges - 1}; }
  void store(unsigned, kernels::BitModel) const {}
  std::uint32_t rate(unsigned) const { return 0; }

 private:
  const std::uint16_t* zero_;
};

/// Bytes of a range encoder in a vector.
class VectorSink {
 public:
  explicit VectorSink(Vector<std::uint8_t>* out) : out_(out), start_(out->size()) {}
  void put(std::uint8_t byte) { out_->push_back(byte); }
  void carry() {
    for (std::size_t i = out_->size(); i > start_ && ++(*out_)[--i] == 0;) {
    }
  }
  bool fits() const { return true; }

 private:
  Vector<std::uint8_t>* out_;
  std::size_t start_;
};

/// Appends to a vector. `finish` exactly once. May throw std::bad_alloc.
class BitWriter {
 public:
  static constexpr bool kDecodes = false;
  explicit BitWriter(Vector<std::uint8_t>& out) : encoder_(GivenOdds(&zero_), VectorSink(&out)) {}
  BitWriter(const BitWriter&) = delete;
  BitWriter& operator=(const BitWriter&) = delete;

  /// `one`: probability of a one in units of 2^-16, within [1, 65535].
  unsigned bit(std::uint32_t one, unsigned value) {
    zero_ = static_cast<std::uint16_t>(65536 - one);
    return encoder_.bit(0, value);
  }
  /// `count` (1..8) equiprobable bits.
  unsigned direct(unsigned count, unsigned value) { return encoder_.direct(count, value); }
  void finish() { encoder_.finish(); }
  bool good() const { return true; }

 private:
  std::uint16_t zero_ = 32768;
  kernels::RangeEncoder<GivenOdds, VectorSink> encoder_;
};

/// Reads any bytes without leaving them; `good` says whether those read so far can belong to a whole code.
class BitReader {
 public:
  static constexpr bool kDecodes = true;
  explicit BitReader(std::span<const std::uint8_t> in) : decoder_(GivenOdds(&zero_), in.data(), in.size()) {}
  BitReader(const BitReader&) = delete;
  BitReader& operator=(const BitReader&) = delete;

  unsigned bit(std::uint32_t one, unsigned = 0) {
    zero_ = static_cast<std::uint16_t>(65536 - one);
    return decoder_.bit(0);
  }
  unsigned direct(unsigned count, unsigned = 0) { return decoder_.direct(count); }
  bool good() const { return decoder_.good(); }
  bool has_more() const { return decoder_.has_more(); }

 private:
  std::uint16_t zero_ = 32768;
  kernels::RangeDecoder<GivenOdds> decoder_;
};

}  // namespace quern::codec::lidar

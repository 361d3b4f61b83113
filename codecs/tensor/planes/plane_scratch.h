// Memory of one chunk's planes, cut out of one buffer.
#pragma once

#include <span>

#include "codecs/tensor/planes/plane_code.h"

namespace quern::codec::tensor {

struct PlaneScratch {
  static constexpr std::size_t kSlack = 64;  ///< behind each piece: vectors write and read beyond

  std::uint8_t* planes[kernels::kMostPlanes] = {};
  std::uint8_t* contexts = nullptr;  ///< a byte a symbol
  std::uint16_t* sums = nullptr;     ///< one each 32 symbols
  std::uint16_t* words = nullptr;    ///< encoder: two bytes a symbol, and room before each part
  kernels::LaneEncodeTable* encode_tables = nullptr;
  kernels::LaneDecodeTable* decode_tables = nullptr;

  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + kSlack + 63) / 64 * 64; }
  static constexpr std::size_t words_of(std::size_t count) { return count + kernels::kMostLaneParts * kSlack; }

  static std::size_t decoder_bytes(std::size_t count, unsigned width) {
    return (width + 1) * padded(count) + padded(kernels::kMostLaneContexts * sizeof(kernels::LaneDecodeTable));
  }
  static std::size_t encoder_bytes(std::size_t count, unsigned width) {
    return (width + 1) * padded(count) + padded(kernels::kMostLaneContexts * sizeof(kernels::LaneEncodeTable)) +
           padded(2 * (count / kernels::kRansLanes + 1)) + padded(2 * words_of(count));
  }

  /// Memory of as many bytes as the one or the other demands.
  static PlaneScratch for_decoder(std::span<std::uint8_t> memory, std::size_t count, unsigned width) {
    PlaneScratch scratch(memory, count, width);
    scratch.decode_tables = scratch.take<kernels::LaneDecodeTable>(kernels::kMostLaneContexts);
    return scratch;
  }
  static PlaneScratch for_encoder(std::span<std::uint8_t> memory, std::size_t count, unsigned width) {
    PlaneScratch scratch(memory, count, width);
    scratch.encode_tables = scratch.take<kernels::LaneEncodeTable>(kernels::kMostLaneContexts);
    scratch.sums = scratch.take<std::uint16_t>(count / kernels::kRansLanes + 1);
    scratch.words = scratch.take<std::uint16_t>(words_of(count));
    return scratch;
  }

 private:
  PlaneScratch(std::span<std::uint8_t> memory, std::size_t count, unsigned width) : at_(memory.data()) {
    for (unsigned k = 0; k < width; ++k) planes[k] = take<std::uint8_t>(count);
    contexts = take<std::uint8_t>(count);
  }
  template <class T>
  T* take(std::size_t count) {
    auto* const piece = reinterpret_cast<T*>(at_);
    at_ += padded(count * sizeof(T));
    return piece;
  }

  std::uint8_t* at_;
};

}  // namespace quern::codec::tensor

// Removing and restoring the zero bytes of a plane (128 bytes) on the CPU, for each instruction set the same result.
// compact and expand may touch up to 64 bytes beyond what they report; callers leave that slack.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

static_assert(std::endian::native == std::endian::little, "planes are handled as little-endian words");

inline constexpr std::size_t kPlaneSlack = 64;

template <class Isa>
struct PlaneBytes {
  static PlaneMap map(const std::uint32_t* plane) {
#if defined(__AVX512BW__)
    const auto* p = reinterpret_cast<const std::uint8_t*>(plane);
    const __m512i a = _mm512_loadu_si512(p);
    const __m512i b = _mm512_loadu_si512(p + 64);
    return {_mm512_test_epi8_mask(a, a), _mm512_test_epi8_mask(b, b)};
#elif defined(__AVX2__)
    const auto half = [](const std::uint32_t* p) {
      const __m256i zero = _mm256_setzero_si256();
      const auto mask = [&](const std::uint32_t* at) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
        return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, zero)));
      };
      return static_cast<std::uint64_t>(mask(p)) | static_cast<std::uint64_t>(mask(p + 8)) << 32;
    };
    return {half(plane), half(plane + 16)};
#else
    PlaneMap m;
    for (unsigned i = 0; i < 8; ++i) {
      m.low |= static_cast<std::uint64_t>(nonzero_bytes(word(plane, i))) << (8 * i);
      m.high |= static_cast<std::uint64_t>(nonzero_bytes(word(plane, i + 8))) << (8 * i);
    }
    return m;
#endif
  }

  /// Writes the bytes whose bits are set; returns the new end.
  static std::uint8_t* compact(const std::uint32_t* plane, const PlaneMap& m, std::uint8_t* out) {
#if defined(__AVX512VBMI2__)
    const auto* p = reinterpret_cast<const std::uint8_t*>(plane);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(m.low, _mm512_loadu_si512(p)));
    out += _mm_popcnt_u64(m.low);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(m.high, _mm512_loadu_si512(p + 64)));
    return out + _mm_popcnt_u64(m.high);
#else
    for (unsigned i = 0; i < 16; ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>((i < 8 ? m.low : m.high) >> (8 * (i % 8))) & 0xffu;
      if (bits == 0) continue;
      const std::uint64_t v = word(plane, i);
#if defined(__BMI2__)
      const std::uint64_t kept = _pext_u64(v, _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 0xff);
      std::memcpy(out, &kept, 8);
      out += count_bits(bits);
#else
      for (unsigned b = 0; b < 8; ++b) {
        *out = static_cast<std::uint8_t>(v >> (8 * b));
        out += (bits >> b) & 1;
      }
#endif
    }
    return out;
#endif
  }

  /// Inverse of compact: `in` holds as many bytes as bits are set (and slack behind); returns the new position.
  static const std::uint8_t* expand(const std::uint8_t* in, const PlaneMap& m, std::uint32_t* plane) {
#if defined(__AVX512VBMI2__)
    auto* p = reinterpret_cast<std::uint8_t*>(plane);
    _mm512_storeu_si512(p, _mm512_maskz_expand_epi8(m.low, _mm512_loadu_si512(in)));
    in += _mm_popcnt_u64(m.low);
    _mm512_storeu_si512(p + 64, _mm512_maskz_expand_epi8(m.high, _mm512_loadu_si512(in)));
    return in + _mm_popcnt_u64(m.high);
#else
    auto* p = reinterpret_cast<std::uint8_t*>(plane);
    for (unsigned i = 0; i < 16; ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>((i < 8 ? m.low : m.high) >> (8 * (i % 8))) & 0xffu;
      std::uint64_t v = 0;
#if defined(__BMI2__)
      std::memcpy(&v, in, 8);
      v = _pdep_u64(v, _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 0xff);
      in += count_bits(bits);
#else
      for (unsigned b = 0; b < 8; ++b) {
        const unsigned take = (bits >> b) & 1;
        v |= static_cast<std::uint64_t>(*in & (0u - take)) << (8 * b);
        in += take;
      }
#endif
      std::memcpy(p + 8 * i, &v, 8);
    }
    return in;
#endif
  }

 private:
  static std::uint64_t word(const std::uint32_t* plane, unsigned i) {
    std::uint64_t v;
    std::memcpy(&v, reinterpret_cast<const std::uint8_t*>(plane) + 8 * i, 8);
    return v;
  }
};

}  // namespace quern::kernels

// Blocks of elements through the quantizer and back.
#include "libcompress/pipeline/encode/prequantize.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/common/quantizers.h"
#include "libcompress/core/element_of.h"
#include "libcompress/core/quantizer_rules.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::uint64_t kTaskElems = UINT64_C(1) << 18;
constexpr std::uint64_t kBlockElems = 256;

template <class Q>
bool has_sign(typename Q::Bits bits) {
  if constexpr (Q::kHasSign) {
    return Q::sign(bits);
  } else {
    return false;
  }
}

/// The value of the element's code where that keeps the bound, else the element.
template <class Q>
typename Q::Bits prequantized(const Q& quantizer, typename Q::Bits bits) {
  typename Q::Word code = 0;
  if (!quantizer.encode(bits, code) && !quantizer.accepts_exactly(bits)) return bits;
  return quantizer.decode(code, has_sign<Q>(bits));
}

/// A block without branches, which compilers make vector code of; false when an element needs the exact decision.
template <class Q>
bool prequantize_block(const Q& quantizer, typename Q::Bits* bits, std::uint64_t count) {
  using Word = typename Q::Word;
  Word refused = 0;
  std::array<typename Q::Bits, kBlockElems> out;  // NOLINT: filled
  for (std::uint64_t i = 0; i < count; ++i) {
    Word code = 0;
    refused |= quantizer.encode(bits[i], code) ? Word{0} : Word{1};
    out[i] = quantizer.decode(code, has_sign<Q>(bits[i]));
  }
  if (refused != 0) return false;
  std::copy_n(out.data(), count, bits);
  return true;
}

template <class Q, class Element>
void prequantize_span(const Q& quantizer, std::span<const std::uint64_t> fill_bits, std::uint8_t* data,
                      std::uint64_t elems) {
  using Bits = typename Q::Bits;
  std::array<Bits, kBlockElems> block;  // NOLINT: filled
  for (std::uint64_t begin = 0; begin < elems; begin += kBlockElems) {
    const std::uint64_t count = std::min(kBlockElems, elems - begin);
    std::uint8_t* const at = data + begin * sizeof(Bits);
    std::memcpy(block.data(), at, static_cast<std::size_t>(count * sizeof(Bits)));
    if (!fill_bits.empty() || !prequantize_block(quantizer, block.data(), count)) {
      for (std::uint64_t i = 0; i < count; ++i)
        if (is_valid<Element>(block[i], fill_bits)) block[i] = prequantized(quantizer, block[i]);
    }
    std::memcpy(at, block.data(), static_cast<std::size_t>(count * sizeof(Bits)));
  }
}

}  // namespace

Status prequantize(DType dtype, const EnforcedBound& bound, std::span<const std::uint64_t> fill_bits,
                   std::uint8_t* data, std::uint64_t elems, TaskRunner& runner) {
  const QuantizerRules rules = quantizer_rules(dtype, bound);
  if (rules.kind == kernels::QuantizerKind::exact) return {};
  const auto tasks = static_cast<std::size_t>((elems + kTaskElems - 1) / kTaskElems);
  return run_tasks(runner, tasks, [&](std::size_t task) -> Status {
    const std::uint64_t first = task * kTaskElems;
    const std::uint64_t count = std::min(kTaskElems, elems - first);
    with_element(dtype, [&](auto element) {
      kernels::with_quantizer(element_of(dtype), rules.kind, [&]<class Q, class Exact>() {
        if constexpr (std::is_same_v<typename Q::Bits, typename decltype(element)::Bits>)
          prequantize_span<Q, decltype(element)>(kernels::make_quantizer<Q>(rules.params), fill_bits,
                                                 data + first * sizeof(typename Q::Bits), count);
      });
      return 0;
    });
    return {};
  });
}

}  // namespace quern

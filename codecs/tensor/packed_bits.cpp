// Lists of numbers in the Golomb code that suits them.
#include "codecs/tensor/packed_bits.h"

#include "kernels/common/bits.h"

namespace quern::codec::tensor {
namespace {

std::uint32_t code_of(std::int32_t number, std::int32_t center) {
  return kernels::zigzag(static_cast<std::uint32_t>(number) - static_cast<std::uint32_t>(center));
}

}  // namespace

void put_numbers(std::span<const std::int32_t> numbers, std::int32_t center, BitWriter& writer) {
  unsigned best = 0;
  std::uint64_t least = UINT64_MAX;
  for (unsigned order = 0; order < 1u << kOrderBits; ++order) {
    std::uint64_t bits = 0;
    for (const std::int32_t number : numbers)
      bits += 2 * kernels::bit_length(code_of(number, center) + (std::uint32_t{1} << order)) - 1 - order;
    if (bits < least) {
      least = bits;
      best = order;
    }
  }
  writer.put(best, kOrderBits);
  for (const std::int32_t number : numbers) writer.put_golomb(code_of(number, center), best);
}

void get_numbers(std::span<std::int32_t> numbers, std::int32_t center, BitReader& reader) {
  const auto order = static_cast<unsigned>(reader.get(kOrderBits));
  for (std::int32_t& number : numbers) {
    const std::uint32_t difference = kernels::unzigzag(static_cast<std::uint32_t>(reader.get_golomb(order)));
    number = static_cast<std::int32_t>(static_cast<std::uint32_t>(center) + difference);
  }
}

}  // namespace quern::codec::tensor

// A coded tensor of one chunk with all that decoding takes and gives, as it lies in tests/golden/tensors: type, mode,
// which inputs there are (1 base, 2 companion of f32) as u8; elements u32; side and chunk, each behind its size as u32;
// the inputs; the values. Little-endian.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {

struct GoldenTensor {
  TensorDescription description;
  Mode mode = Mode::raw;
  Bytes side;
  Bytes chunk;
  Bytes base;
  Bytes companion;
  Bytes values;
};

inline void write_golden(const GoldenTensor& tensor, const std::filesystem::path& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto u32 = [&](std::uint64_t value) {
    for (int shift = 0; shift < 32; shift += 8) out.put(static_cast<char>(value >> shift));
  };
  const auto bytes = [&](const Bytes& data) {
    out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  };
  out.put(static_cast<char>(tensor.description.type));
  out.put(static_cast<char>(tensor.mode));
  out.put(static_cast<char>((tensor.base.empty() ? 0 : 1) | (tensor.companion.empty() ? 0 : 2)));
  u32(tensor.description.elems());
  u32(tensor.side.size());
  bytes(tensor.side);
  u32(tensor.chunk.size());
  bytes(tensor.chunk);
  bytes(tensor.base);
  bytes(tensor.companion);
  bytes(tensor.values);
}

inline GoldenTensor read_golden(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const Bytes all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::size_t at = 0;
  const auto take = [&](std::size_t count) {
    const Bytes piece(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), at + count)));
    at = std::min(all.size(), at + count);
    return piece;
  };
  const auto u32 = [&] {
    const Bytes four = take(4);
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < four.size(); ++k) value |= std::uint32_t{four[k]} << (8 * k);
    return value;
  };
  GoldenTensor tensor;
  const Bytes head = take(3);
  if (head.size() < 3) return tensor;
  tensor.description = description_of(static_cast<ElementType>(head[0]), u32());
  tensor.mode = static_cast<Mode>(head[1]);
  tensor.side = take(u32());
  tensor.chunk = take(u32());
  if ((head[2] & 1) != 0) tensor.base = take(tensor.description.bytes());
  if ((head[2] & 2) != 0) tensor.companion = take(4 * tensor.description.elems());
  tensor.values = take(tensor.description.bytes());
  return tensor;
}

}  // namespace quern::codec::tensor

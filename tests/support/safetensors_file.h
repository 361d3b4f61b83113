// Just enough of safetensors to read tensors of a trusted file into memory, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "codecs/tensor/description.h"

namespace quern::testing {

struct StoredTensor {
  codec::tensor::TensorDescription description;
  std::vector<std::uint8_t> bytes;
};

/// Tensors by name; empty when the file is missing or not understood.
inline std::map<std::string, StoredTensor> read_safetensors(const std::string& path) {
  using codec::tensor::ElementType;
  const std::map<std::string, ElementType> types = {
      {"F32", ElementType::f32}, {"BF16", ElementType::bf16}, {"F16", ElementType::f16}, {"I64", ElementType::i64}};
  std::map<std::string, StoredTensor> tensors;
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (all.size() < 8) return tensors;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), 8);
  if (header_bytes > all.size() - 8) return tensors;
  const std::string header = all.substr(8, header_bytes);
  // Each tensor's object holds dtype, shape and data_offsets, in any order.
  const auto field = [&](std::size_t from, std::size_t end, const std::string& key) {
    const std::size_t at = header.find("\"" + key + "\"", from);
    return at < end ? header.find(':', at) + 1 : std::string::npos;
  };
  const auto numbers = [&](std::size_t at) {
    std::vector<std::uint64_t> list;
    at = header.find('[', at) + 1;
    while (header[at] != ']') {
      if (header[at] < '0' || header[at] > '9') {
        ++at;
        continue;
      }
      std::size_t used = 0;
      list.push_back(std::stoull(header.substr(at, 20), &used));
      at += used;
    }
    return list;
  };
  for (std::size_t at = 1; (at = header.find("\":", at)) != std::string::npos;) {
    const std::size_t open = header.find_first_not_of(' ', at + 2);
    if (header[open] != '{') {
      ++at;
      continue;
    }
    const std::size_t begin = header.rfind('"', at - 1) + 1;
    const std::string name = header.substr(begin, at - begin);
    const std::size_t end = header.find('}', open);
    at = end;
    if (name == "__metadata__") continue;
    const std::size_t type_at = header.find('"', field(open, end, "dtype")) + 1;
    const auto type = types.find(header.substr(type_at, header.find('"', type_at) - type_at));
    const auto shape = codec::tensor::TensorShape::make(numbers(field(open, end, "shape")));
    const auto offsets = numbers(field(open, end, "data_offsets"));
    if (type == types.end() || !shape.ok() || offsets.size() != 2 || 8 + header_bytes + offsets[1] > all.size())
      return {};
    const char* const data = all.data() + 8 + header_bytes;
    tensors[name] = {{type->second, *shape}, {data + offsets[0], data + offsets[1]}};
  }
  return tensors;
}

}  // namespace quern::testing

// Reads the tensors of a safetensors file that is known to be sound; not a parser for anything else.
#include "tests/unit_moments/stored_runs.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace quern::testing {
namespace {

std::string read_all(const std::string& file) {
  const char* const root = std::getenv("QUERN_TEST_DATA");
  if (root == nullptr || file.empty()) return {};
  std::ifstream in(std::string(root) + "/weights/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t header_bytes(const std::string& all) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 8; ++i) size |= static_cast<std::size_t>(static_cast<unsigned char>(all[i])) << (8 * i);
  return size;
}

/// Numbers between the brackets that follow `at`.
std::vector<std::uint64_t> numbers(const std::string& text, std::size_t at) {
  std::vector<std::uint64_t> found;
  at = text.find('[', at) + 1;
  while (text[at] != ']') {
    char* end = nullptr;
    found.push_back(std::strtoull(text.c_str() + at, &end, 10));
    at = static_cast<std::size_t>(end - text.c_str());
    while (text[at] == ',' || text[at] == ' ') ++at;
  }
  return found;
}

}  // namespace

StoredTensors read_tensors(const std::string& file) {
  const std::string all = read_all(file);
  if (all.size() < 8) return {};
  const std::string header = all.substr(8, header_bytes(all));
  StoredTensors tensors;
  for (std::size_t at = header.find("\"dtype\""); at != std::string::npos; at = header.find("\"dtype\"", at + 1)) {
    const std::size_t open = header.rfind('{', at);
    const std::size_t name_end = header.rfind('"', open);
    const std::size_t name_begin = header.rfind('"', name_end - 1) + 1;
    const std::size_t type_begin = header.find('"', header.find(':', at)) + 1;
    StoredTensor tensor;
    tensor.type = header.substr(type_begin, header.find('"', type_begin) - type_begin);
    tensor.shape = numbers(header, header.find("\"shape\"", open));
    const auto range = numbers(header, header.find("\"data_offsets\"", open));
    const auto data = all.begin() + static_cast<std::ptrdiff_t>(8 + header.size());
    tensor.bytes.assign(data + static_cast<std::ptrdiff_t>(range[0]), data + static_cast<std::ptrdiff_t>(range[1]));
    tensors[header.substr(name_begin, name_end - name_begin)] = std::move(tensor);
  }
  return tensors;
}

double metadata_number(const std::string& file, const std::string& key, double otherwise) {
  const std::string all = read_all(file);
  if (all.size() < 8) return otherwise;
  const std::string header = all.substr(8, header_bytes(all));
  std::size_t at = header.find('"' + key + '"');
  if (at == std::string::npos) return otherwise;
  at = header.find_first_of("-0123456789", at + key.size() + 2);
  return std::strtod(header.c_str() + at, nullptr);
}

}  // namespace quern::testing

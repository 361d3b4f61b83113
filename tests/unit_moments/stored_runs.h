// Checkpoints of real training runs, when they are on this machine: files below weights/ of the test data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quern::testing {

struct StoredTensor {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint8_t> bytes;
};
using StoredTensors = std::map<std::string, StoredTensor>;

/// Empty when there is no such file.
StoredTensors read_tensors(const std::string& file);
/// A number in the file's metadata; `otherwise` when it is not there.
double metadata_number(const std::string& file, const std::string& key, double otherwise);

}  // namespace quern::testing

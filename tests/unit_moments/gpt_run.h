// Checkpoints of a real training run, when they are on this machine: step00400 to step00500 and one gradient.
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
StoredTensors read_gpt_run(const std::string& file);
/// A number in the file's metadata; `otherwise` when it is not there.
double gpt_run_number(const std::string& file, const std::string& key, double otherwise);

}  // namespace quern::testing

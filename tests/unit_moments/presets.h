// Whole optimizer states coded the way a checkpoint store would: which tensor gets which mode, what it is given.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/tensor.h"

namespace quern::testing {

using Bytes = std::vector<std::uint8_t>;

/// Bounds; 0: lossless.
struct Preset {
  const char* name = "";
  double weight_deviations = 0;
  double eps = 0;
  double log_bound = 0;
  double weight_bound = 0;  ///< absolute, instead of weight_deviations
};
inline constexpr Preset kMomentsPreset{"moments", 0, .05, .05};
inline constexpr Preset kBalanced{"balanced", 1e-3, .05, .05};
inline constexpr Preset kArchive{"archive", 1e-2, .2, .1};

/// One parameter: weight, first and second moment in binary32.
struct Parameter {
  codec::tensor::TensorDescription description;
  Bytes weight;
  Bytes exp_avg;
  Bytes exp_avg_sq;
};

struct CodedSizes {
  std::uint64_t weight = 0;
  std::uint64_t exp_avg = 0;
  std::uint64_t exp_avg_sq = 0;
  std::uint64_t raw = 0;  ///< of the three

  std::uint64_t total() const { return weight + exp_avg + exp_avg_sq; }
  double ratio() const { return static_cast<double>(raw) / static_cast<double>(total()); }
  void add(const CodedSizes& other) {
    weight += other.weight;
    exp_avg += other.exp_avg;
    exp_avg_sq += other.exp_avg_sq;
    raw += other.raw;
  }
};

/// Encodes and decodes a parameter; `decoded` receives what comes back, `base` (may be null) is what came back of an
/// earlier state. Sizes count side and chunks and 24 bytes a tensor and 8 a chunk for what a manifest says of them.
CodedSizes code_parameter(const Preset& preset, const Parameter& parameter, const Parameter* base, Parameter& decoded);

}  // namespace quern::testing

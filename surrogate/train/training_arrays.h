// Arrays of files to train and test on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <quern/array.h>

namespace quern::surrogate {

/// An array in binary32, and its bytes as they were.
struct TrainingArray {
  std::string path;
  std::string sha256;                             ///< of the elements
  std::array<std::uint64_t, 3> extents{1, 1, 1};  ///< of the last three axes; those before are merged into the first
  std::size_t long_axes = 0;                      ///< that the file's shape has, of extents above 1
  std::vector<float> values;                      ///< of 0 where they are not finite
  float half_range = 0;                           ///< of finite values
};

struct TrainingData {
  std::vector<TrainingArray> train;  ///< early steps
  std::vector<TrainingArray> test;   ///< later steps
};

/// Reads raw files whose names tell type and shape, and .npy files; the last quarter of them, in the order given, is for
/// tests. Of one file, the last quarter of its first axis. False with a sentence in `problem`: nothing to read, no
/// finite values, a constant, too few steps.
bool read_training_data(const std::vector<std::string>& paths, TrainingData& data, std::string& problem);

}  // namespace quern::surrogate

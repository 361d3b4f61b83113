// Files to arrays in binary32.
#include "surrogate/train/training_arrays.h"

#include <algorithm>
#include <cmath>

#include "libcompress/core/last_axes.h"
#include "surrogate/train/stored_array.h"

namespace quern::surrogate {
namespace {

template <class T>
void widen(const std::vector<std::uint8_t>& bytes, std::vector<float>& values) {
  const auto* const from = reinterpret_cast<const T*>(bytes.data());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(from[i]);
}

bool widen_any(DType dtype, const std::vector<std::uint8_t>& bytes, std::vector<float>& values) {
  switch (dtype) {
    case DType::f32: widen<float>(bytes, values); return true;
    case DType::f64: widen<double>(bytes, values); return true;
    case DType::i8: widen<std::int8_t>(bytes, values); return true;
    case DType::i16: widen<std::int16_t>(bytes, values); return true;
    case DType::i32: widen<std::int32_t>(bytes, values); return true;
    case DType::u8: widen<std::uint8_t>(bytes, values); return true;
    case DType::u16: widen<std::uint16_t>(bytes, values); return true;
    case DType::u32: widen<std::uint32_t>(bytes, values); return true;
    default: return false;
  }
}

bool find_range(TrainingArray& array, std::string& problem) {
  float low = INFINITY;
  float high = -INFINITY;
  for (float& v : array.values) {
    if (!std::isfinite(v)) {
      v = 0;
      continue;
    }
    low = std::min(low, v);
    high = std::max(high, v);
  }
  array.half_range = high / 2 - low / 2;
  if (array.half_range > 0 && std::isfinite(array.half_range)) return true;
  problem = array.path + ": has no two different finite values; leave it out";
  return false;
}

bool read_array(const std::string& path, TrainingArray& array, std::string& problem) {
  StoredArray stored;
  if (!read_stored_array(path, stored, problem)) return false;
  const io::ArrayMeta& meta = stored.meta;
  array.path = path;
  array.sha256 = stored.sha256;
  array.extents = last_three_axes(meta.shape);
  for (std::size_t axis = 0; axis < meta.shape.rank(); ++axis) array.long_axes += meta.shape[axis] > 1 ? 1 : 0;
  array.values.resize(meta.shape.elems());
  if (!widen_any(meta.dtype, stored.bytes, array.values)) {
    problem = path + ": training takes f32, f64 and integers of up to 32 bits";
    return false;
  }
  return find_range(array, problem);
}

/// The last quarter of the first axis as an array of its own.
bool split_first_axis(TrainingData& data, std::string& problem) {
  TrainingArray& whole = data.train.front();
  const std::size_t axis = whole.extents[0] > 1 ? 0 : 1;
  const std::uint64_t tested = whole.extents[axis] / 4;
  if (tested == 0) {
    problem = whole.path + ": too few steps to train on some and test on others; name more files";
    return false;
  }
  TrainingArray test = whole;
  whole.extents[axis] -= tested;
  test.extents[axis] = tested;
  const auto kept = static_cast<std::ptrdiff_t>(whole.extents[0] * whole.extents[1] * whole.extents[2]);
  test.values.erase(test.values.begin(), test.values.begin() + kept);
  whole.values.resize(static_cast<std::size_t>(kept));
  data.test.push_back(std::move(test));
  return find_range(data.train.front(), problem) && find_range(data.test.front(), problem);
}

}  // namespace

bool read_training_data(const std::vector<std::string>& paths, TrainingData& data, std::string& problem) {
  for (const std::string& path : paths) {
    data.train.emplace_back();
    if (!read_array(path, data.train.back(), problem)) return false;
  }
  if (data.train.empty()) {
    problem = "train: name the training files with --data";
    return false;
  }
  if (data.train.size() == 1) return split_first_axis(data, problem);
  const std::size_t tested = std::max<std::size_t>(1, data.train.size() / 4);
  data.test.assign(data.train.end() - static_cast<std::ptrdiff_t>(tested), data.train.end());
  data.train.resize(data.train.size() - tested);
  return true;
}

}  // namespace quern::surrogate

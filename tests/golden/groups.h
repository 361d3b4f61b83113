// The groups of golden files, by the part of the format they cover.
#pragma once

#include <vector>

#include "tests/golden/golden_cases.h"

namespace quern::golden {

void add_container_files(std::vector<GoldenFile>& files);
void add_predictor_files(std::vector<GoldenFile>& files);
void add_lorenzo_files(std::vector<GoldenFile>& files);
void add_mask_files(std::vector<GoldenFile>& files);
void add_lossless_files(std::vector<GoldenFile>& files);
void add_stencil_files(std::vector<GoldenFile>& files);
void add_interp_files(std::vector<GoldenFile>& files);
void add_autoencoder_files(std::vector<GoldenFile>& files);
void add_network_files(std::vector<GoldenFile>& files);
void add_wavelet_files(std::vector<GoldenFile>& files);
void add_step_files(std::vector<GoldenFile>& files);

/// A file of one stream.
inline GoldenFile one(std::string name, std::string feature, testing::OwnedArray array, CompressOptions options) {
  GoldenFile file{std::move(name), std::move(feature), {}, true, {}};
  file.streams.push_back({std::move(array), std::move(options)});
  return file;
}

/// Lossy streams are those of the fast codec where none is named: what auto chooses may change with any codec.
inline CompressOptions with(BoundKind kind, double value, std::string codec = "auto", Settings settings = {}) {
  CompressOptions options;
  options.bound = {kind, value};
  if (codec == "auto" && kind != BoundKind::lossless) options.goal = "speed";
  options.codec = std::move(codec);
  options.settings = std::move(settings);
  return options;
}

}  // namespace quern::golden

// Third pass of measure_quality: mean structural similarity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/array.h>

#include "libcompress/metrics/blocks.h"

namespace quern::metrics {

/// Range of the original over valid elements; finite, min < max.
struct SsimRange {
  double min = 0.0;
  double max = 0.0;
  bool all_valid = false;
};

/// Definition in ssim.cpp. Nothing for data of fewer than two axes longer than 1, and when no window is wholly valid.
/// O(elements); scratch of about 2 MiB for each thread, which must fit `memory_limit`.
Result<std::optional<double>> mean_ssim(const ArrayView& original, const ArrayView& reconstructed,
                                        std::span<const std::uint64_t> fill_bits, const SsimRange& range,
                                        std::uint64_t memory_limit, TaskRunner& runner, Progress& progress);

/// Whether the shape has windows at all.
bool has_ssim(const Shape& shape);

}  // namespace quern::metrics

// How the symbols of a plane are modelled: which table each symbol has, and the tables. Chosen from counts; integers
// only, the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/frequency_table.h"
#include "kernels/tensor/cpu/planes.h"

namespace quern::codec::tensor {

/// What is known of each element beside the planes: 8 bits of a reference, as a rule its exponent.
struct Reference8 {
  const std::uint8_t* elements = nullptr;  ///< null: nothing is known
  unsigned width = 0;
  unsigned shift = 0;
};

struct PlaneModel {
  kernels::LaneContext source = kernels::LaneContext::none;
  std::size_t contexts = 1;
  /// Ascending, above 0. A context is how many of the first contexts - 1 are not above what is known.
  std::array<std::uint16_t, kernels::kMostLaneContexts> thresholds{};
  std::array<kernels::Frequencies, kernels::kMostLaneContexts> frequencies;
};

/// What a sample of a plane says.
struct PlaneEstimate {
  kernels::LaneContext source = kernels::LaneContext::none;
  std::array<std::uint16_t, kernels::kMostLaneContexts> thresholds{};
  std::size_t contexts = 1;
  std::uint64_t coded_bytes = 0;  ///< of the whole plane
  std::uint8_t varying = 0;       ///< bits that are not the same in all of the sample
};

PlaneEstimate estimate_plane(const std::uint8_t* symbols, std::size_t count, const Reference8& reference);

/// Counts the whole plane under an estimate's contexts, joins contexts that do not pay, and makes the tables.
/// `contexts`: room for a byte a symbol; receives the table of each group of 32 symbols or of each symbol. `sums`: room
/// for a number each 32 symbols.
void fit_plane(const kernels::PlaneKernels& kernels, const std::uint8_t* symbols, std::size_t count,
               const Reference8& reference, const PlaneEstimate& estimate, std::uint8_t* contexts, std::uint16_t* sums,
               PlaneModel& model);

}  // namespace quern::codec::tensor

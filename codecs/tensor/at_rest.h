// Moments of Adam at rest: codes of 8 or 4 bits that every step of training decodes, updates and encodes again. Beside
// the modes for checkpoints, whose codes are written once: here rounding is unbiased, and a value moves by less than a
// step (kernels/tensor/at_rest.h). Which values are there: a range of a flat parameter space, cut into tiles of 16384.
//
// For every finite value: a second moment v > 0 becomes v' > 0 with v / 1.25 < v' < 1.25 v (8 bits; a factor of 4 for 4
// bits), a first moment moves by less than 0.1 sqrt(v') (0.5 sqrt(v')). 0 stays 0. Blocks with NaN, infinities, -0,
// negative or denormal second moments, or a first moment beside a second of 0, are kept bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/tensor/description.h"
#include "kernels/tensor/cpu/at_rest/at_rest.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::tensor {

using kernels::AtRestForm;

/// Gradients of a range: bf16 or f32, host memory, aligned to their type.
struct AtRestGradient {
  const void* values = nullptr;
  ElementType type = ElementType::bf16;
};

/// The codes of a range of values. Not safe for two calls at once; every call spreads its tiles over `runner`. What
/// results depends on values, form, seed and step alone.
class AtRestMoments {
 public:
  /// Zeros. `first_value` is the number of the range's first value in the parameter space, a multiple of kAtRestBlock.
  /// `invalid_argument` for another form than 8 or 4 bits, `overflow` for more values than memory can have.
  static Result<AtRestMoments> make(std::uint64_t values, std::uint64_t first_value, const AtRestForm& form);

  std::uint64_t values() const { return values_; }
  const AtRestForm& form() const { return form_; }
  std::uint64_t bytes() const { return fixed_.size() + beside_.size(); }

  /// Takes moments, as rounded by the hashes of (seed, step). Arrays of values() elements.
  Status encode(std::uint64_t seed, std::uint64_t step, const float* first, const float* second, TaskRunner& runner) {
    return encode_part(seed, step, 0, values_, first, second, runner);
  }
  /// The same for `count` values from `begin` on, whole tiles up to the last; arrays of `count` elements.
  Status encode_part(std::uint64_t seed, std::uint64_t step, std::uint64_t begin, std::uint64_t count,
                     const float* first, const float* second, TaskRunner& runner);
  /// Gives both moments back.
  Status decode(float* first, float* second, TaskRunner& runner) const {
    return decode_part(0, values_, first, second, runner);
  }
  Status decode_part(std::uint64_t begin, std::uint64_t count, float* first, float* second, TaskRunner& runner) const;
  /// Decodes, takes a step of Adam and encodes, tile after tile. `copy`: nullptr, or gets the weights in bfloat16. After
  /// a failure (no memory) weights and moments are of no use.
  Status step(std::uint64_t seed, std::uint64_t step, const kernels::AdamRule& rule, const AtRestGradient& gradient,
              float* weight, std::uint16_t* copy, TaskRunner& runner);

  /// The stored form: a part whose size depends on values and form alone, then what lies beside the slots. Bytes in
  /// memory are the bytes in files.
  std::span<const std::uint8_t> fixed_part() const { return {fixed_.data(), fixed_.size()}; }
  std::span<const std::uint8_t> beside_part() const { return beside_; }
  /// To read a stored form: fill the fixed part, ask for room for the bytes that are stored beside it, fill that, accept.
  /// `corrupt` when sizes and headers do not fit each other; every other content decodes to some values.
  std::span<std::uint8_t> fixed_room() { return fixed_.span(); }
  /// The range begins at another value from now on.
  void set_first_value(std::uint64_t first_value) { first_block_ = first_value / kernels::kAtRestBlock; }
  Result<std::span<std::uint8_t>> beside_room(std::uint64_t stored_bytes);
  Status accept();

  /// Blocks that did not fit codes of the form's width.
  std::uint64_t exceptional_blocks() const;

 private:
  friend class AtRestPacker;  // at_rest_packed.h: another stored form

  std::size_t tiles() const {
    return static_cast<std::size_t>((values_ + kernels::kAtRestTile - 1) / kernels::kAtRestTile);
  }
  std::size_t blocks() const {
    return static_cast<std::size_t>((values_ + kernels::kAtRestBlock - 1) / kernels::kAtRestBlock);
  }
  std::uint32_t* sizes() const;    // of what lies beside the slots, for each tile
  std::uint32_t* headers() const;  // for each block
  kernels::AtRestTile tile(std::size_t index, std::size_t beside_at) const;
  /// Tiles from the one of value `begin` to the one of the last of `count` values.
  Result<std::pair<std::size_t, std::size_t>> tiles_of(std::uint64_t begin, std::uint64_t count) const;
  Vector<std::size_t> beside_begins() const;
  template <class Encode>
  Status for_tiles(std::size_t first, std::size_t end, TaskRunner& runner, const Encode& encode);

  std::uint64_t values_ = 0;
  std::uint64_t first_block_ = 0;
  AtRestForm form_;
  AlignedBuffer fixed_;  // sizes, headers, slots
  Vector<std::uint8_t> beside_;
};

/// The root of the sum of squares of all elements times `factor`; not finite when an element is not.
double gradient_norm(const AtRestGradient& gradient, std::uint64_t values, double factor, TaskRunner& runner);

}  // namespace quern::codec::tensor

// Tensors that are saved together, wherever their values lie: in files, in the caller's memory.
#pragma once

#include "checkpoint/save/save.h"

namespace quern::checkpoint {

/// One of them. Texts belong to the set.
struct SetTensor {
  std::string_view name;
  std::string_view role;   ///< that the caller knows it to have; empty: told from rules and the name
  std::string_view place;  ///< for sentences about failures; empty: none
  TensorDescription what;
  bool is_piece = false;  ///< the values are the part `box` of a tensor of shape `whole`
  Shape whole;
  Box box;
  const DeclaredType* declared = nullptr;  ///< what the values are called, where that is not `what`: never lossy
};

/// Outlives the save; its values stay as they are meanwhile.
class TensorSet {
 public:
  virtual ~TensorSet() = default;
  virtual std::size_t count() const = 0;
  virtual SetTensor tensor(std::size_t index) const = 0;
  /// The values, where they lie or in `room`.
  virtual Result<std::span<const std::uint8_t>> values(std::size_t index, AlignedBuffer& room, Report& report) = 0;
  /// Nobody asks for the values of this tensor any more.
  virtual void done(std::size_t) {}
  /// Texts that came with the tensors.
  virtual Vector<const Metadata*> metadata() const { return {}; }
};

}  // namespace quern::checkpoint

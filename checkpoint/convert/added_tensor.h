// A tensor in the caller's memory that is to be saved, and the names of those that came before it.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "checkpoint/convert/tensor_set.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {

/// A tensor that was added: what is borrowed, and how it is called.
struct AddedTensor {
  String name;
  String role;
  TensorDescription what;
  const std::uint8_t* data = nullptr;
  bool on_device = false;
  int device = 0;
  bool is_piece = false;
  Shape whole;
  Box box;
  std::optional<DeclaredType> declared;
};

struct NameHash {
  std::size_t operator()(const String& name) const { return std::hash<std::string_view>()(name); }
};
/// Names given so far, and of tensors whether they come in pieces.
using TensorNames =
    std::unordered_map<String, bool, NameHash, std::equal_to<>, Allocator<std::pair<const String, bool>>>;

/// Keeps the tensor's name; refuses one that is too long or given twice, but for pieces of one tensor.
Status take_name(const AddedTensor& tensor, TensorNames& names, Report& report);

/// Pieces of a tensor agree in dtype and in the whole's shape and do not overlap; with `all_here` they also fill it.
Status check_pieces(const Vector<AddedTensor>& tensors, bool all_here, Report& report);

/// Tensors among `own` that need an earlier checkpoint. The manifest may be that of a whole group.
std::uint64_t count_differences(const Manifest& manifest, const Vector<AddedTensor>& own);

/// What the set knows of an added tensor but its values.
inline SetTensor set_tensor(const AddedTensor& added) {
  return {added.name,     added.role,  {},        added.what,
          added.is_piece, added.whole, added.box, added.declared ? &*added.declared : nullptr};
}

}  // namespace quern::checkpoint

// What a session knows while it saves: the tensors of the base, and what is stored already. For save*.cpp alone.
#pragma once

#include <functional>
#include <unordered_map>

#include "checkpoint/save/bound_check.h"
#include "checkpoint/save/save.h"

namespace quern::checkpoint {

template <class Key, class Value, class Hash = std::hash<Key>>
using Map = std::unordered_map<Key, Value, Hash, std::equal_to<Key>, Allocator<std::pair<const Key, Value>>>;

struct NameHash {
  std::size_t operator()(const String& name) const { return std::hash<std::string_view>()(name); }
};

/// Stored values: what they were, and what comes back.
struct ContentKey {
  ContentHash hash;
  ContentHash restored;
  std::uint64_t bytes = 0;
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};
/// Values that were stored with a loss that depends on nothing else.
struct LossyKey {
  ContentHash hash;
  std::uint64_t bytes = 0;
  Mode mode = Mode::ebq;
  double bound = 0;
  friend bool operator==(const LossyKey&, const LossyKey&) = default;
};
struct KeyHash {
  std::size_t operator()(const ContentKey& key) const { return static_cast<std::size_t>(key.hash.low); }
  std::size_t operator()(const LossyKey& key) const { return static_cast<std::size_t>(key.hash.low); }
};

/// A tensor and the piece of it: what must be unique in a checkpoint.
inline String piece_key(std::string_view name, const Shape* whole, const Box& box) {
  String key(name);
  if (whole == nullptr) return key;
  for (std::size_t a = 0; a < box.rank; ++a) key += join({a == 0 ? "\n" : ",", decimal(box.begin[a])});
  return key;
}
inline String piece_key(const ManifestTensor& tensor) {
  return piece_key(tensor.name, tensor.is_piece ? &tensor.whole : nullptr, tensor.box);
}

inline String step_text(const CheckpointName& name) { return join({"step ", decimal(name.step)}); }

/// Tensors of the base by name, and which of them did not fit.
struct SaveSession::Base : public Allocated {
  CheckpointName name;
  Map<String, std::uint32_t, NameHash> tensors;
  bool damaged = false;  ///< its values could not be read: nothing more is predicted from it
  String first_misfit;
  std::uint64_t misfits = 0;

  void add_misfit(std::string_view tensor) {
    if (misfits++ == 0) first_misfit = tensor;
  }
};

/// What this session and earlier checkpoints hold.
struct SaveSession::Known : public Allocated {
  struct Place {
    CheckpointName checkpoint;  ///< without an id: this session
    std::uint32_t tensor = 0;
    std::optional<ContentHash> decoded;
    double worst = 0;  ///< as in SavedTensor, in the unit of an absolute bound; of this session's tensors alone
    double worst_absolute = 0;
  };
  Map<ContentKey, Place, KeyHash> contents;
  Map<LossyKey, Place, KeyHash> lossy;
  Map<String, std::uint32_t, NameHash> names;

  /// Nothing but the number counts of a tensor of another checkpoint.
  void add(const ManifestTensor& tensor, const CheckpointName& checkpoint, const SavedTensor& saved) {
    const double scale = saved.bound > 0 ? tensor.bound / saved.bound : 1;
    const Place place{checkpoint, saved.number, tensor.decoded, saved.worst * scale, saved.worst_absolute};
    contents.emplace(ContentKey{tensor.content, tensor.restored(), tensor.what.bytes()}, place);
    if (is_lossy(tensor.mode) && tensor.mode != Mode::updq && tensor.bound != 0)
      lossy.emplace(LossyKey{tensor.content, tensor.what.bytes(), tensor.mode, tensor.bound}, place);
  }
};

}  // namespace quern::checkpoint

// What a state dict that Python saved calls its tensors: read from the text that puts it together again
// (docs/format-state-dict.md). A store keeps a tensor once; the text knows all of its names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

#include "checkpoint/storage.h"

namespace quern::checkpoint {

/// The blob that has the text.
inline constexpr std::string_view kStateBlob = "quern.state";

/// A tensor that shares the memory of another, in bytes of that one.
struct StateView {
  std::uint64_t offset = 0;
  Vector<std::int64_t> strides;
  Vector<std::uint64_t> shape;

  friend bool operator==(const StateView&, const StateView&) = default;
};

struct StateTensor {
  String name;    ///< the keys that lead to it, joined by dots
  String stored;  ///< the name it has in the store
  String label;   ///< its type where the stored one is another: "complex64", "float8_e8m0fnu"; empty: it is that
  std::optional<Vector<std::uint64_t>> shape;  ///< where that is not the stored one
  std::optional<StateView> view;
  const char* unfit = nullptr;  ///< why it is no plain tensor ("sparse"); then it has no `stored`
};

struct StateNames {
  Vector<StateTensor> tensors;  ///< in the order of the state dict
  Vector<String> containers;    ///< keys of the outermost dict that have dicts
};

/// Fails on what is no such text.
Result<StateNames> parse_state_names(std::string_view text, Report& report);

}  // namespace quern::checkpoint

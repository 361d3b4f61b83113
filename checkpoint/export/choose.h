// Which tensors of a checkpoint are exported, under which names and in which type.
#pragma once

#include "checkpoint/export/state_names.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {

struct ExportChoice {
  Vector<String> only;              ///< globs on names; none: the model of a state dict that has one, else everything
  Vector<String> strip;             ///< prefixes taken from names, one after the other, where a name begins with them
  std::optional<ElementType> type;  ///< F32, F16 or BF16: floats of 16 to 64 bits are cast to it
};

struct ExportTensor {
  String name;                   ///< in the files that are written
  Vector<std::uint32_t> pieces;  ///< of the manifest
  TensorDescription stored;      ///< of the whole tensor in the store
  std::optional<StateView> view;
  StoredTensor written;  ///< name, type and shape in the file; no place yet
  bool cast = false;
};

struct ChosenTensors {
  Vector<ExportTensor> tensors;
  /// Second names of tensors that are exported under their first: {second, first}.
  Vector<std::pair<String, String>> tied;
};

/// `state`: what a state dict calls its tensors; null where the checkpoint is no state dict. Fails where nothing is
/// chosen, where two tensors would have one name, and on tensors that safetensors files cannot hold.
Result<ChosenTensors> choose_tensors(const Manifest& manifest, const StateNames* state, const ExportChoice& choice,
                                     Report& report);

}  // namespace quern::checkpoint

// Values of a checkpoint's tensors, through aliases, bases and companions.
#pragma once

#include <memory>

#include <quern/execution.h>

#include "checkpoint/part_reader.h"
#include "checkpoint/store.h"

namespace quern::checkpoint {

/// Reads tensors of any checkpoint of a store. Keeps manifests and parts open that it has used. One thread at a time;
/// chunks are decoded on the runner.
class Restorer {
 public:
  Restorer(const Store& store, TaskRunner& runner) : store_(store), runner_(runner) {}

  /// The manifest, read on first use; stays until the restorer dies.
  Result<const Manifest*> manifest(const CheckpointName& name, Report& report);
  /// Decodes a tensor and checks it against its hash. `out` gets its bytes. Failures name checkpoint and tensor.
  Status tensor(const CheckpointName& name, std::size_t index, AlignedBuffer& out, Report& report);
  Status blob(const CheckpointName& name, std::size_t index, Vector<std::uint8_t>& out, Report& report);

  /// Follows an alias. The name is that of the checkpoint that has the values.
  struct Place {
    CheckpointName checkpoint;
    std::uint32_t tensor = 0;
  };
  Result<Place> resolve(const CheckpointName& name, std::size_t index, Report& report);

 private:
  struct Opened : public Allocated {
    Manifest manifest;
    Vector<std::unique_ptr<PartReader>> parts;  ///< null until used
  };

  Result<Opened*> opened(const CheckpointName& name, Report& report);
  Result<const PartReader*> part(Opened& checkpoint, std::uint32_t number, Report& report);
  Status decode(const Place& place, AlignedBuffer& out, std::size_t depth, Report& report);
  Status decode_chunks(const ManifestTensor& tensor, const PartReader& part,
                       const codec::tensor::TensorInputs& inputs, const TensorHead& head,
                       std::span<const std::uint8_t> first_chunk, AlignedBuffer& out, Report& report);

  const Store& store_;
  TaskRunner& runner_;
  Vector<std::unique_ptr<Opened>> opened_;
};

/// Where piece `tensor` goes in the whole tensor: copies it there, line by line. `whole` has the whole tensor's bytes.
void place_piece(const ManifestTensor& tensor, std::span<const std::uint8_t> piece, std::span<std::uint8_t> whole);

}  // namespace quern::checkpoint

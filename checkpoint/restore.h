// Values of a checkpoint's tensors, through aliases, bases and companions.
#pragma once

#include <array>
#include <memory>

#include <quern/execution.h>

#include "checkpoint/part_reader.h"
#include "checkpoint/store.h"

namespace quern::checkpoint {

/// Reads tensors of any checkpoint of a store. Keeps manifests and parts open that it has used, and of the tensors that
/// others were decoded from the last ones: at most 64 MiB or eight times the tensor asked for. One thread at a time;
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
    friend bool operator==(const Place&, const Place&) = default;
  };
  Result<Place> resolve(const CheckpointName& name, std::size_t index, Report& report);
  /// Fails unless the part that has the tensor's values is there, with its size, header and index.
  Status check_place(const Place& place, Report& report);

 private:
  struct Opened : public Allocated {
    Manifest manifest;
    Vector<std::unique_ptr<PartReader>> parts;  ///< null until used
  };

  /// Values of a tensor that others need; kept for the next of them.
  struct Kept {
    Place place;
    AlignedBuffer values;
  };

  Result<Opened*> opened(const CheckpointName& name, Report& report);
  Result<const PartReader*> part(Opened& checkpoint, std::uint32_t number, Report& report);
  Status decode(const Place& place, AlignedBuffer& out, std::size_t depth, Report& report);
  /// A member of a replayed group.
  Status decode_member(const Place& place, AlignedBuffer& out, std::size_t depth, Report& report);
  /// Weight and both moments of the group that the weight leads.
  Status decode_group(const Place& leader, std::span<AlignedBuffer, 3> out, std::size_t depth, Report& report);
  /// What `by` needs, of its shape and, if one is given, of that type.
  Status decode_needed(const Place& place, const Place& by, const char* as, std::optional<ElementType> type,
                       AlignedBuffer& out, std::size_t depth, Report& report);
  /// Where the optimizer points, from its two moments.
  Status decode_direction(const Place& by, const std::array<Place, 2>& moments, AlignedBuffer& direction,
                          std::size_t depth, Report& report);
  Status check_hash(const Place& place, std::span<const std::uint8_t> values, Report& report);
  Result<Vector<std::uint8_t>> read_head(const Place& place, TensorHead& head, std::span<const std::uint8_t>& first,
                                         Report& report);
  Result<Place> needed_place(const Place& from, const TensorPlace& place, Report& report);
  bool take_kept(const Place& place, AlignedBuffer& out);
  void keep(const Place& place, std::span<const std::uint8_t> values);
  Status decode_chunks(const ManifestTensor& tensor, const PartReader& part, const codec::tensor::TensorInputs& inputs,
                       const TensorHead& head, std::span<const std::uint8_t> first_chunk, AlignedBuffer& out,
                       Report& report);

  const Store& store_;
  TaskRunner& runner_;
  Vector<std::unique_ptr<Opened>> opened_;
  Vector<Kept> kept_;  ///< the last used behind the others
  std::size_t kept_limit_ = 0;
  std::size_t decodes_left_ = 0;
};

/// "step 400, tensor 'w'"
String place_text(const CheckpointName& name, const ManifestTensor& tensor);

/// Where piece `tensor` goes in the whole tensor: copies it there, line by line. `whole` has the whole tensor's bytes.
void place_piece(const ManifestTensor& tensor, std::span<const std::uint8_t> piece, std::span<std::uint8_t> whole);

}  // namespace quern::checkpoint

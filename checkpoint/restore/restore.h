// Values of a checkpoint's tensors, through aliases, bases and companions. Whole tensors are checked against the hash
// of all their values; of a part that is read alone, the records it was decoded from are checked against their
// checksums.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include <quern/execution.h>

#include "checkpoint/store/box_runs.h"
#include "checkpoint/store/part_reader.h"
#include "checkpoint/store/store.h"

namespace quern::checkpoint {

/// Reads tensors of any checkpoint of a store. Keeps manifests and parts open that it has used; of the tensors that
/// others were decoded from the last ones, at most 256 MiB; and the last chunks of parts of tensors, at most 32 MiB.
/// One thread at a time; chunks are decoded on the runner. A tensor above 64 MiB is decoded with no more than some MiB
/// a thread beside it, unless it was replayed.
class Restorer {
 public:
  Restorer(const Store& store, TaskRunner& runner);
  ~Restorer();

  /// The manifest, read on first use; stays until the restorer dies.
  Result<const Manifest*> manifest(const CheckpointName& name, Report& report);
  /// Decodes a tensor and checks it against its hash. `out` gets its bytes. Failures name checkpoint and tensor.
  Status tensor(const CheckpointName& name, std::size_t index, AlignedBuffer& out, Report& report);
  /// The same into memory of the tensor's size.
  Status values(const CheckpointName& name, std::size_t index, std::span<std::uint8_t> out, Report& report);
  /// The same piece by piece, in order: use(values) -> Status. What it got is the tensor only if this succeeds.
  using UsePiece = std::function<Status(std::span<const std::uint8_t>)>;
  Status pieces(const CheckpointName& name, std::size_t index, const UsePiece& use, Report& report);
  /// The elements `part` of a tensor or piece whose elements are the box `from`, to their places in `target`, the
  /// values of the box `to`. Decodes the chunks that `part` meets, and of the tensors they depend on the same elements.
  Status part(const CheckpointName& name, std::size_t index, const Box& part, const Box& from, const Box& to,
              std::span<std::uint8_t> target, Report& report);
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

  // Chunk by chunk: loading/restore_chunks.cpp.
  struct Node;
  struct Rooms;
  struct KeptChunk {
    Place place;
    std::uint64_t chunk = 0;
    AlignedBuffer values;
  };
  bool goes_by_chunks(const ManifestTensor& tensor) const;
  Result<Node*> node(const Place& place, std::size_t depth, std::size_t& left, Report& report);
  Result<Node*> whole_node(const Place& place, std::size_t depth, std::size_t& left, Report& report);
  Result<Node*> root(const Place& place, Report& report);
  Status decode_chunk(Node& node, std::uint64_t chunk, std::span<std::uint8_t> out, Rooms& rooms, Report& report);
  Status values_of(Node& node, std::uint64_t first, std::uint64_t elems, std::size_t width,
                   std::span<const std::uint8_t>& out, Rooms& rooms, Report& report);
  Status direction_of(std::array<Node*, 2>& moments, std::uint64_t first, std::uint64_t elems,
                      std::span<const std::uint8_t>& out, Rooms& rooms, Report& report);
  Status decode_run(Node& node, std::uint64_t first, std::size_t count,
                    const std::function<std::span<std::uint8_t>(std::size_t)>& out, Report& report);
  Status keep_chunks(Node& node, std::span<const std::uint64_t> chunks, Report& report);
  std::span<const std::uint8_t> kept_chunk(const Place& place, std::uint64_t chunk) const;

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
  Status fail_hash(const Place& place, const ManifestTensor& tensor, Report& report);
  Status check_hash(const Place& place, std::span<const std::uint8_t> values, Report& report);
  Result<Vector<std::uint8_t>> read_head(const Place& place, TensorHead& head, std::span<const std::uint8_t>& first,
                                         Report& report);
  Result<Place> needed_place(const Place& from, const TensorPlace& place, Report& report);
  const AlignedBuffer* find_kept(const Place& place);
  bool take_kept(const Place& place, AlignedBuffer& out);
  void keep(const Place& place, std::span<const std::uint8_t> values);
  Status decode_chunks(const ManifestTensor& tensor, const PartReader& part, const codec::tensor::TensorInputs& inputs,
                       const TensorHead& head, std::span<const std::uint8_t> first_chunk, AlignedBuffer& out,
                       Report& report);

  const Store& store_;
  TaskRunner& runner_;
  Vector<std::unique_ptr<Opened>> opened_;
  Vector<std::unique_ptr<Node>> nodes_;
  Vector<std::unique_ptr<Rooms>> rooms_;
  Vector<KeptChunk> kept_chunks_;  ///< the last used behind the others
  Vector<Kept> kept_;              ///< the last used behind the others
  std::size_t kept_limit_ = 0;
  std::size_t decodes_left_ = 0;
};

/// "step 400, tensor 'w'"
String place_text(const CheckpointName& name, const ManifestTensor& tensor);

}  // namespace quern::checkpoint

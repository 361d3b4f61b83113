// Saving one checkpoint: tensors are coded into parts under tmp/, and nothing is visible before all of it is safe.
#pragma once

#include <array>
#include <memory>

#include <quern/execution.h>

#include "checkpoint/restore/restore.h"
#include "checkpoint/store/part_writer.h"
#include "checkpoint/store/store.h"
#include "checkpoint/store/value_hashes.h"
#include "kernels/tensor/cpu/adam.h"

namespace quern::checkpoint {

/// When a tensor is stored whole again instead of as a difference.
struct ChainLimits {
  std::uint32_t depth = 8;              ///< bases one behind the other; 20 at most
  std::uint32_t chain_percent = 60;     ///< bytes of the chain so far, of the key's
  std::uint32_t restore_percent = 200;  ///< bytes that a restore reads, of the key's
  std::uint32_t replays = 16;           ///< bases behind a replayed tensor; 20 at most
};

/// A mode that loses something, and how much.
struct LossyRequest {
  Mode mode = Mode::ebq;
  double bound = 0;            ///< in the mode's unit; none for blk8 and blk4
  bool in_deviations = false;  ///< ebq: in standard deviations of the values, else absolute
};

/// In the place of a zstd level: values are stored as they are, which shows what a save costs without coding.
inline constexpr int kStoreRaw = -1;

struct SaveOptions {
  std::uint64_t step = 0;
  /// Step of the checkpoint that tensors may be differences to. Where it cannot be used, a note says why and there is
  /// none.
  std::optional<std::uint64_t> base;
  /// Without a base: the newest checkpoint that has none itself, unless that is `key_distance` checkpoints old.
  bool base_newest = false;
  std::uint32_t key_distance = 5;
  ChainLimits limits;
  int zstd_level = 0;             ///< see codec::tensor::TensorRequest
  std::uint32_t parity_data = 0;  ///< parts that parity protects together, 0: no parity
  std::uint32_t parity_files = 0;
  // Several writers make one checkpoint together: each a session with the same group and another number.
  String group;  ///< empty: a name is made; else is_plain_id and never used before in the store
  std::uint32_t writer = 0;
  std::uint32_t writers = 1;
  bool replace = false;      ///< the step may be in the store already; what is there is removed once this is published
  bool search_equal = true;  ///< look in the newest checkpoint and the base for tensors of the same content
  /// Smaller tensors are stored again rather than shared with another checkpoint, which they would hold for ever.
  std::uint64_t least_shared_bytes = 65536;
  /// Tensors above it are coded alone, in windows, as add_tensors() holds what it codes.
  std::uint64_t large_tensor_bytes = std::uint64_t{1} << 25;
  Vector<Tag> tags;
  std::optional<std::uint64_t> generation;  ///< of the checkpoint that takes another's place; nothing: the newest
  /// The checkpoint gets a larger generation than this one, which other tiers of the store have.
  std::uint64_t above = 0;
};

/// A tensor as the caller has it; everything is borrowed for the length of the call. Values that others may write to
/// come with the hashes they had before anything was made of them; a save of a tensor that is different later fails.
/// Without hashes, values are hashed when they are added, and those of companions and moments must stay as they are.
struct TensorSource {
  std::string_view name;
  std::string_view role;
  TensorDescription what;
  std::span<const std::uint8_t> values;
  const Shape* whole = nullptr;  ///< the values are the part `box` of a tensor of this shape
  Box box;
  std::optional<std::uint32_t> companion;  ///< number of the tensor in this session, also one that is still to come
  std::span<const std::uint8_t> companion_values;  ///< as they come back: decoded, where the companion loses something
  ElementType companion_type = ElementType::f32;
  const ValueHashes* hashes = nullptr;
  const ValueHashes* companion_hashes = nullptr;
  std::string_view companion_name;  ///< for sentences about failures
  /// The tensor's number; nothing: the next one. Tensors may be added in any order that has what others need first.
  std::optional<std::uint32_t> number;
  std::optional<LossyRequest> lossy;  ///< nothing: every bit comes back
  /// Of a weight: numbers and decoded values of its first and second moment, added before. With a base, ebq is
  /// predicted from where they point.
  std::optional<std::array<std::uint32_t, 2>> moments;
  std::array<std::span<const std::uint8_t>, 2> moment_values;
  std::array<const ValueHashes*, 2> moment_hashes{};
  /// `values` lost something before, within the bound of `lossy` if there is one; now they must come back bit for bit.
  /// The hash of what they were.
  std::optional<ContentHash> original;
  AlignedBuffer* decoded = nullptr;        ///< receives what comes back, unless null
  const DeclaredType* declared = nullptr;  ///< what the values are called, where that is not `what`
};

class SavingRooms;

/// What became of one tensor.
struct SavedTensor {
  std::uint32_t number = 0;
  Mode mode = Mode::raw;
  bool alias = false;
  std::uint64_t stored_bytes = 0;
  // Of a tensor that was to lose something.
  double bound = 0;  ///< as asked
  double worst = 0;  ///< in the same unit
  double worst_absolute = 0;
  String fallback;  ///< why it is stored without loss all the same; empty: it is not
};

/// One step of the optimizer: a weight and its moments, all f32 and of one shape, and the gradient that led to them.
struct ReplaySource {
  TensorSource weight;
  TensorSource exp_avg;
  TensorSource exp_avg_sq;
  std::uint32_t gradient = 0;  ///< number of a tensor added before; bf16 or f32
  std::span<const std::uint8_t> gradient_values;
  ElementType gradient_type = ElementType::bf16;
  const ValueHashes* gradient_hashes = nullptr;
  std::string_view gradient_name;
  kernels::AdamRule rule;
};

/// What became of a step: the three tensors, or why they cannot be replayed.
struct SavedReplay {
  std::array<SavedTensor, 3> tensors;
  String refused;  ///< empty: they are stored; else nothing is
};

struct SaveResult {
  CheckpointName name;
  bool published = false;  ///< false: other writers of the group have not arrived yet
  std::uint64_t manifest_bytes = 0;
  Manifest manifest;  ///< published: of the whole checkpoint; else of this writer
};

/// Step of the newest checkpoint without a base, which the next one may be saved against; nothing when there is none or
/// it is time for a new one: with it and the checkpoints behind it `distance` would be reached.
Result<std::optional<std::uint64_t>> find_newest_key(const Store& store, std::uint32_t distance, Report& report);

/// One thread at a time. After a failure only abort() or the destructor make sense; they remove what was written, and
/// earlier checkpoints are untouched whatever happens.
class SaveSession : public Allocated {
 public:
  static Result<std::unique_ptr<SaveSession>> begin(const Store& store, const SaveOptions& options, TaskRunner& runner,
                                                    Report& report);
  ~SaveSession();
  SaveSession(const SaveSession&) = delete;
  SaveSession& operator=(const SaveSession&) = delete;

  /// Codes a tensor. Fails on names given twice.
  Result<SavedTensor> add_tensor(const TensorSource& source, Report& report);
  /// The same of several, side by side; none of them may need another one of them. They are stored in this order, and
  /// what is stored does not depend on the number of threads. Holds about their size.
  Result<Vector<SavedTensor>> add_tensors(std::span<const TensorSource> sources, Report& report);
  /// Stores a step as the base and its gradient, when that gives the very bits of the three tensors.
  Result<SavedReplay> add_replay(const ReplaySource& source, Report& report);
  Status add_blob(std::string_view name, std::span<const std::uint8_t> bytes, Report& report);
  /// Files are added before or after their tensors; their tensors come in the order of the files.
  void add_file(ManifestFile file) { manifest_.files.push_back(std::move(file)); }
  /// Makes everything safe and, as the last writer of the group, visible. Fails when the step is in the store by now,
  /// unless it is to be replaced.
  Result<SaveResult> commit(Report& report);
  /// What commit() would store, without storing it; the session is over then.
  Result<SaveResult> measure(Report& report);
  void abort();

  const CheckpointName& name() const { return manifest_.name; }

 private:
  struct Base;
  struct Known;
  struct Coding;
  SaveSession(const Store& store, const SaveOptions& options, TaskRunner& runner);

  Status start(Report& report);
  Status take_placement(Report& report);
  Status open_base(Report& report);
  void note_misfits(Report& report) const;
  Status find_known(Report& report);
  Result<std::uint32_t> take_number(const TensorSource& source, Report& report);
  Result<ManifestTensor> describe(const TensorSource& source, Report& report);
  Result<std::optional<std::uint32_t>> match_base(const TensorSource& source, Report& report);
  Result<std::optional<Restorer::Place>> base_place(const TensorSource& source, std::uint32_t index);
  /// False, with a note, where values of the base cannot be read: nothing is predicted from it any more.
  Result<bool> read_base(const Restorer::Place& place, AlignedBuffer& out, Report& report);
  const ManifestTensor& at(const Restorer::Place& place);
  TensorPlace refer_to(const Restorer::Place& place);
  Result<bool> take_alias(Coding& coding, Report& report);
  Status find_directions(Coding& coding, Report& report);
  Result<std::unique_ptr<Coding>> prepare(const TensorSource& source, const ValueHashes& hashes, double deviation,
                                          Report& report);
  Status check_aliased(const Coding& coding, Report& report);
  Status code_group(std::span<const std::unique_ptr<Coding>> group, Report& report);
  Status code_in_windows(Coding& coding, Report& report);
  Status write_window(Coding& coding, PartWriter& part, std::uint32_t begin, std::uint32_t end, Report& report);
  Status write_group_member(Coding& coding, Report& report);
  Status store(Coding& coding, Report& report);
  Status write_replayed(ManifestTensor& tensor, std::uint32_t number, const Vector<std::uint8_t>& side, Report& report);
  PartWriter& smallest_part(std::uint32_t& number);
  Result<SaveResult> finish_parts(Report& report);

  const Store& store_;
  SaveOptions options_;
  TaskRunner& runner_;
  Restorer restorer_;
  Manifest manifest_;
  Vector<std::uint8_t> added_;  ///< which of the manifest's tensors are there
  std::unique_ptr<FileLock> store_lock_;
  std::unique_ptr<FileLock> own_lock_;
  bool folder_made_ = false;
  Vector<PartWriter> parts_;
  std::unique_ptr<Base> base_;
  std::unique_ptr<Known> known_;
  std::unique_ptr<SavingRooms> rooms_;
};

}  // namespace quern::checkpoint

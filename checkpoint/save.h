// Saving one checkpoint: tensors are coded into parts under tmp/, and nothing is visible before all of it is safe.
#pragma once

#include <memory>

#include <quern/execution.h>

#include "checkpoint/part_writer.h"
#include "checkpoint/restore.h"
#include "checkpoint/store.h"

namespace quern::checkpoint {

/// When a tensor is stored whole again instead of as a difference.
struct ChainLimits {
  std::uint32_t depth = 8;             ///< tensors behind it
  std::uint32_t chain_percent = 60;    ///< bytes of the chain so far, of the key's
  std::uint32_t restore_percent = 200; ///< bytes that a restore reads, of the key's
};

struct SaveOptions {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> base;  ///< step of the checkpoint that tensors may be differences to
  ChainLimits limits;
  int zstd_level = 0;  ///< see codec::tensor::TensorRequest
  std::uint32_t parity_data = 0;  ///< parts that parity protects together, 0: no parity
  std::uint32_t parity_files = 0;
  // Several writers make one checkpoint together: each a session with the same group and another number.
  String group;  ///< empty: a name is made; else is_plain_id and never used before in the store
  std::uint32_t writer = 0;
  std::uint32_t writers = 1;
  bool replace = false;      ///< the step may be in the store already
  bool search_equal = true;  ///< look in earlier checkpoints for tensors of the same content
};

/// A tensor as the caller has it; everything is borrowed for the length of the call.
struct TensorSource {
  std::string_view name;
  std::string_view role;
  TensorDescription what;
  std::span<const std::uint8_t> values;
  const Shape* whole = nullptr;  ///< the values are the part `box` of a tensor of this shape
  Box box;
  std::optional<std::uint32_t> companion;  ///< number of the tensor in this session, also one that is still to come
  std::span<const std::uint8_t> companion_values;
  ElementType companion_type = ElementType::f32;
};

/// What became of one tensor.
struct SavedTensor {
  std::uint32_t number = 0;
  Mode mode = Mode::raw;
  bool alias = false;
  std::uint64_t stored_bytes = 0;
};

struct SaveResult {
  CheckpointName name;
  bool published = false;  ///< false: other writers of the group have not arrived yet
  std::uint64_t manifest_bytes = 0;
  Manifest manifest;  ///< published: of the whole checkpoint; else of this writer
};

/// One thread at a time. After a failure only abort() or the destructor make sense; they remove what was written, and
/// earlier checkpoints are untouched whatever happens.
class SaveSession : public Allocated {
 public:
  static Result<std::unique_ptr<SaveSession>> begin(const Store& store, const SaveOptions& options, TaskRunner& runner,
                                                    Report& report);
  ~SaveSession();
  SaveSession(const SaveSession&) = delete;
  SaveSession& operator=(const SaveSession&) = delete;

  /// Codes a tensor. Fails on names given twice and on a type or shape other than the base's.
  Result<SavedTensor> add_tensor(const TensorSource& source, Report& report);
  Status add_blob(std::string_view name, std::span<const std::uint8_t> bytes, Report& report);
  /// Files are added before or after their tensors; their tensors come in the order of the files.
  void add_file(ManifestFile file) { manifest_.files.push_back(std::move(file)); }
  /// Makes everything safe and, as the last writer of the group, visible. Fails when a tensor of the base is missing.
  Result<SaveResult> commit(Report& report);
  /// What commit() would store, without storing it; the session is over then.
  Result<SaveResult> measure(Report& report);
  void abort();

  const CheckpointName& name() const { return manifest_.name; }

 private:
  struct Base;
  struct Known;
  SaveSession(const Store& store, const SaveOptions& options, TaskRunner& runner);

  Status start(Report& report);
  Status open_base(Report& report);
  Status find_known(Report& report);
  Result<std::optional<std::uint32_t>> match_base(const TensorSource& source, Report& report);
  Result<std::optional<TensorPlace>> base_values(const TensorSource& source, std::uint32_t index, AlignedBuffer& values,
                                                 Report& report);
  std::uint32_t reference_to(const CheckpointName& name);
  bool take_alias(ManifestTensor& tensor);
  Status write_tensor(ManifestTensor& tensor, const codec::tensor::EncodedTensor& coded, Report& report);
  PartWriter& smallest_part(std::uint32_t& number);
  Result<SaveResult> finish_parts(Report& report);

  const Store& store_;
  const SaveOptions options_;
  TaskRunner& runner_;
  Restorer restorer_;
  Manifest manifest_;
  std::unique_ptr<FileLock> store_lock_;
  std::unique_ptr<FileLock> own_lock_;
  bool folder_made_ = false;
  Vector<PartWriter> parts_;
  std::unique_ptr<Base> base_;
  std::unique_ptr<Known> known_;
};

}  // namespace quern::checkpoint

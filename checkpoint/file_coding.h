// The tensors of files, coded one parameter after the other: what others need comes first.
#pragma once

#include "checkpoint/checkpoint_files.h"

namespace quern::checkpoint {

class FileCoding {
 public:
  /// Files and options outlive the coding.
  FileCoding(Vector<SafetensorsFile>& files, const FileSaveOptions& options, TaskRunner& runner);

  /// Roles, rules and order. Fails on what rules ask for and the files do not have.
  Status prepare(Report& report);
  /// Adds every tensor to the session, under its number in the order of the files.
  Status run(SaveSession& session, Report& report);
  Vector<TensorSummary> take_summaries() { return std::move(summaries_); }

 private:
  struct Entry;

  Status read_values(std::uint32_t index, AlignedBuffer& out, Report& report);
  /// What comes back of a tensor that is coded: held, or as it is in its file.
  Status read_decoded(std::uint32_t index, AlignedBuffer& scratch, std::span<const std::uint8_t>& out, Report& report);
  void add_with_needs(std::uint32_t index, Vector<std::uint8_t>& seen);
  Status code(std::uint32_t index, SaveSession& session, Report& report);
  Status code_copy(std::uint32_t index, TensorSource& source, SaveSession& session, Report& report);
  Status try_replay(std::uint32_t weight, SaveSession& session, Report& report);
  Status finish(std::uint32_t index, SavedTensor saved, AlignedBuffer decoded);
  TensorSource source_of(std::uint32_t index, std::span<const std::uint8_t> values) const;

  Vector<SafetensorsFile>& files_;
  const FileSaveOptions& options_;
  TaskRunner& runner_;
  Policy policy_;
  std::optional<ReplayRule> replay_;
  Vector<Entry> entries_;
  Vector<std::uint32_t> order_;
  Vector<TensorSummary> summaries_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

/// One tensor of all files.
struct FileCoding::Entry {
  std::size_t file = 0;
  const StoredTensor* tensor = nullptr;
  AssignedRole role;
  std::optional<LossyRequest> lossy;
  bool derived = false;                ///< a copy of what comes back of its companion
  std::optional<std::uint32_t> leads;  ///< the weight of its group, where that is to be replayed
  Vector<std::uint32_t> needs;         ///< to be coded before
  std::uint32_t waiting = 0;           ///< others that need it and are not coded yet
  bool coded = false;
  AlignedBuffer decoded;  ///< empty: the file has it
};

}  // namespace quern::checkpoint

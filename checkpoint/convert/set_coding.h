// Tensors that belong together, coded one parameter after the other: what others need comes first.
#pragma once

#include "checkpoint/convert/checkpoint_files.h"
#include "checkpoint/convert/tensor_set.h"

namespace quern::checkpoint {

class SetCoding {
 public:
  /// Set and options outlive the coding.
  SetCoding(TensorSet& set, const FileSaveOptions& options, TaskRunner& runner);

  /// Roles, rules and order. Fails on what rules ask for and the set does not have.
  Status prepare(Report& report);
  /// Adds every tensor to the session, under its number in the set.
  Status run(SaveSession& session, Report& report);
  /// After prepare(): the tensors in about the order in which run() asks for their values.
  const Vector<std::uint32_t>& order() const { return order_; }
  Vector<TensorSummary> take_summaries() { return std::move(summaries_); }

 private:
  struct Entry;
  struct GroupMember;

  /// What comes back of a tensor that is coded: held, or as it is in the set.
  Status read_decoded(std::uint32_t index, AlignedBuffer& scratch, std::span<const std::uint8_t>& out, Report& report);
  void match_places();
  template <class Body>
  void for_each_read(std::uint32_t index, const Body& body) const;
  void add_with_needs(std::uint32_t index, Vector<std::uint8_t>& seen);
  /// Tensors from place `first` of the order on that can be coded side by side.
  Vector<std::uint32_t> take_group(std::size_t first) const;
  bool fits_group(const Entry& entry) const;
  Status hash(std::span<const std::pair<std::uint32_t, std::span<const std::uint8_t>>> values);
  Status read_inputs(GroupMember& member, Report& report);
  Status code_group(const Vector<std::uint32_t>& group, SaveSession& session, Report& report);
  Status code_copy(std::uint32_t index, TensorSource& source, SaveSession& session, Report& report);
  Status try_replay(std::uint32_t weight, SaveSession& session, Report& report);
  Status finish(std::uint32_t index, SavedTensor saved, AlignedBuffer decoded);
  TensorSource source_of(std::uint32_t index, std::span<const std::uint8_t> values) const;

  TensorSet& set_;
  const FileSaveOptions& options_;
  TaskRunner& runner_;
  Policy policy_;
  std::optional<ReplayRule> replay_;
  Vector<Entry> entries_;
  Vector<std::uint32_t> order_;
  Vector<std::uint8_t> tried_;  ///< groups whose replay was tried, by their weights
  Vector<TensorSummary> summaries_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

/// One tensor of the set.
struct SetCoding::Entry {
  SetTensor tensor;
  AssignedRole role;
  std::optional<LossyRequest> lossy;
  bool reads_moments = false;  ///< for what was asked of it first: inputs that do not come true are read all the same
  bool derived = false;        ///< a copy of what comes back of its companion
  std::optional<std::uint32_t> leads;  ///< the weight of its group, where that is to be replayed
  Vector<std::uint32_t> needs;         ///< to be coded before
  std::uint32_t waiting = 0;           ///< others that need it and are not coded yet
  std::uint32_t readers = 0;           ///< tensors that are not coded yet and for which the set's values are read
  bool coded = false;
  AlignedBuffer decoded;              ///< empty: the set has it
  std::optional<ValueHashes> hashes;  ///< of what the set has, from its first use on
};

/// One sentence for each reason to store tensors without loss that were to lose something.
void add_fallback_notes(const Vector<TensorSummary>& tensors, Report& report);

}  // namespace quern::checkpoint

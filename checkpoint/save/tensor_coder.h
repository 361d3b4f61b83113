// One tensor on its way into a part: which ways of coding are tried, one after the other, and each way chunk by chunk.
#pragma once

#include <atomic>
#include <mutex>

#include "checkpoint/save/save.h"
#include "checkpoint/store/value_hashes.h"

namespace quern::checkpoint {

/// What a task codes a chunk in; serves any number of chunks, one at a time.
struct ChunkRoom {
  AlignedBuffer values;
  AlignedBuffer companion;
  AlignedBuffer scratch;
};

/// Rooms and blocks of a MiB that tasks hand on to each other, so that the system makes their pages once.
class SavingRooms {
 public:
  ChunkRoom take_room();
  void give_back(ChunkRoom room);
  /// A buffer of at least so many bytes.
  Status take_block(std::size_t bytes, AlignedBuffer& out);
  void give_back(AlignedBuffer block);

 private:
  std::mutex mutex_;
  Vector<ChunkRoom> rooms_;
  Vector<AlignedBuffer> blocks_;
};

/// A chunk as a record that is ready to be written. Without bytes when the attempt was given up.
struct CodedChunk {
  Record record;
  std::size_t coded_bytes = 0;
  AlignedBuffer memory;
  std::size_t bytes = 0;  ///< of memory
  AlignedBuffer decoded;  ///< of a mode that loses something, unless the source wants it
  std::size_t decoded_bytes = 0;

  std::span<const std::uint8_t> span() const { return {memory.data(), bytes}; }
};

/// The attempts: begin(), then code() for each record and absorb() in their order, then settle(), until done().
class TensorCoder : public Allocated {
 public:
  TensorCoder(const TensorSource& from, SavingRooms& rooms);

  TensorSource source;
  String where;
  ManifestTensor tensor;
  SavedTensor saved;
  LossyRequest absolute;  ///< what the source asks for, its bound not in deviations
  int zstd_level = 0;
  // The base, if there is one.
  bool has_base = false;
  AlignedBuffer base_values;
  AlignedBuffer direction;
  AlignedBuffer base_direction;  ///< empty: not known
  std::uint64_t base_key_bytes = 0;
  std::uint64_t base_chain_bytes = 0;
  std::uint32_t restore_percent = 0;

  /// Plans the next way of coding. Reads a sample of the values, or all of them.
  Status begin(TaskRunner& runner, Report& report);
  /// Codes chunk `index` of tensor.records(); from any thread, at most once an attempt.
  void code(std::uint32_t index, CodedChunk& out);
  void absorb(CodedChunk& chunk);
  /// Checks the attempt. The mode, its needs and what the tensor lost are known when done() says so.
  Status settle(Report& report);
  bool done() const { return done_; }
  /// Nothing that is coded now will be used.
  bool given_up() const { return given_up_.load(std::memory_order_relaxed); }

  Mode mode() const { return plan_.mode; }
  const codec::tensor::TensorNeeds& needs() const { return needs_; }

 private:
  enum class Way : std::uint8_t { constant, lossy, exact, lossy_again };

  codec::tensor::TensorInputs whole_inputs() const;
  Status code_chunk(std::uint32_t index, ChunkRoom& room, CodedChunk& out, Report& report);
  Status take_values(std::uint32_t index, ChunkRoom& room, Report& report);
  Status take_companion(std::uint32_t index, ChunkRoom& room, codec::tensor::TensorInputs& inputs, Report& report);
  Result<std::span<std::uint8_t>> take_decoded(std::uint32_t index, CodedChunk& out);
  /// Whether the values of a chunk as they come back keep the bound.
  void check_loss(std::span<const std::uint8_t> values, std::span<const std::uint8_t> decoded,
                  const codec::tensor::TensorInputs& inputs);
  Status changed(std::string_view name, Report& report);
  void give_up();
  void start_exact();
  void fall_back(std::string_view why);
  bool read_too_much() const;
  Status accept_loss();

  SavingRooms& rooms_;
  Way way_ = Way::exact;
  bool with_base_ = false;
  bool started_ = false;
  bool done_ = false;
  bool after_lossy_ = false;  ///< exact coding must be smaller than `lossy_bytes_`
  bool lossy_with_base_ = false;
  std::uint64_t lossy_bytes_ = 0;
  codec::tensor::TensorPlan plan_;
  codec::tensor::TensorNeeds needs_;
  TensorHead head_;
  std::uint64_t coded_bytes_ = 0;  ///< side and chunks
  ContentHasher decoded_hash_;
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;  ///< guards the rest
  bool kept_ = true;
  double worst_ = 0;
  double worst_absolute_ = 0;
  bool changed_ = false;
  std::uint32_t failed_chunk_ = UINT32_MAX;
  Status failure_;
  String failure_text_;
};

}  // namespace quern::checkpoint

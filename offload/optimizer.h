// Adam whose weights in binary32 and moments do not lie where training runs: in host memory under a limit, or in files
// in one or several folders. Moments are codes at rest (codecs/tensor/at_rest.h); the subgroups of a step are read
// ahead, updated and written behind, and the last ones stay in memory and are the first of the next step.
//
// A step that fails, or a process that dies, leaves the state before the step: subgroups are written to new files, and
// one small file, replaced at once, says which belong together.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "codecs/tensor/replay.h"
#include "libcompress/core/task_runner.h"
#include "offload/file_form.h"
#include "offload/folders.h"
#include "offload/schedule/choose_form.h"
#include "offload/subgroup_file.h"

namespace quern::offload {

struct OptimizerOptions {
  Vector<std::uint64_t> region_values;  ///< parameters with settings of their own; their numbers of values
  std::uint64_t subgroup_values = UINT64_C(1) << 24;
  codec::tensor::AtRestForm form;
  std::uint64_t seed = 0;          ///< of the rounding, of a new state
  Vector<FolderOptions> folders;   ///< none: everything stays in memory
  std::uint64_t memory_limit = 0;  ///< of subgroups in memory; 0: no limit
  std::size_t threads = 1;         ///< that update; 0: one a hardware thread
  bool io_threads = true;          ///< false: reads and writes are done by the caller, one after the other
  /// Files are synced before a step counts, so that it survives a power cut. Else it survives the death of the process.
  bool durable = false;
  FileForm file_form = FileForm::measured;
  bool record = false;  ///< keep what took place when in the last pass: step_spans()
};

/// Parameters of one region in a step; host memory, of the region's size.
struct RegionStep {
  codec::tensor::AdamSettings settings;  ///< `clip` and `step` are ignored
  codec::tensor::AtRestGradient gradient;
  std::uint16_t* copy = nullptr;  ///< gets the weights in bfloat16, unless null
  float* weights = nullptr;       ///< gets the weights in binary32, unless null
};

struct StepOptions {
  double loss_scale = 1;  ///< gradients are this times too large
  double max_norm = 0;    ///< of all gradients together; 0: no clipping
  /// A gradient with NaN or infinity leaves everything as it is, and the step is not counted. Else it is an error.
  bool skip_not_finite = true;
};

struct StepOutcome {
  bool skipped = false;
  double norm = 0;  ///< of all gradients, before clipping
};

/// Parts of a region, in binary32: what a load asks for and what a read gives. Null: not wanted, or zeros.
struct RegionPart {
  std::size_t region = 0;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  float* weights = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};
/// Fills in all three arrays of a part, at most 2^20 values of a region in one call.
using PartSource = std::function<Status(const RegionPart&)>;

/// What took place of late, for benches and pictures.
struct Usage {
  std::uint64_t memory_bytes = 0;  ///< of subgroups, now
  std::uint64_t most_memory_bytes = 0;
  std::uint64_t state_bytes = 0;       ///< of all subgroups, as they are stored
  std::uint64_t cached_reads = 0;      ///< subgroups that a step found in memory
  std::uint64_t packed_subgroups = 0;  ///< whose files are entropy coded
  Vector<FolderUse> folders;
};

/// What a step does, and what its caller waits for.
enum class StepActivity { read, update, write, wait_for_read, wait_for_memory, wait_for_writes };

/// In seconds from the beginning of the pass.
struct StepSpan {
  StepActivity activity = StepActivity::update;
  std::size_t folder = 0;  ///< of reads and writes
  std::size_t group = 0;
  double begin = 0;
  double end = 0;
};

/// Fills in bytes of a subgroup from `begin` on, as read_at_rest() gave them.
using AtRestSource = std::function<Status(std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out)>;

class Optimizer : public Allocated {
 public:
  /// Opens what the folders hold, which must be a state of these options, or begins a new one, which must be loaded
  /// before its first step. `invalid_argument` where options do not fit each other or the state, or a folder is in use;
  /// `memory_limit` where less than two subgroups fit. `files` and the current memory must outlive the optimizer.
  static Result<std::unique_ptr<Optimizer>> open(storage::FileSystem& files, OptimizerOptions options,
                                                 storage::Report& report);
  ~Optimizer();

  std::uint64_t step_count() const { return manifest_.step; }
  bool loaded() const { return loaded_; }
  std::span<const std::uint64_t> region_values() const { return manifest_.region_values; }

  /// Replaces the whole state by what `source` gives, after so many steps.
  Status load(std::uint64_t step_count, const PartSource& source, storage::Report& report);
  /// Gives values back, moments as their codes stand for.
  Status read(const RegionPart& part, storage::Report& report);

  /// For checkpoints: the state as it lies, without another encoding. First what it is: shape, form, seed, steps, and
  /// size and hash of each subgroup. The same bytes wherever the state lies.
  Result<Vector<std::uint8_t>> describe(storage::Report& report);
  std::size_t subgroup_count() const { return groups_.size(); }
  std::uint64_t subgroup_values(std::size_t group) const { return groups_[group].values; }
  /// Of what lies now; `invalid_argument` for a subgroup that there is not.
  Result<std::uint64_t> at_rest_bytes(std::size_t group, storage::Report& report) const;
  /// Bytes of a subgroup from `begin` on: its weights in binary32, then its moments (codecs/tensor/at_rest.h).
  Status read_at_rest(std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out, storage::Report& report);
  /// Replaces the whole state by a described one, bit for bit, with its seed and steps. The optimizer must have the
  /// same regions, subgroups and form. `checksum_mismatch` where bytes are not those that were described; any bytes may
  /// come. A failure leaves the state before, with folders.
  Status restore(std::span<const std::uint8_t> description, const AtRestSource& source, storage::Report& report);

  /// One step, with one entry a region. One thread at a time may call load, read and step.
  Result<StepOutcome> step(std::span<const RegionStep> regions, const StepOptions& options, storage::Report& report);
  Usage usage() const;
  /// What the rates of late are, as schedules are made for them; those of folders in bytes of memory, of which a file
  /// that is entropy coded has fewer. There is no kernel for GPUs: their rates are 0.
  Machine machine() const;
  /// What the simulator expects of the next step, with these rates; infinity while they are not known.
  double expected_seconds() const;
  /// Of the last load, read or step, with `record`.
  std::span<const StepSpan> step_spans() const { return spans_; }
  /// Fails in a child of a fork, where nothing but destroying may be done: the threads and locks are the parent's.
  Status check_process(storage::Report& report) const;

 private:
  enum class SlotState { empty, loading, ready, writing, failed };
  struct Slot {
    SubgroupData data;
    std::size_t group = 0;
    SlotState state = SlotState::empty;
    std::uint64_t bytes = 0;  ///< of `data`, or what it will be
    bool changed = false;     ///< holds what is not published yet
    Status status;
    storage::Report report;
  };
  struct Pass;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Optimizer(storage::FileSystem& files, OptimizerOptions options);
  Status prepare(storage::Report& report);
  Status open_folders(storage::Report& report);
  Status remove_strangers(storage::Report& report);
  Status make_slots(storage::Report& report);
  Status check_coders(storage::Report& report) const;
  std::uint64_t limit() const;
  bool may_pack() const;
  CodingRates coding_rates() const;
  void choose_forms();
  void count_coders();
  Status check_usable(storage::Report& report) const;

  Status run_pass(Pass& pass, storage::Report& report);
  Status finish_pass(Pass& pass, Status status, storage::Report& report);
  Vector<Job> jobs() const;
  void plan(Pass& pass);
  Vector<std::uint32_t> even_folders() const;
  void bring_forward(Pass& pass, std::size_t position);
  void record(StepActivity activity, std::size_t folder, std::size_t group, double begin);
  Status wait_for_subgroup(Pass& pass, std::size_t position, storage::Report& report);
  std::size_t find_slot(const Pass& pass, std::size_t position, std::size_t wanted) const;
  void empty_slot(std::size_t slot, bool frees);
  void read_ahead(const Pass& pass, std::size_t position);
  std::uint64_t stored_bytes(std::size_t group) const;
  void add_coded(bool writes, std::uint64_t plain_bytes, const Moved& moved);
  std::size_t make_room(const Pass& pass, std::size_t position);
  template <class Job>
  void post(Worker& worker, std::size_t slot, const Job& job);
  void begin_read(std::size_t slot);
  void begin_write(Pass& pass, std::size_t slot);
  void settle(std::size_t slot, SlotState state, const Status& status);
  Status first_failure(storage::Report& report);
  Status publish(const Manifest& next, storage::Report& report);
  void drop_changes(const Pass& pass);
  void count_memory(const Pass& pass, std::size_t position);
  Status read_part_of(SubgroupData& data, const Subgroup& group, const RegionPart& part);
  String path_of(std::size_t group, const StoredSubgroup& stored) const;
  bool in_files() const { return !folders_.empty(); }

  storage::FileSystem& files_;
  OptimizerOptions options_;
  const int process_;  ///< that opened it
  Vector<Subgroup> groups_;
  Manifest manifest_;
  bool loaded_ = false;
  bool broken_ = false;  ///< what the folders hold is not what is here
  std::uint64_t last_stamp_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;  ///< of slots, counted
  Vector<Slot> slots_;
  Vector<std::size_t> slot_of_;  ///< of each subgroup
  Usage usage_;
  storage::MovingRate update_rate_;  ///< of values
  std::uint64_t largest_bytes_ = 0;  ///< of a subgroup whose blocks all fit their codes
  bool packs_any_ = false;           ///< files were or will be entropy coded
  Vector<bool> packs_;               ///< of each folder: new files are entropy coded
  storage::MovingRate pack_rate_;    ///< of bytes as they lie in memory
  storage::MovingRate unpack_rate_;
  storage::MovingRate packed_share_;  ///< bytes of files for each byte in memory
  Vector<StepSpan> spans_;
  double pass_begin_ = 0;
  std::unique_ptr<RunnerHandle> runner_;
  Vector<std::unique_ptr<Folder>> folders_;  // last: their threads use all the rest
};

}  // namespace quern::offload

// What the opaque handles of <quern/checkpoint.h> are.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <quern/checkpoint.h>

#include "checkpoint/convert/added_tensor.h"
#include "checkpoint/policy/policy.h"
#include "checkpoint/policy/replay_rule.h"
#include "checkpoint/restore/restore.h"
#include "checkpoint/save/save.h"
#include "checkpoint/store/store.h"
#include "libcompress/capi/caller_memory.h"
#include "libcompress/capi/caller_runner.h"
#include "libcompress/core/task_runner.h"

struct quern_checkpoint_store {
  explicit quern_checkpoint_store(const quern_allocator& allocator) noexcept : memory(allocator) {}

  mutable quern::capi::CallerMemory memory;
  std::optional<quern::checkpoint::Store> store;
  std::optional<quern::capi::CallerRunner> runner;
  std::size_t threads = 1;
  bool may_write = false;
  void (*note)(void*, const char*) = nullptr;
  void* note_user = nullptr;

  /// What writers and readers run on; the caller's runner, or threads of their own.
  quern::Execution execution() {
    quern::Execution out;
    out.threads = threads;
    if (runner) out.runner = &*runner;
    return out;
  }
};

struct quern_checkpoint_writer : public quern::Allocated {
  explicit quern_checkpoint_writer(quern_checkpoint_store& of) : store(of), runner(of.execution()) {}

  quern_checkpoint_store& store;
  std::mutex mutex;
  quern::RunnerHandle runner;
  std::unique_ptr<quern::checkpoint::SaveSession> session;  ///< null once it is over
  quern::checkpoint::SaveOptions options;
  quern::checkpoint::Preset preset = quern::checkpoint::Preset::exact;
  quern::checkpoint::Policy policy;
  std::optional<quern::checkpoint::ReplayRule> replay;
  quern_progress progress = nullptr;
  void* progress_user = nullptr;
  quern::Vector<quern::checkpoint::AddedTensor> tensors;
  quern::checkpoint::TensorNames names;
  quern::checkpoint::TensorNames blobs;
};

namespace quern::checkpoint::capi {

/// A tensor as readers see it: the pieces it was saved in, by their numbers in the manifest.
struct WholeTensor {
  Shape shape;
  Vector<std::uint32_t> pieces;
};

}  // namespace quern::checkpoint::capi

struct quern_checkpoint_reader : public quern::Allocated {
  explicit quern_checkpoint_reader(quern_checkpoint_store& of)
      : store(of), runner(of.execution()), restorer(*of.store, runner.get()) {}

  quern_checkpoint_store& store;
  std::mutex mutex;
  quern::RunnerHandle runner;
  quern::checkpoint::Restorer restorer;
  quern::checkpoint::Manifest manifest;
  quern::Vector<quern::checkpoint::capi::WholeTensor> tensors;
  quern::Vector<std::pair<std::string_view, std::uint32_t>> by_name;  ///< sorted
};

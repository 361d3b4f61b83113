// Opening stores, and what is in them.
#include <algorithm>

#include "checkpoint/capi/call.h"
#include "libcompress/capi/versioned.h"

namespace quern::checkpoint::capi {
namespace {

struct DestroyStore {
  void operator()(quern_checkpoint_store* store) const { quern::capi::destroy_handle(store); }
};

Status check(const quern_checkpoint_store_desc& desc) {
  if (desc.mode != QUERN_CHECKPOINT_READ && desc.mode != QUERN_CHECKPOINT_WRITE)
    return Status(StatusCode::invalid_argument, "the mode must be QUERN_CHECKPOINT_READ or QUERN_CHECKPOINT_WRITE");
  if (desc.runner.run != nullptr && desc.runner.width == 0)
    return Status(StatusCode::invalid_argument, "runner.width is 0: it is how many tasks may run at once, at least 1");
  if (desc.reserved != 0) return Status(StatusCode::invalid_argument, "a reserved member is not 0");
  return quern::capi::check_allocator(desc.allocator);
}

Result<quern_checkpoint_store*> make_store(const quern_allocator& allocator) {
  try {
    return quern::capi::make_handle<quern_checkpoint_store>(allocator);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

/// Trailing slashes would give the folder another name in sentences and parents.
std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::Status;
using quern::String;

quern_status quern_checkpoint_store_open(const char* path, const quern_checkpoint_store_desc* given,
                                         quern_checkpoint_store** out) {
  if (out == nullptr) return ck::refuse("quern_checkpoint_store_open: the place for the store is NULL");
  *out = nullptr;
  if (path == nullptr || *path == '\0') return ck::refuse("quern_checkpoint_store_open: the path is NULL or empty");
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  if (given != nullptr) {
    const Status read = quern::capi::read_struct(given, desc);
    if (!read.ok()) return ck::refuse(read);
  }
  if (const Status checked = ck::check(desc); !checked.ok()) return ck::refuse(checked);
  const auto made = ck::make_store(desc.allocator);
  if (!made.ok()) return ck::refuse(made.status());
  std::unique_ptr<quern_checkpoint_store, ck::DestroyStore> store(*made);
  store->threads = desc.threads;
  store->may_write = desc.mode == QUERN_CHECKPOINT_WRITE;
  store->note = desc.note;
  store->note_user = desc.note_user;
  if (desc.runner.run != nullptr) store->runner.emplace(desc.runner);
  const quern_status status = ck::call(*store, [&](quern::checkpoint::Report& report) {
    QUERN_ASSIGN_OR_RETURN(auto opened, quern::checkpoint::Store::open(quern::checkpoint::system_files(),
                                                                       String(ck::without_slashes(path)), report));
    store->store.emplace(std::move(opened));
    return store->may_write ? store->store->make_folders(report) : store->store->check_is_store(report);
  });
  if (status == QUERN_OK) *out = store.release();
  return status;
}

void quern_checkpoint_store_close(quern_checkpoint_store* store) { quern::capi::destroy_handle(store); }

namespace {

/// Steps into the caller's room: all are counted, as many as fit are written.
quern_status write_steps(quern_checkpoint_store* store, std::uint64_t* steps, std::uint64_t capacity,
                         std::uint64_t* count, bool ascending) {
  return ck::call(*store, [&](quern::checkpoint::Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(auto names, store->store->list_current(report));
    if (ascending)
      std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i != 0 && names[i].step == names[i - 1].step) continue;
      if (found < capacity) steps[found] = names[i].step;
      ++found;
    }
    *count = found;
    return {};
  });
}

}  // namespace

quern_status quern_checkpoint_steps(quern_checkpoint_store* store, uint64_t* steps, uint64_t capacity,
                                    uint64_t* count) {
  if (store == nullptr || count == nullptr || (steps == nullptr && capacity != 0))
    return ck::refuse("quern_checkpoint_steps: NULL argument");
  return write_steps(store, steps, capacity, count, true);
}

quern_status quern_checkpoint_history(quern_checkpoint_store* store, uint64_t* steps, uint64_t capacity,
                                      uint64_t* count) {
  if (store == nullptr || count == nullptr || (steps == nullptr && capacity != 0))
    return ck::refuse("quern_checkpoint_history: NULL argument");
  return write_steps(store, steps, capacity, count, false);
}

quern_status quern_checkpoint_newest_base(quern_checkpoint_store* store, uint64_t* step) {
  if (store == nullptr || step == nullptr) return ck::refuse("quern_checkpoint_newest_base: NULL argument");
  return ck::call(*store, [&](quern::checkpoint::Report& report) -> Status {
    const std::uint32_t distance = quern::checkpoint::SaveOptions().key_distance;
    QUERN_ASSIGN_OR_RETURN(const auto key, quern::checkpoint::find_newest_key(*store->store, distance, report));
    *step = key.value_or(QUERN_CHECKPOINT_NO_BASE);
    return {};
  });
}

// The text of the thread's last error, and notes.
#include "checkpoint/capi/call.h"

namespace quern::checkpoint::capi {

ErrorLine& thread_error() {
  thread_local ErrorLine error;
  return error;
}

void set_error(const Report& report, const Status& status) {
  if (report.problem.empty()) return thread_error().set(status);
  thread_error().set(report.problem);
}

void hand_notes(const quern_checkpoint_store& store, const Report& report) {
  if (store.note == nullptr) return;
  for (const String& note : report.notes) store.note(store.note_user, note.c_str());
}

}  // namespace quern::checkpoint::capi

const char* quern_checkpoint_last_error(void) { return quern::checkpoint::capi::thread_error().c_str(); }

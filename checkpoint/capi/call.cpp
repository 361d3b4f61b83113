// The text of the thread's last error, and notes.
#include "checkpoint/capi/call.h"

#include <algorithm>

namespace quern::checkpoint::capi {

void ErrorText::set(std::string_view text) {
  const std::size_t length = std::min(text.size(), text_.size() - 1);
  std::copy_n(text.data(), length, text_.data());
  text_[length] = '\0';
}

void ErrorText::set(const Report& report, const Status& status) {
  if (!report.problem.empty()) return set(report.problem);
  const std::size_t used = status.write_text(text_);
  (void)used;
}

ErrorText& thread_error() {
  thread_local ErrorText error;
  return error;
}

void hand_notes(const quern_checkpoint_store& store, const Report& report) {
  if (store.note == nullptr) return;
  for (const String& note : report.notes) store.note(store.note_user, note.c_str());
}

}  // namespace quern::checkpoint::capi

const char* quern_checkpoint_last_error(void) { return quern::checkpoint::capi::thread_error().c_str(); }

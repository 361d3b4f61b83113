// Where C++ meets C: runs a call in the store's memory, turns Status, sentence and exceptions into a status number and
// the text of the thread's last error, and hands notes to the caller.
#pragma once

#include <array>
#include <exception>
#include <new>
#include <string_view>

#include "checkpoint/capi/handles.h"
#include "checkpoint/storage.h"

namespace quern::checkpoint::capi {

/// One line of text that never allocates; longer ones are cut.
class ErrorText {
 public:
  void set(std::string_view text);
  /// The sentence of the report, or where there is none the text of the status.
  void set(const Report& report, const Status& status);
  const char* c_str() const { return text_.data(); }

 private:
  std::array<char, 2048> text_{};
};

/// The text of the calling thread.
ErrorText& thread_error();

void hand_notes(const quern_checkpoint_store& store, const Report& report);

/// Runs `body`, which returns a Status and keeps its sentence in the Report it is given. `store` says where memory
/// comes from and who hears notes.
template <class Body>
quern_status call(quern_checkpoint_store& store, const Body& body) noexcept {
  const MemoryScope scope(&store.memory);
  ErrorText& error = thread_error();
  try {
    Report report;
    const Status status = body(report);
    if (!status.ok()) error.set(report, status);
    hand_notes(store, report);
    return static_cast<quern_status>(status.code());
  } catch (const std::bad_alloc&) {
    error.set("out of memory");
    return QUERN_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    error.set("an exception of the library or of a callback; please report it");
  } catch (...) {
    error.set("a foreign exception, from a callback perhaps");
  }
  return QUERN_ERROR_INTERNAL;
}

/// The answer of a call that cannot begin.
inline quern_status refuse(const char* sentence) noexcept {
  thread_error().set(sentence);
  return QUERN_ERROR_INVALID_ARGUMENT;
}

/// The answer of a call whose struct is not understood, or the like.
inline quern_status refuse(const Status& status) noexcept {
  thread_error().set(Report{}, status);
  return static_cast<quern_status>(status.code());
}

}  // namespace quern::checkpoint::capi

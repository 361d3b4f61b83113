// Where C++ meets C: runs a call in the store's memory, turns Status, sentence and exceptions into a status number and
// the text of the thread's last error, and hands notes to the caller.
#pragma once

#include <exception>
#include <new>

#include "checkpoint/capi/handles.h"
#include "checkpoint/storage.h"
#include "libcompress/capi/error_line.h"

namespace quern::checkpoint::capi {

/// The text of the calling thread.
using quern::capi::ErrorLine;
ErrorLine& thread_error();
/// The sentence of the report, or where there is none the text of the status.
void set_error(const Report& report, const Status& status);

void hand_notes(const quern_checkpoint_store& store, const Report& report);

/// Runs `body`, which returns a Status and keeps its sentence in the Report it is given. `store` says where memory
/// comes from and who hears notes.
template <class Body>
quern_status call(quern_checkpoint_store& store, const Body& body) noexcept {
  const MemoryScope scope(&store.memory);
  ErrorLine& error = thread_error();
  try {
    Report report;
    const Status status = body(report);
    if (!status.ok()) set_error(report, status);
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
  thread_error().set(status);
  return static_cast<quern_status>(status.code());
}

}  // namespace quern::checkpoint::capi

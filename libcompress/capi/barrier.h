// Where C++ meets C: runs a call, turns Status and exceptions into a quern_status and one line of text.
#pragma once

#include <exception>
#include <memory_resource>
#include <new>

#include <quern/memory.h>
#include <quern/quern.h>
#include <quern/status.h>

#include "libcompress/capi/error_line.h"

namespace quern::capi {

/// The text of calls without a context.
ErrorLine& thread_error();

/// Runs `body`, which returns a Status; nothing it throws gets out. What it allocates comes from `memory`.
template <class Body>
quern_status guarded(ErrorLine& error, std::pmr::memory_resource* memory, const Body& body) noexcept {
  const MemoryScope scope(memory);
  Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = Status(StatusCode::out_of_memory, "out of memory");
  } catch (const std::exception&) {
    status = Status(StatusCode::internal, "an exception of the library or of a callback; please report it");
  } catch (...) {
    status = Status(StatusCode::internal, "a foreign exception, from a callback perhaps");
  }
  if (status.ok()) {
    error.clear();
  } else {
    error.set(status);
  }
  return static_cast<quern_status>(status.code());
}

/// A call without memory of its own.
template <class Body>
quern_status guarded(ErrorLine& error, const Body& body) noexcept {
  return guarded(error, std::pmr::new_delete_resource(), body);
}

inline Status null_argument(const char* message) { return Status(StatusCode::invalid_argument, message); }

}  // namespace quern::capi

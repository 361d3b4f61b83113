// Where C++ meets C: runs a call in the handle's memory and turns Status and exceptions into a status number and the
// text of the thread's last error.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include <quern/lidar.h>

#include "libcompress/capi/error_line.h"
#include "lidar/capi/handles.h"

namespace quern::lidar::capi {

/// The text of the calling thread.
using quern::capi::ErrorLine;
ErrorLine& thread_error();

/// Runs `body`, which returns a Status; `where` names the file, and the frame where there is one.
template <class Body>
quern_status call(quern::capi::CallerMemory& memory, std::string_view where, const Body& body) noexcept {
  const MemoryScope scope(&memory);
  ErrorLine& error = thread_error();
  try {
    const Status status = body();
    if (!status.ok()) error.set(where, status);
    return static_cast<quern_status>(status.code());
  } catch (const std::bad_alloc&) {
    error.set("out of memory");
    return QUERN_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    error.set("an exception of the library or of a callback; please report it");
  }
  return QUERN_ERROR_INTERNAL;
}

/// The answer of a call that cannot begin.
inline quern_status refuse(const char* sentence) noexcept {
  thread_error().set(sentence);
  return QUERN_ERROR_INVALID_ARGUMENT;
}
inline quern_status refuse(const Status& status) noexcept {
  thread_error().set(status);
  return static_cast<quern_status>(status.code());
}

/// After a call that failed with `status`: the sentence of a history in place of the status's, and the number that says
/// that a history lacks something, where it does.
quern_status tell_history(quern_status status, std::string_view where, std::string_view problem, bool is_lost) noexcept;

/// The caller's wishes, or those of NULL; checked.
Result<quern_lidar_execution> read_execution(const quern_lidar_execution* given);

/// A handle in the caller's memory, or null with the thread's error set.
template <class Handle>
Handle* make(const quern_lidar_execution& execution) noexcept {
  try {
    auto* const handle = quern::capi::make_handle<Handle>(execution.allocator);
    handle->take(execution);
    return handle;
  } catch (const std::bad_alloc&) {
    thread_error().set("out of memory");
    return nullptr;
  }
}

/// A copy of the caller's cloud. Fails with invalid_argument.
Result<PointCloud> read_cloud_desc(const quern_lidar_cloud_desc* given);

/// A cloud as a handle of its own, with its memory from `execution`.
quern_status give_cloud(PointCloud cloud, quern_lidar_cloud& handle);

}  // namespace quern::lidar::capi

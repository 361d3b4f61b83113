// The HDF5 error stack: the only place where the plugin says what went wrong. And the barrier every C entry stands
// behind.
#pragma once

#include <exception>
#include <new>

#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {

/// Puts one line on the stack, in the error class "quern"; never fails, at worst the line is missing.
void push_error(const char* function, Trouble trouble, const char* text) noexcept;

/// Runs the body of a C entry. Whatever it throws becomes a line on the error stack and the value `failed`.
template <class T, class Body>
T guarded(const char* function, T failed, const Body& body) noexcept {
  try {
    return body();
  } catch (const Problem& problem) {
    push_error(function, problem.trouble(), problem.what());
  } catch (const std::bad_alloc&) {
    push_error(function, Trouble::resource, "out of memory");
  } catch (const std::exception& error) {
    push_error(function, Trouble::resource, error.what());
  } catch (...) {
    push_error(function, Trouble::resource, "an unknown exception; please report it");
  }
  return failed;
}

}  // namespace quern::hdf5

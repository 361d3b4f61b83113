// Stand-in for CUB: device-wide scans and reductions, with its protocol of two calls: the first, without temporary
// storage, says how much of it there must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <type_traits>

#include "cuda_runtime.h"
#include "simt/queued_algorithm.h"

namespace cub {
namespace detail {

/// Answers the first call, and queues the work of the second.
template <class Body>
cudaError_t two_calls(void* temporary, std::size_t& temporary_bytes, std::size_t count, cudaStream_t stream,
                      Body body) {
  const std::size_t needed = 1024 + 16 * (count / 1024);
  if (temporary == nullptr) {
    temporary_bytes = needed;
    return cudaSuccess;
  }
  if (temporary_bytes < needed) return cudaErrorInvalidValue;
  return ::simt::queue_algorithm(stream, temporary, needed, std::move(body));
}

template <class Iterator>
using ValueOf = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;

}  // namespace detail

struct DeviceScan {
  /// `out` may be `in`.
  template <class In, class Out, class Count>
  static cudaError_t ExclusiveSum(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    return detail::two_calls(temporary, temporary_bytes, static_cast<std::size_t>(count), stream, [=] {
      detail::ValueOf<In> sum{};
      for (Count i = 0; i < count; ++i) {
        const detail::ValueOf<In> value = in[i];
        out[i] = sum;
        sum = static_cast<detail::ValueOf<In>>(sum + value);
      }
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t InclusiveSum(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    return detail::two_calls(temporary, temporary_bytes, static_cast<std::size_t>(count), stream, [=] {
      detail::ValueOf<In> sum{};
      for (Count i = 0; i < count; ++i) {
        sum = static_cast<detail::ValueOf<In>>(sum + in[i]);
        out[i] = sum;
      }
    });
  }
};

struct DeviceReduce {
  template <class In, class Out, class Count, class Operator, class T>
  static cudaError_t Reduce(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count, Operator op,
                            T initial, cudaStream_t stream = nullptr) {
    return detail::two_calls(temporary, temporary_bytes, static_cast<std::size_t>(count), stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) sum = static_cast<T>(op(sum, in[i]));
      *out = sum;
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t Sum(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    return Reduce(temporary, temporary_bytes, in, out, count, std::plus<>{}, detail::ValueOf<In>{}, stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Min(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = detail::ValueOf<In>;
    const auto smaller = [](const T& a, const T& b) { return b < a ? b : a; };
    return Reduce(temporary, temporary_bytes, in, out, count, smaller, std::numeric_limits<T>::max(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Max(void* temporary, std::size_t& temporary_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = detail::ValueOf<In>;
    const auto larger = [](const T& a, const T& b) { return a < b ? b : a; };
    return Reduce(temporary, temporary_bytes, in, out, count, larger, std::numeric_limits<T>::lowest(), stream);
  }
};

}  // namespace cub

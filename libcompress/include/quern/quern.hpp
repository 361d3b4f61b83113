// The C interface quern.h for C++17: handles that destroy themselves, failures thrown as Error, nothing to link but
// libquern. Header only, over the stable functions alone. Nothing is kept: arrays and streams are borrowed for the time
// of a call.
//
//   quern::Context context;
//   const quern::Params params("abs=1e-3");
//   const quern::ConstArray field(values.data(), {64, 128, 128});  // slowest axis first
//   const std::vector<std::uint8_t> stream = quern::compress(context, params, field);
//   quern::decompress(context, stream, quern::Array(back.data(), {64, 128, 128}));
//
// Everything is defined in the namespace quernxx, which the namespace quern opens to its users at the end of this file.
// Why not in quern itself: that namespace belongs to the library's own C++, which has a compress, an inspect and a
// StreamInfo too and whose symbols are in libquern.a. Two different functions of one name would be a clash in whoever
// links the archive, and in the library's tests, which include both. With the namespace opened, not shared, a
// declaration of the library's own headers wins over the one here without ambiguity; a file that includes both says
// quernxx::compress for these.
#ifndef QUERN_QUERN_HPP
#define QUERN_QUERN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <quern/quern.h>

namespace quernxx {

/// What a call reports; the members are described in quern.h.
using Report = quern_report;
using StreamInfo = quern_stream_info;
using Verdict = quern_verdict;
using Quality = quern_quality;

/// A call that failed: its status, and as what() one line that says what is wrong.
class Error : public std::runtime_error {
 public:
  Error(quern_status status, const std::string& text) : std::runtime_error(text), status_(status) {}

  /// One of the QUERN_ERROR_ values.
  [[nodiscard]] quern_status status() const noexcept { return status_; }
  /// Its short stable name, as "checksum_mismatch".
  [[nodiscard]] const char* name() const noexcept { return quern_status_name(status_); }

 private:
  quern_status status_;
};

namespace detail {

/// Throws unless `status` is QUERN_OK; `context` is the one that was called, NULL where the call takes none.
inline void check(quern_status status, const quern_context* context = nullptr) {
  if (status == QUERN_OK) return;
  const char* text = quern_last_error(context);
  throw Error(status, *text != '\0' ? text : quern_status_name(status));
}

}  // namespace detail

/// The element type of C++ numbers. float16 and bfloat16 have no type in C++17: pass their memory with its quern_dtype.
template <class T>
constexpr quern_dtype dtype_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                "quern has no such element type; for 16-bit floating point give a void pointer and the quern_dtype");
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? QUERN_F32 : QUERN_F64;
  } else {
    constexpr quern_dtype first = std::is_signed_v<T> ? QUERN_I8 : QUERN_U8;
    return first + (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3);
  }
}

/// A few numbers, one for each axis, slowest first: extents, strides, or a corner of a box. None: a single element.
template <class Number>
class Axes {
 public:
  Axes() = default;
  Axes(std::initializer_list<Number> values) : Axes(values.begin(), values.end()) {}
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Axes(Iterator first, Iterator last) {
    const auto count = std::distance(first, last);
    if (count < 0 || count > QUERN_MAX_RANK)
      throw Error(QUERN_ERROR_INVALID_SHAPE, std::to_string(count) + " axes; an array has 0 to 8");
    rank_ = static_cast<std::uint32_t>(count);
    std::transform(first, last, values_, [](const auto& value) { return static_cast<Number>(value); });
  }

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] const Number* data() const noexcept { return values_; }
  [[nodiscard]] const Number* begin() const noexcept { return values_; }
  [[nodiscard]] const Number* end() const noexcept { return values_ + rank_; }
  Number operator[](std::size_t axis) const noexcept { return values_[axis]; }

 private:
  std::uint32_t rank_ = 0;
  Number values_[QUERN_MAX_RANK] = {};
};
using Extents = Axes<std::uint64_t>;
using Strides = Axes<std::int64_t>;

/// The extents a stream states.
inline Extents extents_of(const StreamInfo& info) { return {info.extents, info.extents + info.rank}; }

/// An array in the caller's memory, to be read. Contiguous in C order unless strides are given.
class ConstArray {
 public:
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  ConstArray(const T* data, const Extents& extents)
      : ConstArray(static_cast<const void*>(data), dtype_of<T>(), extents) {}
  /// Memory of a type that only its quern_dtype tells.
  template <class Void, class = std::enable_if_t<std::is_void_v<Void>>>
  ConstArray(const Void* data, quern_dtype dtype, const Extents& extents) {
    // The descriptor has one pointer for reading and writing; only Array hands it to functions that write.
    detail::check(quern_array_init(&array_, dtype, extents.rank(), extents.data(), const_cast<void*>(data)));
  }
  /// Strides in elements; they may be negative, with `data` the element of index 0. The array is then packed into a
  /// copy.
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  ConstArray(const T* data, const Extents& extents, const Strides& strides) : ConstArray(data, extents) {
    set_strides(strides);
  }
  template <class Void, class = std::enable_if_t<std::is_void_v<Void>>>
  ConstArray(const Void* data, quern_dtype dtype, const Extents& extents, const Strides& strides)
      : ConstArray(data, dtype, extents) {
    set_strides(strides);
  }
  /// A descriptor made elsewhere, as by quern_array_from_dlpack.
  explicit ConstArray(const quern_array& array) : array_(array) {}

  [[nodiscard]] const quern_array* get() const noexcept { return &array_; }

 protected:
  quern_array array_;

 private:
  void set_strides(const Strides& strides) {
    if (strides.rank() != array_.rank)
      throw Error(QUERN_ERROR_INVALID_SHAPE, "the array has " + std::to_string(array_.rank) + " axes and " +
                                                 std::to_string(strides.rank()) + " strides were given");
    std::copy(strides.begin(), strides.end(), array_.strides);
  }
};

/// An array in the caller's memory, to be written; it may also be read.
class Array : public ConstArray {
 public:
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  Array(T* data, const Extents& extents) : ConstArray(data, extents) {
    static_assert(!std::is_const_v<T>, "decoding writes: the memory must not be const");
  }
  template <class Void, class = std::enable_if_t<std::is_void_v<Void>>>
  Array(Void* data, quern_dtype dtype, const Extents& extents) : ConstArray(data, dtype, extents) {}
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  Array(T* data, const Extents& extents, const Strides& strides) : ConstArray(data, extents, strides) {
    static_assert(!std::is_const_v<T>, "decoding writes: the memory must not be const");
  }
  template <class Void, class = std::enable_if_t<std::is_void_v<Void>>>
  Array(Void* data, quern_dtype dtype, const Extents& extents, const Strides& strides)
      : ConstArray(data, dtype, extents, strides) {}
  explicit Array(const quern_array& array) : ConstArray(array) {}

  using ConstArray::get;
  [[nodiscard]] quern_array* get() noexcept { return &array_; }
};

/// Bytes of the caller's, read for the time of a call.
class Bytes {
 public:
  Bytes(const void* data, std::size_t size) : data_(data), size_(size) {}
  /// Anything contiguous whose elements are bytes: std::vector<std::uint8_t>, std::string, std::array<std::byte, N>.
  template <class Container, class Element = std::remove_pointer_t<decltype(std::declval<const Container&>().data())>,
            class = std::enable_if_t<sizeof(Element) == 1>>
  Bytes(const Container& container) : data_(container.data()), size_(container.size()) {}

  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  const void* data_;
  std::size_t size_;
};

/// Who runs and how much memory a call may take. Movable; for one thread at a time.
class Context {
 public:
  /// `threads`: 1 the calling thread alone, 0 one a hardware thread. `memory_limit` in bytes, 0 for none.
  explicit Context(std::uint32_t threads = 1, std::uint64_t memory_limit = 0) {
    quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
    desc.threads = threads;
    desc.memory_limit = memory_limit;
    open(desc);
  }
  /// With a runner or a progress function, which must not throw.
  explicit Context(const quern_context_desc& desc) { open(desc); }

  [[nodiscard]] quern_context* get() const noexcept { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(quern_context* context) const noexcept { quern_context_destroy(context); }
  };

  void open(const quern_context_desc& desc) {
    if (quern_abi_version() < QUERN_ABI_VERSION)
      throw Error(QUERN_ERROR_UNSUPPORTED, std::string("the program was compiled for a newer libquern than ") +
                                               quern_version_string() + ", which it runs with");
    quern_context* context = nullptr;
    detail::check(quern_context_create(&desc, &context));
    handle_.reset(context);
  }

  std::unique_ptr<quern_context, Destroy> handle_;
};

/// What is wanted: bound, codec, settings, fill values, metadata. Starts as lossless, codec auto. Movable.
class Params {
 public:
  Params() {
    quern_params* params = nullptr;
    detail::check(quern_params_create(&params));
    handle_.reset(params);
  }
  /// As text: "abs=1e-3 codec=lorenzo".
  explicit Params(const std::string& text) : Params() { parse(text); }

  Params& parse(const std::string& text) {
    detail::check(quern_params_parse(get(), text.c_str()));
    return *this;
  }
  Params& bound(quern_bound_kind kind, double value = 0) {
    detail::check(quern_params_set_bound(get(), kind, value));
    return *this;
  }
  Params& set(const std::string& key, const std::string& value) {
    detail::check(quern_params_set(get(), key.c_str(), value.c_str()));
    return *this;
  }
  [[nodiscard]] std::string get(const std::string& key) const {
    std::size_t needed = 0;
    detail::check(quern_params_get(get(), key.c_str(), nullptr, 0, &needed));
    std::string value(needed, '\0');
    detail::check(quern_params_get(get(), key.c_str(), value.data(), value.size(), nullptr));
    value.pop_back();
    return value;
  }
  /// A value that marks missing data, of the type of the arrays.
  template <class T>
  Params& add_fill(T value) {
    return add_fill(dtype_of<T>(), &value);
  }
  Params& add_fill(quern_dtype dtype, const void* element) {
    detail::check(quern_params_add_fill(get(), dtype, element));
    return *this;
  }
  /// Bytes kept in the stream for its readers; copied.
  Params& metadata(Bytes bytes) {
    detail::check(quern_params_set_metadata(get(), bytes.data(), bytes.size()));
    return *this;
  }

  [[nodiscard]] quern_params* get() noexcept { return handle_.get(); }
  [[nodiscard]] const quern_params* get() const noexcept { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(quern_params* params) const noexcept { quern_params_destroy(params); }
  };
  std::unique_ptr<quern_params, Destroy> handle_;
};

/// A size in bytes that no stream of this array exceeds. O(1).
[[nodiscard]] inline std::uint64_t compress_bound(const Params& params, const ConstArray& array) {
  std::uint64_t bytes = 0;
  detail::check(quern_compress_bound(array.get(), params.get(), &bytes));
  return bytes;
}

/// Compresses into the caller's memory and returns the stream's size in bytes; compress_bound() bytes are always
/// enough, less may be QUERN_ERROR_DESTINATION_TOO_SMALL. `report` may be null.
inline std::size_t compress_into(Context& context, const Params& params, const ConstArray& array, void* stream,
                                 std::size_t capacity, Report* report = nullptr) {
  std::uint64_t size = 0;
  detail::check(quern_compress(context.get(), params.get(), array.get(), stream, capacity, &size, report),
                context.get());
  return static_cast<std::size_t>(size);
}

/// The stream of an array. Takes compress_bound() bytes for the time of the call, beside what the context's limit
/// counts.
[[nodiscard]] inline std::vector<std::uint8_t> compress(Context& context, const Params& params, const ConstArray& array,
                                                        Report* report = nullptr) {
  const auto room = static_cast<std::size_t>(compress_bound(params, array));
  const std::unique_ptr<std::uint8_t[]> bytes(new std::uint8_t[room]);  // not cleared: it is as large as the array
  const std::size_t size = compress_into(context, params, array, bytes.get(), room, report);
  return {bytes.get(), bytes.get() + size};
}

/// Decodes the whole stream into `array`, whose type and extents must be the stream's.
inline void decompress(Context& context, Bytes stream, Array array) {
  detail::check(quern_decompress(context.get(), stream.data(), stream.size(), array.get()), context.get());
}

/// The same, and looks for hardware faults (quern_decompress_checked).
inline void decompress_checked(Context& context, Bytes stream, Array array) {
  detail::check(quern_decompress_checked(context.get(), stream.data(), stream.size(), array.get()), context.get());
}

/// Decodes the half-open box [begin, end) alone; `array` has the box's extents.
inline void region(Context& context, Bytes stream, const Extents& begin, const Extents& end, Array array) {
  const std::uint32_t rank = array.get()->rank;
  if (begin.rank() != rank || end.rank() != rank)
    throw Error(QUERN_ERROR_INVALID_SHAPE, "region: the corners have " + std::to_string(begin.rank()) + " and " +
                                               std::to_string(end.rank()) + " axes, the array has " +
                                               std::to_string(rank));
  detail::check(
      quern_decompress_region(context.get(), stream.data(), stream.size(), begin.data(), end.data(), array.get()),
      context.get());
}

/// How many coarse levels a stream has beside the array itself.
[[nodiscard]] inline std::uint32_t levels(Context& context, Bytes stream) {
  std::uint32_t count = 0;
  detail::check(quern_level_extents(context.get(), stream.data(), stream.size(), 0, &count, nullptr), context.get());
  return count;
}

/// Decodes a coarse level: of every axis all places, or those whose numbers are multiples of 2^level (under the wavelet
/// layout, means around those of each chunk). `array` has the level's extents, which quern_level_extents() tells.
inline void decompress_level(Context& context, Bytes stream, std::uint32_t level, Array array) {
  detail::check(quern_decompress_level(context.get(), stream.data(), stream.size(), level, array.get()), context.get());
}

/// What the header of a stream says; the bytes may end after it.
[[nodiscard]] inline StreamInfo inspect(Bytes stream) {
  StreamInfo info = QUERN_STREAM_INFO_INIT;
  detail::check(quern_inspect(stream.data(), stream.size(), &info));
  return info;
}

/// Decodes the whole stream into memory of its own. A header can claim any number of elements: a stream of more than
/// `most_elements` is QUERN_ERROR_MEMORY_LIMIT, one of another type than T QUERN_ERROR_INVALID_ARGUMENT.
template <class T>
[[nodiscard]] std::vector<T> decompress(Context& context, Bytes stream, std::uint64_t most_elements) {
  const StreamInfo info = inspect(stream);
  if (info.dtype != dtype_of<T>())
    throw Error(QUERN_ERROR_INVALID_ARGUMENT,
                "decompress: the stream's element type is another than the one asked for");
  const Extents extents = extents_of(info);
  std::uint64_t elements = std::find(extents.begin(), extents.end(), std::uint64_t{0}) != extents.end() ? 0 : 1;
  for (const std::uint64_t extent : extents) {
    if (elements != 0 && extent > most_elements / elements)
      throw Error(QUERN_ERROR_MEMORY_LIMIT,
                  "decompress: the stream has more than " + std::to_string(most_elements) + " elements");
    elements *= extent;
  }
  std::vector<T> values(static_cast<std::size_t>(elements));
  decompress(context, stream, Array(values.data(), extents));
  return values;
}

/// Decodes the stream and compares it with `original` under the bound the stream states. The verdict counts violations,
/// which are an answer and no Error; none: the bound holds.
[[nodiscard]] inline Verdict verify(Context& context, const ConstArray& original, Bytes stream) {
  Verdict verdict = QUERN_VERDICT_INIT;
  const quern_status status = quern_verify(context.get(), original.get(), stream.data(), stream.size(), &verdict);
  if (status != QUERN_ERROR_BOUND_NOT_MET) detail::check(status, context.get());
  return verdict;
}

/// How good `reconstructed` is; two arrays of equal type and extents.
[[nodiscard]] inline Quality compare(Context& context, const ConstArray& original, const ConstArray& reconstructed) {
  Quality quality = QUERN_QUALITY_INIT;
  detail::check(quern_compare(context.get(), nullptr, original.get(), reconstructed.get(), &quality), context.get());
  return quality;
}

/// The same, where the fill values of `params` do not count.
[[nodiscard]] inline Quality compare(Context& context, const Params& params, const ConstArray& original,
                                     const ConstArray& reconstructed) {
  Quality quality = QUERN_QUALITY_INIT;
  detail::check(quern_compare(context.get(), params.get(), original.get(), reconstructed.get(), &quality),
                context.get());
  return quality;
}

}  // namespace quernxx

namespace quern {
using namespace quernxx;
}

#endif

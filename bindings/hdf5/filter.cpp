// can_apply, set_local and the callback. HDF5 calls them under its lock, one at a time.
#include "bindings/hdf5/filter.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <quern/hdf5.h>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/dataset.h"
#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/error_stack.h"

namespace quern::hdf5 {
namespace {

struct H5MemoryDeleter {
  void operator()(void* memory) const { H5free_memory(memory); }
};
/// Memory of the pair HDF5 frees buffers with, whatever C runtime this plugin has.
using H5Memory = std::unique_ptr<void, H5MemoryDeleter>;

H5Memory allocate(std::uint64_t bytes) {
  H5Memory out(H5allocate_memory(static_cast<std::size_t>(bytes), false));
  if (out == nullptr)
    throw Problem(Trouble::resource, "no memory for the " + std::to_string(bytes) + " bytes of a chunk");
  return out;
}

std::uint32_t environment_threads() {
  const char* text = std::getenv("QUERN_HDF5_THREADS");  // NOLINT(concurrency-mt-unsafe): only read
  if (text == nullptr || *text == '\0') return 1;
  std::uint32_t threads = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, threads);
  if (error != std::errc() || stop != end || threads > 1024)
    throw Problem(Trouble::request, std::string("QUERN_HDF5_THREADS=") + text +
                                        ": give a number of threads, 0 for one a hardware thread, or unset it");
  return threads;
}

void replace_buffer(H5Memory fresh, std::uint64_t capacity, std::size_t* buf_size, void** buf) {
  H5free_memory(*buf);
  *buf = fresh.release();
  *buf_size = static_cast<std::size_t>(capacity);
}

std::size_t encode(std::size_t count, const unsigned* words, std::size_t bytes, std::size_t* capacity, void** buf) {
  const Request request = parse_request(words, count);
  const ChunkLayout layout = parse_layout(words, count);
  if (!layout.known())
    throw Problem(Trouble::request,
                  "the filter's settings do not say what the chunks are (cd_values[6] and on are 0): either quern "
                  "cannot serve this dataset, or they were lost after it was created");
  if (layout.bytes() != bytes)
    throw Problem(Trouble::request, "a chunk of " + std::to_string(bytes) +
                                        " bytes came in, but by the settings it is " + layout.text() +
                                        "; another filter may stand before quern");
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = environment_threads();
  ChunkEncoder encoder(request, layout, desc, ChunkEncoder::Use::again);
  const std::uint64_t room = encoder.max_stream_bytes();
  if (room > kMaxChunkBytes) throw Problem(Trouble::request, "a chunk of " + layout.text() + " is too large for HDF5");
  H5Memory stream = allocate(room);
  std::uint64_t size = 0;
  if (needs_swap(layout.big_endian)) {
    // A copy: the chunk is stored as it came in when an optional filter fails.
    const H5Memory swapped = allocate(bytes);
    std::memcpy(swapped.get(), *buf, bytes);
    swap_elements(swapped.get(), layout.elems(), dtype_bytes(static_cast<std::uint32_t>(layout.dtype)));
    size = encoder.encode(swapped.get(), stream.get(), room);
  } else {
    size = encoder.encode(*buf, stream.get(), room);
  }
  replace_buffer(std::move(stream), room, capacity, buf);
  return static_cast<std::size_t>(size);
}

std::size_t decode(std::size_t count, const unsigned* words, std::size_t bytes, std::size_t* capacity, void** buf) {
  const ChunkLayout layout = inspect_chunk(*buf, bytes);
  check_agreement(layout, parse_layout(words, count));
  const Context context = make_context(environment_threads(), decoder_memory(layout));
  H5Memory elements = allocate(layout.bytes());
  decode_chunk(*context, *buf, bytes, layout, elements.get());
  if (needs_swap(layout.big_endian))
    swap_elements(elements.get(), layout.elems(), dtype_bytes(static_cast<std::uint32_t>(layout.dtype)));
  replace_buffer(std::move(elements), layout.bytes(), capacity, buf);
  return static_cast<std::size_t>(layout.bytes());
}

/// What is asked for of a dataset, and its chunks.
struct Task {
  Request request;
  ChunkLayout layout;
};

/// Missing values of a dataset: those asked for, and the fill value that the words still name where the list has it no
/// more (netCDF's copies set it after the filter). Its own fill value stands apart.
void collect_missing(const FilterEntry& entry, Task& task) {
  auto& missing = task.request.missing;
  const auto& fill = task.layout.fill;
  if (const auto named = named_fill(entry.words, task.layout.dtype)) missing.insert(missing.begin(), *named);
  std::vector<std::uint64_t> once;
  for (const std::uint64_t bits : missing)
    if (bits != fill && std::find(once.begin(), once.end(), bits) == once.end()) once.push_back(bits);
  if (once.size() + (fill ? 1 : 0) > kMostMissing)
    throw Problem(Trouble::request, "more than " + std::to_string(kMostMissing) + " fill and missing values");
  missing = std::move(once);
}

Task describe_task(const FilterEntry& entry, hid_t dcpl, hid_t type) {
  Task task;
  task.request = parse_request(entry.words.data(), entry.words.size());
  check_request(task.request);  // wrong settings are told before a wrong dataset
  task.layout = describe_chunks(dcpl, type);
  return task;
}

void check_task(const Task& task) {
  ChunkEncoder(task.request, task.layout, QUERN_CONTEXT_DESC_INIT, ChunkEncoder::Use::once).check();
}

/// The words for this dataset, whatever its list held behind the request before: so doing it twice changes nothing.
Words words_for(const FilterEntry& entry, hid_t dcpl, hid_t type) {
  Task task = describe_task(entry, dcpl, type);
  task.layout.fill = fill_value(dcpl, type);
  collect_missing(entry, task);
  check_task(task);
  return make_words(task.request, task.layout);
}

/// Whether the request says that a dataset must be served or refused.
bool is_mandatory(const FilterEntry& entry) { return parse_request(entry.words.data(), entry.words.size()).mandatory; }

extern "C" htri_t quern_hdf5_can_apply(hid_t dcpl, hid_t type, hid_t /*space*/) {
  return guarded<htri_t>("quern can_apply", -1, [&]() -> htri_t {
    const FilterEntry entry = filter_entry(dcpl);
    try {
      check_task(describe_task(entry, dcpl, type));
      return 1;
    } catch (const Problem& problem) {
      if (problem.trouble() != Trouble::dataset || is_mandatory(entry)) throw;
      // Not an error of the filter: where it is optional, the dataset is created without it.
      push_error("quern can_apply", problem.trouble(), problem.what());
      return 0;
    }
  });
}

extern "C" herr_t quern_hdf5_set_local(hid_t dcpl, hid_t type, hid_t /*space*/) {
  return guarded<herr_t>("quern set_local", -1, [&]() -> herr_t {
    const FilterEntry entry = filter_entry(dcpl);
    Words words;
    try {
      words = words_for(entry, dcpl, type);
    } catch (const Problem& problem) {
      if (problem.trouble() != Trouble::dataset || (entry.flags & H5Z_FLAG_OPTIONAL) == 0) throw;
      // An optional filter on a dataset it cannot serve: nothing that was true of another dataset may stay.
      words = make_words(parse_request(entry.words.data(), entry.words.size()), {});
    }
    // Where the filter is missing later, HDF5 would store chunks raw without a word if it stayed optional.
    const unsigned flags = is_mandatory(entry) ? entry.flags & ~H5Z_FLAG_OPTIONAL : entry.flags;
    if (H5Pmodify_filter(dcpl, QUERN_HDF5_FILTER_ID, flags, words.size(), words.data()) < 0)
      throw Problem(Trouble::resource, "HDF5 does not take the filter's settings");
    return 0;
  });
}

extern "C" std::size_t quern_hdf5_filter(unsigned flags, std::size_t count, const unsigned words[], std::size_t bytes,
                                         std::size_t* capacity, void** buf) {
  return run_filter(flags, count, words, bytes, capacity, buf);
}

}  // namespace

std::size_t run_filter(unsigned flags, std::size_t count, const unsigned words[], std::size_t bytes,
                       std::size_t* capacity, void** buf) {
  return guarded<std::size_t>("quern filter", 0, [&]() -> std::size_t {
    if (buf == nullptr || *buf == nullptr || capacity == nullptr || bytes > *capacity)
      throw Problem(Trouble::resource, "HDF5 hands over no chunk");
    return (flags & H5Z_FLAG_REVERSE) != 0 ? decode(count, words, bytes, capacity, buf)
                                           : encode(count, words, bytes, capacity, buf);
  });
}

const H5Z_class2_t& filter_class() {
  static const H5Z_class2_t description{H5Z_CLASS_T_VERS,     QUERN_HDF5_FILTER_ID, 1, 1, "quern", quern_hdf5_can_apply,
                                        quern_hdf5_set_local, quern_hdf5_filter};
  return description;
}

}  // namespace quern::hdf5

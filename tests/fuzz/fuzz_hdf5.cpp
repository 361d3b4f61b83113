// The HDF5 filter's callback without a file: any settings and any bytes, both ways, as they are and, decoding, with
// valid checksums put back. It gives data or 0 with a reason on the error stack and the chunk as it was; what it
// encodes, it decodes, even after the settings were lost; lossless chunks come back bit for bit. Input: direction,
// number of words, 18 words of 4 bytes (little-endian), then the chunk's bytes.
#include <hdf5.h>
#include <quern/hdf5.h>

#include <vector>

#include "bindings/hdf5/filter.h"
#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/reseal.h"

namespace {

using namespace quern;
using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<unsigned>;

constexpr std::uint64_t kMostOutput = UINT64_C(4) << 20;
constexpr std::size_t kWords = 18;

struct Outcome {
  bool ok = false;
  Bytes bytes;
};

bool stack_has_our_line() {
  bool found = false;
  const hid_t stack = H5Eget_current_stack();
  const auto look = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    char name[16] = "";
    H5Eget_class_name(error->cls_id, name, sizeof name);
    const bool ours = std::string_view(name) == "quern" && error->desc != nullptr && error->desc[0] != '\0';
    *static_cast<bool*>(out) = *static_cast<bool*>(out) || ours;
    return 0;
  };
  H5Ewalk2(stack, H5E_WALK_UPWARD, look, &found);
  H5Eclose_stack(stack);
  return found;
}

Outcome run(bool reverse, const Words& words, std::span<const std::uint8_t> bytes) {
  std::size_t capacity = bytes.size();
  void* buffer = H5allocate_memory(std::max<std::size_t>(capacity, 1), false);
  QUERN_FUZZ_CHECK(buffer != nullptr);
  std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(buffer));
  H5Eclear2(H5E_DEFAULT);
  const std::size_t size = hdf5::run_filter(reverse ? H5Z_FLAG_REVERSE : 0, words.size(),
                                            words.empty() ? nullptr : words.data(), bytes.size(), &capacity, &buffer);
  Outcome out;
  out.ok = size != 0;
  QUERN_FUZZ_CHECK(size <= capacity);
  const auto* data = static_cast<const std::uint8_t*>(buffer);
  if (out.ok) {
    out.bytes.assign(data, data + size);
  } else {
    QUERN_FUZZ_CHECK(capacity == bytes.size() && std::equal(bytes.begin(), bytes.end(), data));
    QUERN_FUZZ_CHECK(stack_has_our_line());
  }
  H5free_memory(buffer);
  return out;
}

void check_encode(const Words& words, std::span<const std::uint8_t> chunk) {
  const Outcome encoded = run(false, words, chunk);
  if (!encoded.ok) return;
  QUERN_FUZZ_CHECK(encoded.bytes.size() <= chunk.size() + 256 + chunk.size() / 1000 + 64);
  const Outcome decoded = run(true, words, encoded.bytes);
  QUERN_FUZZ_CHECK(decoded.ok && decoded.bytes.size() == chunk.size());
  if (words[2] == QUERN_BOUND_LOSSLESS)
    QUERN_FUZZ_CHECK(std::equal(chunk.begin(), chunk.end(), decoded.bytes.begin(), decoded.bytes.end()));
  const Outcome without = run(true, {}, encoded.bytes);
  QUERN_FUZZ_CHECK(without.ok && without.bytes == decoded.bytes);
}

void check_decode(const Words& words, std::span<const std::uint8_t> stream) {
  // Streams may claim what HDF5 allows, just below 4 GiB; memory for that is not what is tested here.
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  if (quern_inspect(stream.data(), stream.size(), &info) == QUERN_OK) {
    std::uint64_t elems = 1;
    for (std::uint32_t a = 0; a < info.rank; ++a)
      if (info.extents[a] > kMostOutput || (elems *= info.extents[a]) > kMostOutput) return;
  }
  const Outcome with = run(true, words, stream);
  const Outcome without = run(true, {}, stream);
  if (with.ok) QUERN_FUZZ_CHECK(without.ok && with.bytes == without.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const herr_t quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  QUERN_FUZZ_CHECK(quiet >= 0);
  fuzz::Feed feed({data, size});
  const bool reverse = (feed.byte() & 1) != 0;
  const std::size_t count = feed.byte() % (kWords + 3);
  Words words(kWords);
  for (unsigned& word : words) word = feed.raw<std::uint32_t>();
  words.resize(count, 0);
  const auto bytes = feed.rest();
  if (!reverse) {
    check_encode(words, bytes);
    return 0;
  }
  check_decode(words, bytes);
  const auto sealed = fuzz::reseal(bytes);
  if (!std::equal(sealed.begin(), sealed.end(), bytes.begin(), bytes.end())) check_decode(words, sealed);
  return 0;
}

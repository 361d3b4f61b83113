// XXH3-128 piece by piece, and marks at the speed of memory.
#include "checkpoint/store/value_hashes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codecs/tensor/description.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quern::checkpoint {
namespace {

constexpr std::size_t kPartialSums = 8;
constexpr std::uint64_t kNoMark = 0;  ///< of a chunk that changed while it was hashed

XXH3_state_t* state_of(const AlignedBuffer& room) {
  return reinterpret_cast<XXH3_state_t*>(const_cast<std::uint8_t*>(room.data()));
}

}  // namespace

std::uint64_t chunk_mark(std::span<const std::uint8_t> chunk) {
  std::array<std::uint64_t, kPartialSums> sums{};
  std::array<std::uint64_t, kPartialSums> sums_of_sums{};
  std::size_t at = 0;
  for (; at + sizeof(sums) <= chunk.size(); at += sizeof(sums)) {
    std::array<std::uint64_t, kPartialSums> words;
    std::memcpy(words.data(), chunk.data() + at, sizeof(words));
    for (std::size_t k = 0; k < kPartialSums; ++k) {
      sums[k] += words[k];
      sums_of_sums[k] += sums[k];
    }
  }
  std::array<std::uint8_t, 3 * sizeof(sums)> all{};
  std::memcpy(all.data(), sums.data(), sizeof(sums));
  std::memcpy(all.data() + sizeof(sums), sums_of_sums.data(), sizeof(sums));
  const std::size_t rest = chunk.size() - at;
  if (rest != 0) std::memcpy(all.data() + 2 * sizeof(sums), chunk.data() + at, rest);
  const std::uint64_t mark = XXH3_64bits(all.data(), all.size()) ^ chunk.size();
  return mark == kNoMark ? 1 : mark;
}

ValueHashes hash_values(std::span<const std::uint8_t> values) {
  constexpr std::size_t kChunk = codec::tensor::kChunkBytes;
  ValueHashes out;
  // A mark before the hash and one after it: where they differ, the chunk changed meanwhile and no bytes have its mark.
  const auto add = [&](std::span<const std::uint8_t> chunk, const auto& hash) {
    const std::uint64_t before = chunk_mark(chunk);
    hash(chunk);
    const std::uint64_t after = chunk_mark(chunk);
    out.chunks.push_back(before == after ? before : kNoMark);
  };
  if (values.size() <= kChunk) {
    add(values, [&](std::span<const std::uint8_t> chunk) { out.content = content_hash(chunk); });
    return out;
  }
  ContentHasher hasher;
  if (!hasher.begin().ok()) throw std::bad_alloc();
  out.chunks.reserve((values.size() + kChunk - 1) / kChunk);
  for (std::size_t at = 0; at < values.size(); at += kChunk) {
    add(values.subspan(at, std::min(kChunk, values.size() - at)),
        [&](std::span<const std::uint8_t> chunk) { hasher.add(chunk); });
  }
  out.content = hasher.finish();
  return out;
}

bool has_marks(const ValueHashes& hashes, std::uint64_t first, std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kChunk = codec::tensor::kChunkBytes;
  for (std::size_t at = 0; at < bytes.size(); at += kChunk, ++first)
    if (first >= hashes.chunks.size() || hashes.chunks[static_cast<std::size_t>(first)] !=
                                             chunk_mark(bytes.subspan(at, std::min(kChunk, bytes.size() - at))))
      return false;
  return true;
}

Status fail_changed(std::string_view name, Report& report) {
  return fail(report, StatusCode::invalid_argument,
              join({"tensor '", name, "' changed while it was saved; copy it first or stop writing to it"}));
}

Status ContentHasher::begin() {
  static_assert(alignof(XXH3_state_t) <= 64);
  QUERN_RETURN_IF_ERROR(state_.resize(sizeof(XXH3_state_t)));
  XXH3_128bits_reset(state_of(state_));
  return {};
}

void ContentHasher::add(std::span<const std::uint8_t> bytes) {
  XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

ContentHash ContentHasher::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_of(state_));
  return {hash.high64, hash.low64};
}

}  // namespace quern::checkpoint

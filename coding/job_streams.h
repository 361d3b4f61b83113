// What a host takes out of a chunk for a device's job: tables of distributions and the words of streams; and the memory
// that a job's tables lie in side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <quern/memory.h>

#include "coding/distributions.h"
#include "coding/stream_reader.h"
#include "kernels/common/job_task.h"
#include "kernels/entropy/job_streams.h"

namespace quern::coding {

static_assert(kernels::kMostStreamLanes == kernels::kMaxStreams);

struct JobStreams {
  Vector<kernels::StreamStarts> starts;
  Vector<std::uint8_t> words;

  /// Distributions of the context bins that have one, and which of them serves each; false when there is none.
  bool take_starts(const Distributions& distributions, std::uint8_t* serving) {
    const auto bins = serving_bins(distributions);
    std::array<std::uint8_t, kernels::kContextBins> number{};
    for (std::size_t b = 0; b < kernels::kContextBins; ++b) {
      if (bins[b] == kernels::kContextBins) return false;
      const kernels::TokenDistribution& bin = distributions[b];
      if (bin.tokens == 0) continue;
      number[b] = static_cast<std::uint8_t>(starts.size());
      kernels::TokenStarts sums{};
      kernels::fill_token_starts(bin, sums);
      kernels::StreamStarts& to = starts.emplace_back();
      std::fill(std::begin(to.at), std::end(to.at), std::uint16_t{0xFFFF});
      std::copy_n(sums.begin(), bin.tokens + std::size_t{1}, to.at);
    }
    for (std::size_t b = 0; b < kernels::kContextBins; ++b) serving[b] = number[bins[b]];
    return true;
  }

  void take_streams(const StreamReader& streams, kernels::StreamSection& section) {
    constexpr std::size_t kStateBytes = 4;
    section.mask = static_cast<std::uint32_t>(streams.mask);
    for (std::size_t stream = 0; stream <= streams.mask; ++stream) {
      section.begins[stream] = static_cast<std::uint32_t>(words.size() / 2);
      words.insert(words.end(), streams.sources[stream].at - kStateBytes, streams.sources[stream].end);
    }
    section.begins[streams.mask + 1] = static_cast<std::uint32_t>(words.size() / 2);
  }
  /// Lanes fetch words in aligned pieces; when all streams are taken.
  void pad_words() {
    constexpr std::size_t kPiece = 2 * kernels::kStreamWordAlignment;
    words.resize((words.size() + kPiece - 1) / kPiece * kPiece);
  }
};

/// A job as it grows at the end of `out`.
class JobAppender {
 public:
  JobAppender(Vector<std::uint8_t>& out, std::size_t head_bytes) : out_(out) {
    begin_ = static_cast<std::size_t>(kernels::job_aligned(out.size()));
    out.resize(begin_ + head_bytes);
  }
  /// Appends a table; bytes from the job's begin to it.
  template <class T>
  std::uint32_t add(const Vector<T>& table) {
    constexpr std::size_t kAlignment = 16;
    const std::size_t at = (out_.size() - begin_ + kAlignment - 1) / kAlignment * kAlignment;
    out_.resize(begin_ + at + table.size() * sizeof(T));
    if (!table.empty()) std::memcpy(out_.data() + begin_ + at, table.data(), table.size() * sizeof(T));
    return static_cast<std::uint32_t>(at);
  }
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(out_.size() - begin_); }
  template <class Head>
  void set_head(const Head& head) {
    std::memcpy(out_.data() + begin_, &head, sizeof head);
  }

 private:
  Vector<std::uint8_t>& out_;
  std::size_t begin_ = 0;
};

}  // namespace quern::coding

// Whole encodings side by side; one that cannot win any more is given up.
#include "codecs/stencil/plan/measured_choice.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/effort.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::stencil {
namespace {

// Bits a value of the best other layout, from where on the transform never was the smallest.
constexpr std::uint64_t kMostWaveletBits = 7;
// The transform is encoded where its quick estimate is below so many hundredths of that of the others. Where it was the
// smallest of fields at 3 bits a value and more, it was below 90; where few bits are enough, a small block says little.
constexpr std::uint64_t kWaveletPercentAbove3Bits = 100;
constexpr std::uint64_t kWaveletPercentAbove1Bit = 150;
constexpr std::uint64_t kKeptShare = 4;  // chunks are kept while they take no more than that part of the memory limit
constexpr std::uint64_t kTightBits = 1;  // bits a value, below which tight coarse levels are encoded, too
constexpr std::uint64_t kBlockElems = UINT64_C(1) << 17;
constexpr std::uint64_t kFewestBlocks = 3;
constexpr std::uint64_t kMostBlocks = 8;
constexpr double kSpreads = 2;        // standard deviations of a mean difference
constexpr double kLeastShare = 0.15;  // of the bits of the best, divided by the root of the number of blocks
constexpr double kWaveletPercent = 92;

/// One layout, and its chunks.
struct Encoding : Allocated {
  Encoding(const Stage& stage, const TrialArray& array, const Way& asked)
      : way(asked),
        grid(make_grid(array.shape, asked.layout)),
        spec(encode_spec(stage.request, asked, stage.parts, stage.kernels)) {
    const auto counts = grid.counts();
    chunks.resize(counts[0] * counts[1] * counts[2]);
  }
  bool in_levels() const { return way.layout.levels; }

  Way way;
  ChunkGrid grid;
  EncodeSpec spec;
  Vector<Vector<std::uint8_t>> chunks;
  std::atomic<std::uint64_t> bytes{0};
};

Status too_little_memory(std::uint64_t needed, std::uint64_t limit) {
  return Status(StatusCode::memory_limit,
                "encoding under each layout needs {0} bytes at least, the limit is {1}; effort 4 needs less",
                static_cast<std::int64_t>(needed), static_cast<std::int64_t>(limit));
}

class Contest {
 public:
  /// `memory`: for encoding, beside the array. `least`: bytes of the best that was encoded before.
  Contest(const Stage& stage, const TrialArray& array, std::uint64_t memory, std::uint64_t least = UINT64_MAX)
      : stage_(stage), array_(array), memory_(memory), least_(least) {}

  /// Encodes in several ways side by side. One that has taken more bytes than the best of earlier runs is given up.
  Status run(const Vector<Way>& ways) {
    Vector<std::pair<Encoding*, std::size_t>> chunks;
    for (const Way& way : ways) {
      encodings_.push_back(std::make_unique<Encoding>(stage_, array_, way));
      Encoding& encoding = *encodings_.back();
      for (std::size_t i = 0; i < encoding.chunks.size(); ++i) chunks.emplace_back(&encoding, i);
    }
    if (chunks.empty()) return {};
    std::uint64_t largest = 0;
    for (const auto& [encoding, chunk] : chunks)
      largest =
          std::max<std::uint64_t>(largest, encode_scratch_bytes(encoding->spec) + 2 * max_chunk_bytes(encoding->spec));
    const std::uint64_t most = least_;
    QUERN_RETURN_IF_ERROR(run_in_memory(
        largest, chunks.size(), [&](std::size_t i) { return encode(*chunks[i].first, chunks[i].second, most); }));
    const Encoding& winner = best();
    for (const auto& encoding : encodings_)
      if (encoding.get() != &winner) Vector<Vector<std::uint8_t>>().swap(encoding->chunks);
    least_ = winner.bytes;
    return {};
  }

  /// What was given up took more than another.
  Encoding& best() const {
    return **std::min_element(encodings_.begin(), encodings_.end(),
                              [](const auto& a, const auto& b) { return a->bytes < b->bytes; });
  }
  bool any() const { return !encodings_.empty(); }

  /// Layouts in levels that took less than so many bits a value.
  Vector<Layout> levels_below(std::uint64_t bits) const {
    Vector<Layout> found;
    for (const auto& encoding : encodings_)
      if (encoding->in_levels() && encoding->bytes * 8 < array_.shape.elems() * bits)
        found.push_back(encoding->way.layout);
    return found;
  }
  /// Whether coefficients of the transform take more, by their order-0 entropy, than the best layout with contexts. What
  /// contexts gain the transform, corrections take.
  Result<bool> coefficients_above(const Way& transform) {
    Encoding encoding(stage_, array_, transform);
    encoding.spec.quick_estimate = true;
    std::atomic<std::uint64_t> bits{0};
    const std::size_t needed = encode_scratch_bytes(encoding.spec);
    QUERN_RETURN_IF_ERROR(run_in_memory(needed, encoding.chunks.size(), [&](std::size_t i) -> Status {
      QUERN_ASSIGN_OR_RETURN(auto scratch, stage_.scratch.lend(needed));
      QUERN_ASSIGN_OR_RETURN(const ChunkCost cost,
                             estimate_chunk(encoding.spec, array_.chunk(encoding.grid, i), scratch.span()));
      bits += cost.plain >> 12;
      return {};
    }));
    return any() && bits > best().bytes * 8;
  }
  bool best_above(std::uint64_t bits) const { return any() && best().bytes * 8 > array_.shape.elems() * bits; }

 private:
  /// Tasks side by side, as many at once as memory allows, each of which needs so many bytes.
  template <class Task>
  Status run_in_memory(std::uint64_t needed, std::size_t count, const Task& task) {
    if (needed > memory_) return too_little_memory(needed, memory_);
    const auto at_once = static_cast<std::size_t>(std::min<std::uint64_t>(memory_ / needed, count));
    for (std::size_t first = 0; first < count; first += at_once)
      QUERN_RETURN_IF_ERROR(run_tasks(*stage_.request.runner, std::min(at_once, count - first),
                                      [&](std::size_t i) { return task(first + i); }));
    return {};
  }

  Status encode(Encoding& encoding, std::size_t chunk, std::uint64_t most) {
    if (encoding.bytes > most) return {};
    QUERN_ASSIGN_OR_RETURN(auto scratch, stage_.scratch.lend(encode_scratch_bytes(encoding.spec)));
    QUERN_ASSIGN_OR_RETURN(auto out, out_.lend(max_chunk_bytes(encoding.spec)));
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                           encode_chunk(encoding.spec, array_.chunk(encoding.grid, chunk), out.span(), scratch.span()));
    encoding.chunks[chunk].assign(out.span().begin(), out.span().begin() + static_cast<std::ptrdiff_t>(bytes));
    encoding.bytes += bytes;
    return {};
  }

  const Stage& stage_;
  const TrialArray& array_;
  std::uint64_t memory_;
  BufferPool out_;
  Vector<std::unique_ptr<Encoding>> encodings_;
  std::uint64_t least_;  ///< bytes of the best of all runs
};

}  // namespace

Comparison comparison_of(const PlanRequest& request, const LayoutChoice& choice) {
  const int orders = int{choice.raster} + int{choice.levels} + int{choice.planes} + int{choice.wavelet};
  const std::uint64_t most = most_encoded_whole(request);
  const std::uint64_t elems = request.shape.elems();
  const bool sampled = request.sample->elems() == elems;
  if (orders < 2) return Comparison::boxes;
  if (choice.comparison)
    return *choice.comparison == Comparison::whole && !sampled ? Comparison::blocks : *choice.comparison;
  if (most == 0 || wants_psnr(request)) return Comparison::boxes;
  return elems <= most && sampled ? Comparison::whole : Comparison::blocks;
}

namespace {

/// Memory that a copy of the array and its marks takes.
std::uint64_t copy_bytes(const PlanRequest& request) {
  return request.shape.elems() * (dtype_bytes(request.dtype) + 1);
}

Result<TrialArray> copy_array(const PlanRequest& request) {
  const std::uint64_t room = copy_bytes(request);
  if (room > request.memory_limit) return too_little_memory(room, request.memory_limit);
  return take_whole_array(request);
}

ChosenLayout keep_best(const PlanRequest& request, Encoding& best, TrialArray array) {
  ChosenLayout chosen{best.way};
  chosen.bytes = best.bytes;
  auto encoded = std::make_unique<EncodedChunks>(std::move(array), best.grid, std::move(best.chunks));
  if (may_keep(request, encoded->bytes())) chosen.encoded = std::move(encoded);
  return chosen;
}

}  // namespace

bool may_keep(const PlanRequest& request, std::uint64_t bytes) { return bytes <= request.memory_limit / kKeptShare; }

Result<ChosenLayout> choose_by_encoding(const Stage& stage, const Vector<Trial>& candidates, bool brief) {
  const PlanRequest& request = stage.request;
  QUERN_ASSIGN_OR_RETURN(TrialArray array, copy_array(request));
  Contest contest(stage, array, request.memory_limit - copy_bytes(request));
  Vector<Way> levels;
  Vector<Way> others;
  Vector<Trial> estimates;
  Vector<Trial> transform;
  for (const Trial& trial : candidates) {
    (trial.layout.wavelet ? transform : estimates).push_back(trial);
    if (!trial.layout.wavelet) (trial.layout.levels ? levels : others).push_back({trial.layout});
  }
  QUERN_RETURN_IF_ERROR(contest.run(levels));
  // Tight coarse levels pay where few bits go to the finest.
  if (!codes_elements(request))
    for (const Layout& layout : contest.levels_below(kTightBits)) others.push_back({layout, 1});
  QUERN_RETURN_IF_ERROR(contest.run(others));
  const auto hopeless = [&](const Trial& trial) {
    if (estimates.empty() || !contest.best_above(1)) return false;
    const std::uint64_t percent = contest.best_above(3) ? kWaveletPercentAbove3Bits : kWaveletPercentAbove1Bit;
    return contest.best_above(kMostWaveletBits) || !cheaper(trial, estimates[best_of(estimates)], percent);
  };
  for (const Trial& trial : transform) {
    if (hopeless(trial)) continue;
    if (brief) {
      QUERN_ASSIGN_OR_RETURN(const bool above, contest.coefficients_above({trial.layout}));
      if (above) continue;
    }
    QUERN_RETURN_IF_ERROR(contest.run({{trial.layout}}));
  }
  return keep_best(request, contest.best(), std::move(array));
}

Status encode_also(const Stage& stage, const Way& way, ChosenLayout& chosen) {
  const PlanRequest& request = stage.request;
  const EncodeSpec spec = encode_spec(request, way, stage.parts, stage.kernels);
  const std::uint64_t needed = encode_scratch_bytes(spec) + 2 * max_chunk_bytes(spec);
  const std::uint64_t kept = chosen.encoded ? chosen.encoded->bytes() : 0;
  // The memory limit must not change what is chosen.
  if (kept + copy_bytes(request) + needed > request.memory_limit) chosen.encoded.reset();
  QUERN_ASSIGN_OR_RETURN(TrialArray array, copy_array(request));
  const std::uint64_t held = copy_bytes(request) + (chosen.encoded ? kept : 0);
  Contest contest(stage, array, request.memory_limit - held, chosen.bytes);
  QUERN_RETURN_IF_ERROR(contest.run({way}));
  if (contest.best().bytes < chosen.bytes) chosen = keep_best(request, contest.best(), std::move(array));
  return {};
}

namespace {

/// Bits of each candidate in each block.
using Bits = Vector<Vector<double>>;

/// Whether `a` takes more bits than `b` beyond what the spread of their differences explains, and beyond what a few
/// blocks can tell at all: calm ones hardly differ.
bool clearly_more(const Vector<double>& a, const Vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  double sum = 0;
  double squares = 0;
  double bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] - b[i];
    squares += (a[i] - b[i]) * (a[i] - b[i]);
    bits += b[i];
  }
  const double mean = sum / n;
  const double variance = std::max(0.0, squares / n - mean * mean) / (n - 1);
  return mean > kSpreads * std::sqrt(variance) && mean > kLeastShare * bits / n / std::sqrt(n);
}

}  // namespace

Result<ChosenLayout> choose_by_blocks(const Stage& stage, Vector<Trial> candidates, bool slabs) {
  const PlanRequest& request = stage.request;
  const Shape shape = (slabs ? slab_shape : trial_shape)(request.shape, request.sample->elems(), kBlockElems);
  Bits bits(candidates.size());
  Vector<std::size_t> open(candidates.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  Vector<Trial> sums = candidates;
  for (Trial& sum : sums) sum.elems = sum.bits = 0;
  for (std::uint64_t block = 0; block < kMostBlocks && open.size() > 1; ++block) {
    QUERN_ASSIGN_OR_RETURN(const TrialArray array, take_trial_array(request, shape, block));
    const Stage here{request, stage.kernels, array, stage.parts, stage.scratch};
    Vector<Trial> trials;
    for (const std::size_t i : open) trials.push_back(candidates[i]);
    QUERN_RETURN_IF_ERROR(here.run(trials));
    for (std::size_t k = 0; k < open.size(); ++k) {
      Trial& sum = sums[open[k]];
      sum.elems += trials[k].elems;
      sum.bits += trials[k].bits;
      // The transform gains more in a block than in the chunks of the array.
      const double percent = trials[k].layout.wavelet ? kWaveletPercent : 100;
      bits[open[k]].push_back(static_cast<double>(trials[k].bits) / static_cast<double>(trials[k].elems) * 100 /
                              percent);
    }
    const auto total = [&](std::size_t i) { return std::accumulate(bits[i].begin(), bits[i].end(), 0.0); };
    const std::size_t best =
        *std::min_element(open.begin(), open.end(), [&](std::size_t a, std::size_t b) { return total(a) < total(b); });
    if (block + 1 < kFewestBlocks) continue;
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](std::size_t i) { return i != best && clearly_more(bits[i], bits[best]); }),
               open.end());
    std::iter_swap(open.begin(), std::find(open.begin(), open.end(), best));
  }
  return ChosenLayout{way_of(request, sums[open[0]])};
}

}  // namespace quern::codec::stencil

// A chunk to bytes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "codecs/autoencoder/block_coder.h"
#include "codecs/autoencoder/chunk.h"
#include "codecs/autoencoder/chunk_head.h"
#include "codecs/autoencoder/work_values.h"
#include "coding/distribution_fit.h"
#include "coding/stream_writer.h"
#include "coding/symbol_counts.h"
#include "coding/token_tables.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/round_to_integer.h"
#include "libcompress/core/element_of.h"
#include "libcompress/format/writer.h"

namespace quern::codec::autoencoder {
namespace {

constexpr double kMostReach = 0x1p26;  // half the range, in steps: means and codes then fit their numbers
constexpr std::size_t kSampledBlocks = 48;

struct EncodeMemory {
  EncodeMemory(Arena& arena, const Extents& chunk)
      : elems(static_cast<std::size_t>(chunk[0] * chunk[1] * chunk[2])),
        values(arena, chunk),
        codes(arena.take<std::int32_t>(elems)),
        symbols(arena.take<std::uint16_t>(elems)),
        counts(arena),
        entries(coding::take_entries(arena)) {}
  std::size_t elems;
  WorkValues values;
  std::int32_t* codes;  ///< of blocks that have some, one after another
  std::uint16_t* symbols;
  coding::SymbolCounts counts;
  kernels::ResidualEntries entries;
};

/// Numbers of blocks and the bins that code them.
struct Numbers {
  void add(std::uint32_t bin, std::int64_t number) {
    const auto code = static_cast<std::int32_t>(number);
    codes.push_back(code);
    symbols.push_back(
        static_cast<std::uint16_t>(bin * kernels::kTokenStride + kernels::token_of(kernels::magnitude_of(code))));
  }
  Vector<std::int32_t> codes;
  Vector<std::uint16_t> symbols;
};

template <class Element>
class ChunkWriter {
 public:
  using Bits = typename Element::Bits;

  ChunkWriter(const EncodeSpec& spec, const ConstBox3& in, EncodeMemory& memory)
      : spec_(spec), in_(in), memory_(memory), blocks_(in.extents, spec.block), coder_(spec) {}

  std::size_t run(std::span<std::uint8_t> out) {
    find_range();
    if (ordinary_ == 0) return raw(out);
    if (constant(out)) return 1 + sizeof(Bits);
    if (!choose_format()) return raw(out);
    choose_steps();
    code_blocks();
    const std::size_t bytes = write(out);
    return bytes != 0 ? bytes : raw(out);
  }

 private:
  Bits bits_at(const Extents& at) const { return static_cast<const Bits*>(in_.data)[element_offset(in_, at)]; }
  template <class F>
  void for_each_ordinary(const F& f) const {
    for_each_element({{}, in_.extents}, [&](const Extents& at, std::size_t i) {
      if (!is_special(in_, at)) f(bits_at(at), i);
    });
  }

  void find_range() {
    low_ = std::numeric_limits<double>::infinity();
    high_ = -low_;
    for_each_ordinary([&](Bits bits, std::size_t) {
      const double v = Element::value(bits);
      if (!(v - v == 0)) return;
      low_ = std::min(low_, v);
      high_ = std::max(high_, v);
      ++ordinary_;
    });
  }

  bool constant(std::span<std::uint8_t> out) const {
    if (!(high_ - low_ <= 2 * spec_.bound)) return false;
    Bits middle = Element::bits(low_ / 2 + high_ / 2);
    if (low_ == high_) for_each_ordinary([&](Bits bits, std::size_t) { middle = bits; });
    bool kept = true;
    for_each_ordinary(
        [&](Bits bits, std::size_t) { kept = kept && kernels::keeps_bound<Element>(bits, middle, spec_.bound); });
    if (!kept) return false;
    out[0] = static_cast<std::uint8_t>(Mode::constant);
    std::memcpy(out.data() + 1, &middle, sizeof(middle));
    return true;
  }

  /// Half the distance of codes for which values keep the bound after they are rounded to the element type.
  double largest_error() const {
    if (is_integer(spec_.dtype)) return std::floor(spec_.bound) + 0.5;
    const double largest = std::max(std::fabs(low_), std::fabs(high_));
    const Bits bits = Element::bits(largest);
    const double spacing = Element::value(static_cast<Bits>(bits + 1)) - Element::value(bits);
    if (!(spacing > spec_.bound * 0x1p-12) || !(spacing - spacing == 0)) return spec_.bound;
    return std::min(spec_.bound, (std::floor(spec_.bound / spacing) + 0.5) * spacing);
  }

  bool choose_format() {
    coding::ValueFormat& format = head_.format;
    format.base = coding::short_double(low_ / 2 + high_ / 2);
    const double error = largest_error();
    const double reach = std::max(high_ - format.base, format.base - low_) / error;
    if (!(reach < kMostReach) || !(error > 0x1p-900) || !(error < 0x1p900)) return false;
    format.step = coding::short_double(2 * error / (1 + std::ldexp(1.0, -static_cast<int>(kFractionBits))));
    head_.masked = in_.special != nullptr;
    return true;
  }

  BlockTargets targets_of(std::size_t number) const {
    BlockTargets targets;
    targets.block = blocks_.at(number);
    targets.values.resize(targets.block.elems());
    if (in_.special != nullptr) targets.special.resize(targets.values.size());
    const double inverse = 1 / head_.format.unit();
    std::int64_t sum = 0;
    for_each_element(targets.block, [&](const Extents& at, std::size_t i) {
      const double v = Element::value(bits_at(at));
      const bool special = is_special(in_, at);
      if (special) targets.special[i] = 1;
      if (special) return;
      ++targets.count;
      if (!(v - v == 0)) return;  // becomes an exception
      targets.values[i] = kernels::nearest_integer((v - head_.format.base) * inverse);
      sum += targets.values[i];
    });
    if (targets.count > 0) {
      const std::int64_t mean = sum / static_cast<std::int64_t>(targets.count);
      targets.mean = (mean + (1 << (kMeanShift - 1))) >> kMeanShift;
    }
    return targets;
  }

  void choose_steps() {
    if (spec_.model == nullptr || !(spec_.scale > 0)) return;
    std::vector<BlockTargets> sample;
    const std::size_t count = std::min(kSampledBlocks, blocks_.count());
    for (std::size_t i = 0; i < count; ++i) sample.push_back(targets_of((2 * i + 1) * blocks_.count() / (2 * count)));
    coder_.choose_steps(sample, head_.format.unit(), head_.networks);
  }

  void code_blocks() {
    WorkValues& values = memory_.values;
    values.clear();
    memory_.counts.clear();
    BlockHistory history;
    std::array<bool, models::kMostPredictors> used{};
    for (std::size_t b = 0; b < blocks_.count(); ++b) {
      const BlockTargets targets = targets_of(b);
      const BlockChoice& choice = coder_.choose(targets, head_.networks, history, values);
      const unsigned level = targets.count == 0 ? 0 : WorkValues::level_of(choice.sum, targets.count);
      write_numbers(targets, choice, level, history);
      if (choice.method >= kFirstNetwork) used[choice.method - kFirstNetwork] = true;
      if (level > 0) code_residuals(targets, choice, level);
      note_exceptions(targets.block);
    }
    for (std::size_t p = 0; p < used.size(); ++p)
      if (!used[p]) head_.networks.latent_step[p] = 0;
    head_.has_residuals = !ends_.empty();
  }

  void write_numbers(const BlockTargets& targets, const BlockChoice& choice, unsigned level, BlockHistory& history) {
    numbers_.add(kMethodBins + history.method, std::int64_t{choice.method} - history.method);
    numbers_.add(kLevelBin, std::int64_t{level} - history.level);
    history.method = choice.method;
    history.level = level;
    if (choice.method == kLorenzo) return;
    numbers_.add(kMeanBin, targets.mean - history.mean);
    history.mean = targets.mean;
    if (choice.method == kPlane)
      for (std::size_t a = 0; a < 3; ++a)
        if (spec_.block[a] > 1) numbers_.add(kSlopeBin, choice.slopes[a]);
    if (choice.method < kFirstNetwork) return;
    for (std::size_t i = 0; i < choice.latents.size(); ++i)
      numbers_.add(latent_bin(choice.method - kFirstNetwork, i, choice.latents.size()), choice.latents[i]);
  }

  void code_residuals(const BlockTargets& targets, const BlockChoice& choice, unsigned level) {
    WorkValues& values = memory_.values;
    sums_.resize(targets.values.size());
    for_each_element(targets.block, [&](const Extents& at, std::size_t i) {
      const std::size_t here = values.index(at);
      if (!targets.special.empty() && targets.special[i] != 0) return;
      sums_[i] = values.context_sum(here, level);
      values.set_magnitude(here, choice.codes[i]);
    });
    std::int32_t* const codes = memory_.codes + coded_;
    std::uint16_t* const symbols = memory_.symbols + coded_;
    std::copy(choice.codes.begin(), choice.codes.end(), codes);
    spec_.residuals->symbols(sums_.data(), codes, sums_.size(), symbols);
    memory_.counts.note(symbols, targets.special.empty() ? nullptr : targets.special.data(), sums_.size());
    coded_ += static_cast<std::uint32_t>(sums_.size());
    ends_.push_back(coded_);
  }

  /// What the decoder will have, held against the elements.
  void note_exceptions(const Block& block) {
    const double unit = head_.format.unit();
    for_each_element(block, [&](const Extents& at, std::size_t) {
      if (is_special(in_, at)) return;
      const Bits bits = bits_at(at);
      const Bits back =
          Element::bits(static_cast<double>(memory_.values.value(memory_.values.index(at))) * unit + head_.format.base);
      if (!kernels::keeps_bound<Element>(bits, back, spec_.bound))
        exceptions_.emplace_back((at[0] * in_.extents[1] + at[1]) * in_.extents[2] + at[2], bits);
    });
  }

  void write_exceptions(Vector<std::uint8_t>& bytes) {
    std::sort(exceptions_.begin(), exceptions_.end());
    Writer writer(bytes);
    writer.varint(exceptions_.size());
    std::uint64_t next = 0;
    for (const auto& [index, bits] : exceptions_) {
      writer.varint(index - next);
      writer.unsigned_of(bits, sizeof(Bits));
      next = index + 1;
    }
  }

  /// Fits distributions to the counts and prepares the entries that code by them; returns about how many bytes that
  /// takes.
  std::uint64_t fit(coding::Distributions& distributions) {
    coding::BinCounts counts{};
    memory_.counts.add_to(counts);
    const std::uint64_t bytes = coding::fit_distributions(counts, distributions) >> 15;
    coding::fill_token_entries(distributions, memory_.entries);
    return bytes;
  }

  /// 0: the chunk is no smaller than its elements.
  std::size_t write(std::span<std::uint8_t> out) {
    Vector<std::uint16_t> room(memory_.elems * sizeof(Bits) / 2 + coding::kSpareWords);
    if (head_.has_residuals) {
      const std::uint64_t estimate = fit(head_.residuals);
      head_.stream_bits = coding::choose_stream_bits(estimate, ends_.size());
    }
    coding::StreamWriter residuals(room, head_.stream_bits);
    if (head_.has_residuals && !residuals.encode_rows(*spec_.residuals, memory_.entries,
                                                      {memory_.codes, memory_.symbols, ends_.size(), ends_.data(), 0}))
      return 0;
    memory_.counts.clear();
    memory_.counts.add(numbers_.symbols.data(), numbers_.symbols.size());
    fit(head_.numbers);
    const auto count = static_cast<std::uint32_t>(numbers_.codes.size());
    Vector<std::uint16_t> number_room(kernels::kResidualWords * numbers_.codes.size() + coding::kSpareWords);
    coding::StreamWriter number_stream(number_room, 0);
    if (!number_stream.encode_rows(*spec_.residuals, memory_.entries,
                                   {numbers_.codes.data(), numbers_.symbols.data(), 1, &count, 0}))
      return 0;

    Vector<std::uint8_t> bytes{static_cast<std::uint8_t>(Mode::blocks)};
    write_head(head_, bytes);
    write_exceptions(bytes);
    Writer writer(bytes);
    writer.varint(number_stream.bytes());
    number_stream.append_words(bytes);
    if (head_.has_residuals) {
      residuals.append_sizes(writer);
      residuals.append_words(bytes);
    }
    if (bytes.size() > memory_.elems * sizeof(Bits)) return 0;
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return bytes.size();
  }

  std::size_t raw(std::span<std::uint8_t> out) const {
    out[0] = static_cast<std::uint8_t>(Mode::raw);
    const auto row = static_cast<std::size_t>(in_.extents[2]) * sizeof(Bits);
    std::size_t at = 1;
    for (std::uint64_t z = 0; z < in_.extents[0]; ++z)
      for (std::uint64_t y = 0; y < in_.extents[1]; ++y, at += row)
        std::memcpy(out.data() + at, static_cast<const Bits*>(in_.data) + element_offset(in_, {z, y, 0}), row);
    return at;
  }

  const EncodeSpec& spec_;
  const ConstBox3& in_;
  EncodeMemory& memory_;
  BlockGrid blocks_;
  BlockCoder coder_;
  ChunkHead head_;
  Numbers numbers_;
  double low_ = 0, high_ = 0;
  std::uint64_t ordinary_ = 0;
  std::uint32_t coded_ = 0;
  Vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> sums_;
  Vector<std::pair<std::uint64_t, Bits>> exceptions_;
};

}  // namespace

std::size_t encode_scratch_bytes(const EncodeSpec& spec) {
  Arena arena(nullptr);
  const EncodeMemory memory(arena, spec.most);
  return arena.used();
}

Result<std::size_t> encode_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents);
  if (arena.used() > scratch.size())
    return Status(StatusCode::internal, "autoencoder: scratch is too small for a chunk");
  return kernels::with_number_element(element_of(spec.dtype), [&](auto element) -> Result<std::size_t> {
    return ChunkWriter<decltype(element)>(spec, in, memory).run(out);
  });
}

}  // namespace quern::codec::autoencoder

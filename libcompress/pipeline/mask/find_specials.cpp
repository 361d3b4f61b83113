// Special cells of a segment: what must be masked, then what pays to be masked. The decisions are the kernels'; here
// are the loops over cells as one thread runs them.
#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include "kernels/mask/fill.h"
#include "kernels/mask/find.h"
#include "kernels/mask/patterns.h"
#include "libcompress/pipeline/mask/level_codec.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/mask_rules.h"
#include "libcompress/pipeline/mask/scan.h"
#include "libcompress/pipeline/mask/walk_memory.h"

namespace quern::mask {
namespace {

template <class W>
class SegmentFinder {
 public:
  using Word = typename W::Word;

  SegmentFinder(const kernels::SegmentBox<const Word>& box, std::span<const Word> fills,
                const kernels::CostScale& scale, const RepeatedRule& rule, SegmentMask& mask)
      : box_(box), fills_(fills), scale_(scale), views_(rule.views), form_(rule.form), mask_(mask) {}

  void find_mandatory() {
    mask_.classes.resize(box_.elems());
    kernels::PatternTable patterns;
    for_rows([&](const Word* p, std::uint8_t* classes, std::uint64_t n) {
      mark(p, classes, n);
      for_marked(classes, n, [&](std::uint64_t x) { patterns.add(p[x]); });
    });
    std::uint64_t specials[kMaxSpecials];
    mask_.specials.assign(specials, specials + patterns.specials(specials));
    if (mask_.specials.size() != 1 || !all_marked_are(static_cast<Word>(mask_.specials[0]))) number_classes();
    mask_.masked =
        mask_.classes.size() - static_cast<std::uint64_t>(std::count(mask_.classes.begin(), mask_.classes.end(), 0));
  }

  void repeated_values(kernels::RepeatedValues<Word>& values) const {
    kernels::RepeatedSummary<Word> summary;
    const bool masked = !mask_.empty();
    const kernels::SampledRows sample(box_.rows());
    kernels::for_rows(box_, [&](const Word* p, std::uint64_t first) {
      if (!sample.has(first / box_.cols())) return;
      for (std::uint64_t x = 1; x < box_.cols(); ++x) {
        if (p[x] == p[x - 1] && !(masked && mask_.classes[first + x] != 0)) summary.add(p[x], 1);
      }
    });
    summary.for_values([&](Word value) { values.add(value); });
  }

  void count_valid(kernels::RepeatedValues<Word>& values) const {
    for (unsigned k = 0; k < values.size; ++k) values.counts[k] = count_valid(values.values[k]);
  }

  std::size_t specials() const { return mask_.specials.size(); }
  std::uint64_t masked() const { return mask_.masked; }
  bool has_special(std::uint64_t bits) const {
    return std::find(mask_.specials.begin(), mask_.specials.end(), bits) != mask_.specials.end();
  }

  void add_special(Word value) {
    mask_.classes.resize(box_.elems());
    mask_.specials.push_back(value);
    const auto number = static_cast<std::uint8_t>(mask_.specials.size());
    added_ = 0;
    for_rows([&](const Word* p, std::uint8_t* classes, std::uint64_t n) {
      std::uint64_t count = 0;
      for (std::uint64_t x = 0; x < n; ++x) {
        classes[x] = p[x] == value ? number : classes[x];
        count += p[x] == value;
      }
      added_ += count;
    });
    mask_.masked += added_;
  }

  void drop_special() {
    const auto number = static_cast<std::uint8_t>(mask_.specials.size());
    for (std::uint8_t& c : mask_.classes) c = c == number ? std::uint8_t{0} : c;
    mask_.specials.pop_back();
    mask_.masked -= added_;
  }

  std::uint64_t value_cost() {
    const std::uint64_t cols = box_.cols();
    now_.resize(cols + 1);
    above_.resize(cols + 1);
    if (mask_.empty()) {
      return kernels::segment_cost<W>(scale_, box_.rows(), cols, now_.data(), above_.data(),
                                      [this](std::uint64_t r) { return box_.row(r); });
    }
    row_.resize(cols);
    kernels::RowSource source(box_.rows(), [this](std::uint64_t r) {
      return kernels::skip_classes(mask_.classes.data() + r * box_.cols(), 0, box_.cols(), false) < box_.cols();
    });
    return kernels::segment_cost<W>(scale_, box_.rows(), cols, now_.data(), above_.data(),
                                    [&](std::uint64_t r) { return filled_row(source(r)); });
  }

  std::uint64_t stored_bytes(std::uint64_t most) {
    if (mask_.empty()) return 0;
    if (form_ == MaskForm::levels)
      return estimate_levels(mask_.classes, mask_.specials.size(), box_.extents, views_, W::kDtype);
    using Models = kernels::OwnModels<kernels::MaskModels>;
    const kernels::MaskShape shape =
        encoding_shape(box_.extents, views_, mask_.classes, mask_.specials.size(), mask_.verbatim.size());
    if (!walk_ || walk_planes_ != shape.planes) walk_.emplace(shape);
    walk_planes_ = shape.planes;
    kernels::MaskModels models;
    kernels::ByteCount count(most);
    put_view_of(shape.planes, box_.extents, count);
    kernels::RangeEncoder<Models, kernels::ByteCount> coder{Models(models), count};
    kernels::write_mask(
        coder, shape, walk_->get(),
        {mask_.specials.data(), mask_.classes.data(), mask_.verbatim.data(), mask_.verbatim.size(), sizeof(Word)});
    return coder.sink().size();
  }

 private:
  template <class Body>
  void for_rows(Body&& body) {
    kernels::for_rows(box_,
                      [&](const Word* p, std::uint64_t first) { body(p, mask_.classes.data() + first, box_.cols()); });
  }

  /// 1 where a cell must be masked.
  void mark(const Word* p, std::uint8_t* classes, std::uint64_t n) const {
    if constexpr (W::kFloat) {
      for (std::uint64_t x = 0; x < n; ++x) classes[x] = (p[x] & W::kMagnitude) >= W::kInfinity;
    }
    for (const Word fill : fills_) {
      for (std::uint64_t x = 0; x < n; ++x) classes[x] |= static_cast<std::uint8_t>(p[x] == fill);
    }
  }

  template <class Body>
  static void for_marked(const std::uint8_t* classes, std::uint64_t n, Body&& body) {
    std::uint64_t x = 0;
    while (x < n) {
      std::uint64_t word = 1;
      if (x + 8 <= n) std::memcpy(&word, classes + x, 8);
      const std::uint64_t end = std::min(x + 8, n);
      if (word != 0) {
        for (; x < end; ++x) {
          if (classes[x] != 0) body(x);
        }
      }
      x = end;
    }
  }

  bool all_marked_are(Word special) {
    unsigned other = 0;
    for_rows([&](const Word* p, const std::uint8_t* classes, std::uint64_t n) {
      for (std::uint64_t x = 0; x < n; ++x) other |= classes[x] & static_cast<unsigned>(p[x] != special);
    });
    return other == 0;
  }

  void number_classes() {
    for_rows([&](const Word* p, std::uint8_t* classes, std::uint64_t n) {
      std::size_t last = 0;
      const auto& specials = mask_.specials;
      for_marked(classes, n, [&](std::uint64_t x) {
        if (last >= specials.size() || specials[last] != p[x]) {
          last = static_cast<std::size_t>(std::find(specials.begin(), specials.end(), p[x]) - specials.begin());
        }
        if (last < specials.size()) {
          classes[x] = static_cast<std::uint8_t>(last + 1);
        } else {
          classes[x] = kVerbatimClass;
          mask_.verbatim.push_back(p[x]);
        }
      });
    });
  }

  std::uint64_t count_valid(Word value) const {
    std::uint64_t count = 0;
    kernels::for_rows(box_, [&](const Word* p, std::uint64_t first) {
      if (mask_.empty()) {
        for (std::uint64_t x = 0; x < box_.cols(); ++x) count += p[x] == value;
      } else {
        const std::uint8_t* classes = mask_.classes.data() + first;
        for (std::uint64_t x = 0; x < box_.cols(); ++x) count += (p[x] == value) & (classes[x] == 0);
      }
    });
    return count;
  }

  /// The row with its gaps filled; zeros for no row.
  const Word* filled_row(std::uint64_t r) {
    const std::uint64_t cols = box_.cols();
    if (r >= box_.rows()) {
      std::fill(row_.begin(), row_.end(), Word{0});
      return row_.data();
    }
    const Word* p = box_.row(r);
    const std::uint8_t* classes = mask_.classes.data() + r * cols;
    if (kernels::skip_classes(classes, 0, cols, true) == cols) return p;
    std::copy(p, p + cols, row_.data());
    kernels::fill_row(row_.data(), classes, cols);
    return row_.data();
  }

  const kernels::SegmentBox<const Word> box_;
  std::span<const Word> fills_;
  const kernels::CostScale scale_;
  const Views views_;
  const MaskForm form_;
  SegmentMask& mask_;
  std::uint64_t added_ = 0;  // cells of the special value added last
  std::optional<WalkMemory> walk_;
  kernels::MaskPlanes walk_planes_;
  Vector<std::int32_t> now_;
  Vector<std::int32_t> above_;
  Vector<Word> row_;
};

template <class W>
kernels::SegmentBox<const typename W::Word> words_of(const ConstBox3& box) {
  return {static_cast<const typename W::Word*>(box.data), box.extents, box.strides};
}

template <class W>
SegmentMask find(const ConstBox3& box, std::span<const std::uint64_t> fill_bits, const RepeatedRule& rule,
                 const kernels::ScanCounts& counts) {
  const auto fills = fill_words<W>(fill_bits);
  const auto words = words_of<W>(box);
  const kernels::RepeatedRules rules = repeated_rules<W>(rule.enabled, rule.bound);
  SegmentMask mask;
  SegmentFinder<W> finder(words, fills, rules.cost, rule, mask);
  kernels::find_mask<W>(finder, rules, counts, box.elems());
  if (mask.empty()) mask.classes = {};
  return mask;
}

}  // namespace

Result<kernels::ScanCounts> scan(const ConstBox3& part, DType dtype, std::span<const std::uint64_t> fill_bits,
                                 bool ordinary) {
  if (part.elems() == 0) return kernels::ScanCounts{};
  try {
    return with_words(dtype, [&](auto words) -> Result<kernels::ScanCounts> {
      using W = decltype(words);
      return kernels::scan_segment<W>(words_of<W>(part), fill_words<W>(fill_bits), ordinary);
    });
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

Result<SegmentMask> find_specials(const ConstBox3& box, DType dtype, std::span<const std::uint64_t> fill_bits,
                                  const RepeatedRule& rule, const kernels::ScanCounts& counts) {
  if (box.elems() == 0) return SegmentMask{};
  try {
    return with_words(
        dtype, [&](auto words) -> Result<SegmentMask> { return find<decltype(words)>(box, fill_bits, rule, counts); });
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

Result<SegmentMask> find_specials(const ConstBox3& box, DType dtype, std::span<const std::uint64_t> fill_bits,
                                  const RepeatedRule& rule) {
  QUERN_ASSIGN_OR_RETURN(const kernels::ScanCounts counts, scan(box, dtype, fill_bits));
  return find_specials(box, dtype, fill_bits, rule, counts);
}

}  // namespace quern::mask

// Special cells of a segment: what must be masked, then what pays to be masked.
#include <algorithm>
#include <exception>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/repeated.h"
#include "libcompress/pipeline/mask/scan.h"

namespace quern::mask {
namespace {

/// Counts distinct bit patterns of special cells; beyond kCapacity patterns, later ones are not counted.
class PatternTable {
 public:
  void add(std::uint64_t bits) {
    if (last_ < patterns_.size() && patterns_[last_].bits == bits) {
      ++patterns_[last_].count;
      return;
    }
    for (last_ = 0; last_ < patterns_.size(); ++last_) {
      if (patterns_[last_].bits == bits) {
        ++patterns_[last_].count;
        return;
      }
    }
    if (patterns_.size() < kCapacity) patterns_.push_back({bits, 1});
  }

  /// Most frequent first, ties to the smaller bits. A pattern that occurs once among many is cheaper verbatim.
  Vector<std::uint64_t> specials() && {
    std::sort(patterns_.begin(), patterns_.end(), [](const Pattern& a, const Pattern& b) {
      return a.count != b.count ? a.count > b.count : a.bits < b.bits;
    });
    Vector<std::uint64_t> bits;
    for (const Pattern& p : patterns_) {
      if (bits.size() == kMaxSpecials || (p.count == 1 && patterns_.size() > kFewPatterns)) break;
      bits.push_back(p.bits);
    }
    return bits;
  }

 private:
  static constexpr std::size_t kCapacity = 64;
  static constexpr std::size_t kFewPatterns = 4;
  struct Pattern {
    std::uint64_t bits;
    std::uint64_t count;
  };
  Vector<Pattern> patterns_;
  std::size_t last_ = 0;
};

template <class W>
class Finder {
 public:
  using Word = typename W::Word;

  Finder(const ConstBox3& box, std::span<const Word> fills) : box_(box), fills_(fills) {}

  SegmentMask mandatory() {
    mask_.classes.resize(box_.elems());
    PatternTable patterns;
    for_rows([&](const Word* p, std::uint8_t* classes, std::uint64_t n) {
      mark(p, classes, n);
      for_marked(classes, n, [&](std::uint64_t x) { patterns.add(p[x]); });
    });
    mask_.specials = std::move(patterns).specials();
    if (mask_.specials.size() != 1 || !all_marked_are(static_cast<Word>(mask_.specials[0]))) number_classes();
    mask_.masked =
        mask_.classes.size() - static_cast<std::uint64_t>(std::count(mask_.classes.begin(), mask_.classes.end(), 0));
    return std::move(mask_);
  }

 private:
  template <class Body>
  void for_rows(Body&& body) {
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < box_.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < box_.extents[1]; ++y, at += box_.extents[2]) {
        body(row_of<W>(box_, i, y), mask_.classes.data() + at, box_.extents[2]);
      }
    }
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

  const ConstBox3& box_;
  std::span<const Word> fills_;
  SegmentMask mask_;
};

template <class W>
Result<SegmentMask> find(const ConstBox3& box, std::span<const std::uint64_t> fill_bits, const RepeatedRule& rule) {
  const auto fills = fill_words<W>(fill_bits);
  const ScanCounts counts = scan<W>(box, fills);
  SegmentMask mask;
  if (counts.any_mandatory) mask = Finder<W>(box, fills).mandatory();
  if (rule.enabled) QUERN_RETURN_IF_ERROR(add_repeated<W>(box, rule.bound, counts, mask));
  return mask;
}

}  // namespace

Result<SegmentMask> find_specials(const ConstBox3& box, DType dtype, std::span<const std::uint64_t> fill_bits,
                                  const RepeatedRule& rule) {
  if (box.elems() == 0) return SegmentMask{};
  try {
    return with_words(dtype, [&](auto words) { return find<decltype(words)>(box, fill_bits, rule); });
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

}  // namespace quern::mask

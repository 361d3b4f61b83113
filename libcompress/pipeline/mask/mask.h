// The mask of one segment: which cells hold special values (NaN, Inf, declared fill values, repeated values whose
// masking pays) and their exact bits. Finding, storing, filling and restoring; no files, no chunks, no threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/mask/scan.h"
#include "kernels/mask/segment.h"
#include "kernels/mask/view.h"

namespace quern::mask {

using kernels::kMaxSpecials;
using kernels::kVerbatimClass;
using kernels::MaskViews;
using Extents = kernels::SegmentExtents;

/// Bit patterns stand in the low bits of 64-bit words. A cell's class is 0 (valid), k in 1..specials.size() (the cell
/// holds specials[k-1]) or kVerbatimClass.
struct SegmentMask {
  Vector<std::uint64_t> specials;
  Vector<std::uint8_t> classes;    ///< one a cell, C order of the segment; empty when no cell is special
  Vector<std::uint64_t> verbatim;  ///< bits of the verbatim cells, in C order
  std::uint64_t masked = 0;        ///< cells whose class is not 0

  bool empty() const { return masked == 0; }
  friend bool operator==(const SegmentMask&, const SegmentMask&) = default;
};

/// Stored forms of masks (docs/format-mask.md).
enum class MaskForm : std::uint8_t {
  decisions = 1,  ///< sections 1 to 8: a chain of adaptive decisions
  levels = 2,     ///< section 10: symbols that can be coded side by side
};

/// The last form that masks of a stream may have.
constexpr MaskForm last_form(bool may_have_levels) { return may_have_levels ? MaskForm::levels : MaskForm::decisions; }

/// In which rows and planes a mask may be coded besides those of its box; none: those alone.
using Views = std::span<const kernels::MaskView>;

/// Whether values that occur often are masked too, and what their cost is estimated by.
struct RepeatedRule {
  bool enabled = true;
  EnforcedBound bound;
  Views views = {};                     ///< those that the mask will be coded with
  MaskForm form = MaskForm::decisions;  ///< and the form
};

/// Finds the special cells of a segment. Non-finite values and declared fill values (compared by value: -0 equals 0)
/// are always masked; with `rule.enabled` also values that are repeated often, and -0.0, if an integer estimate says
/// that the stream gets smaller. The result depends on the values only, not on strides or machine.
/// O(cells); a segment without specials and repeated values is read once and nothing is allocated.
Result<SegmentMask> find_specials(const ConstBox3& box, DType dtype, std::span<const std::uint64_t> fill_bits,
                                  const RepeatedRule& rule);

/// The one pass that every segment takes. A segment may be scanned in parts: runs of planes, or of rows where it is a
/// plane, that begin at multiples of kScanRows. Their counts added are those of the whole. Where
/// all cells are known to be `ordinary` (not infinite, NaN, -0 or a fill value), fewer are looked at.
inline constexpr std::uint64_t kScanRows = kernels::kPairPieceEvery;
Result<kernels::ScanCounts> scan(const ConstBox3& part, DType dtype, std::span<const std::uint64_t> fill_bits,
                                 bool ordinary = false);
/// The rest of find_specials, where that pass has been made.
Result<SegmentMask> find_specials(const ConstBox3& box, DType dtype, std::span<const std::uint64_t> fill_bits,
                                  const RepeatedRule& rule, const kernels::ScanCounts& counts);

/// Appends the stored form to `out`, in the view that suits the mask best; an empty mask adds no byte. Fails when the
/// mask does not fit the extents.
Status encode_mask(const SegmentMask& mask, const Extents& extents, DType dtype, Vector<std::uint8_t>& out,
                   Views views = {}, MaskForm form = MaskForm::decisions);

/// What decode_mask allocates at most for a segment of those extents: classes, scratch and every cell verbatim. Extents
/// of a valid segment (their product fits 64 bits).
std::uint64_t decode_bytes(const Extents& extents, MaskForm most = MaskForm::decisions);

/// Reads what encode_mask wrote. `in` is hostile: fails with `corrupt`, `truncated` or `trailing_data` unless every
/// byte is used; never allocates more than `max_bytes` (fails with `memory_limit`). `most`: the last form that the stream
/// may hold. Time O(cells + bytes).
Result<SegmentMask> decode_mask(std::span<const std::uint8_t> in, const Extents& extents, DType dtype,
                                std::uint64_t max_bytes, MaskForm most = MaskForm::decisions);

/// Whether a stored mask is coded by levels, by its first bytes.
bool is_by_levels(std::span<const std::uint8_t> in, const Extents& extents);

/// Overwrites the special cells of a working copy of the whole segment by finite values that are easy to predict from
/// their neighbours (each a copy of some valid cell's bits; zero when no cell is valid). O(cells).
Status fill_gaps(const MutableBox3& working_copy, DType dtype, const SegmentMask& mask);

/// Writes the special values back, bit for bit, into `out`: the part of the segment of out.extents cells that begins
/// at `offset`. `segment` gives the extents of the whole segment. Valid cells are not touched. O(cells of out); with
/// verbatim cells O(cells of the segment), for their bits are found by counting.
Status restore_specials(const MutableBox3& out, DType dtype, const SegmentMask& mask, const Extents& segment,
                        const Extents& offset);

}  // namespace quern::mask

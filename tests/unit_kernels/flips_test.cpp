// Bits that flip while the CPU encodes and decodes chunks of `lorenzo` under verify=fault: what comes of each. Both
// directions do what the pipeline does to a chunk: work, check of what is stored, checksum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/xxh3.h"
#include "kernels/lorenzo/cpu/lorenzo.h"
#include "tests/support/thorough.h"
#include "tests/unit_kernels/chunk_cases.h"
#include "tests/unit_kernels/flips.h"

namespace quern::kernels {
namespace {

using testing::ChunkCase;
using testing::Flip;
using testing::FlipOutcome;
using testing::FlipScene;
using testing::FlipTally;
using testing::FlipTarget;

constexpr std::uint64_t kSeed = 20261127;
constexpr double kMostSilent = 0.001;
/// Of encoding and of decoding each.
constexpr std::size_t kFlips = 300;
constexpr std::size_t kThoroughFlips = 12000;
constexpr std::size_t kKinds = 2;
/// Instructions an element, about: flips are planned that far.
constexpr std::uint64_t kEncodeSteps = 80;
constexpr std::uint64_t kDecodeSteps = 40;

/// One chunk of each kind, of one ragged tile or of two. Without --thorough the first kinds only.
std::vector<ChunkCase> flip_cases(bool thorough) {
  struct Kind {
    Element element;
    TileShape tile;
    QuantizerKind quantizer;
    testing::Content content;
  };
  const auto absolute = QuantizerKind::absolute;
  const Kind kinds[] = {{Element::f32, TileShape::plane, absolute, testing::Content::smooth},
                        {Element::f32, TileShape::line, absolute, testing::Content::specials},
                        {Element::f32, TileShape::plane, QuantizerKind::pointwise, testing::Content::specials},
                        {Element::f32, TileShape::block, absolute, testing::Content::mostly_refused},
                        {Element::f64, TileShape::plane, absolute, testing::Content::specials},
                        {Element::i16, TileShape::block, absolute, testing::Content::smooth},
                        {Element::f16, TileShape::line, QuantizerKind::exact, testing::Content::smooth}};
  std::vector<ChunkCase> found;
  const auto all = testing::chunk_cases();
  for (const Kind& kind : std::span(kinds).first(thorough ? std::size(kinds) : kKinds)) {
    const std::string content = "content " + std::to_string(static_cast<int>(kind.content));
    const auto same = std::find_if(all.begin(), all.end(), [&](const ChunkCase& c) {
      return c.rules.element == kind.element && c.rules.tile == kind.tile && c.rules.quantizer == kind.quantizer &&
             c.name.ends_with(content) && c.tiles() > 1;
    });
    if (same == all.end()) continue;
    ChunkCase& c = found.emplace_back(*same);
    if (kind.tile == TileShape::line) c.box.extents = {1, 1, thorough ? 1033u : 900u};
    if (kind.tile == TileShape::plane) c.box.extents = {1, thorough ? 37u : 25u, 32};
    if (kind.tile == TileShape::block) c.box.extents = {4, thorough ? 8u : 7u, thorough ? 40u : 32u};
    const auto& e = c.box.extents;
    c.box.strides = {e[1] * e[2], e[2]};  // no byte of the array is outside of the box
    c.elements.resize(e[0] * e[1] * e[2] * element_bytes(kind.element));
  }
  return found;
}

/// A chunk with all that its encoder and decoder use.
struct Work {
  explicit Work(const ChunkCase& chunk)
      : c(chunk),
        kernels(lorenzo_kernels(best_isa())),
        scratch(std::max(kernels.check_scratch_bytes, kernels.decode_scratch_bytes) + 64),
        stored(max_lorenzo_chunk_bytes(c.rules.element, c.tiles())),
        values(c.elements.size(), 0xa5) {
    bytes = kernels.encode(c.rules, c.elements.data(), c.box, stored.data(), aligned());
    check = xxh3_64(stored.data(), bytes);
    right = decoded(stored.data(), bytes);
    scene.memory = {std::span(scratch), std::span(stored.data(), bytes), std::span(values)};
  }
  void* aligned() {
    const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
    return scratch.data() + ((64 - at % 64) % 64);
  }
  /// In memory that no flip has touched; empty where the bytes are refused.
  std::vector<std::uint8_t> decoded(const std::uint8_t* in, std::size_t count) const {
    std::vector<std::uint8_t> out(c.elements.size(), 0xa5), own(kernels.decode_scratch_bytes + 64);
    const auto at = reinterpret_cast<std::uintptr_t>(own.data());
    if (count > stored.size() ||
        !kernels.decode(c.rules, in, count, out.data(), c.box, own.data() + (64 - at % 64) % 64))
      out.clear();
    return out;
  }

  const ChunkCase& c;
  const LorenzoKernels& kernels;
  std::vector<std::uint8_t> scratch, stored, values;
  std::size_t bytes = 0;
  std::uint64_t check = 0;
  std::vector<std::uint8_t> right;
  FlipScene scene;
  bool seen = false;  ///< a check failed
};

/// Encodes, sums the bytes up, holds them against the elements, and against their sum.
void encode_checked(Work& w) {
  w.scene.stage = 0;
  w.bytes = w.kernels.encode(w.c.rules, w.c.elements.data(), w.c.box, w.stored.data(), w.aligned());
  w.scene.stage = 1;
  if (w.bytes == 0 || w.bytes > w.stored.size()) {
    w.seen = true;
    return;
  }
  w.check = xxh3_64(w.stored.data(), w.bytes);
  w.seen = w.kernels.find_encode_fault(w.c.rules, w.stored.data(), w.bytes, w.c.elements.data(), w.c.box,
                                       w.aligned()) != kNoTile ||
           xxh3_64(w.stored.data(), w.bytes) != w.check;
}
FlipOutcome verdict_of_encoding(const Work& w) {
  if (w.seen) return FlipOutcome::detected;
  if (xxh3_64(w.stored.data(), w.bytes) != w.check) return FlipOutcome::detected;  // by every reader
  return w.decoded(w.stored.data(), w.bytes) == w.right ? FlipOutcome::harmless : FlipOutcome::silent;
}

/// The bytes' sum was right before; decodes, holds the values against the bytes, and the bytes against their sum.
void decode_checked(Work& w) {
  w.scene.stage = 0;
  w.scene.values_open = true;
  w.seen = !w.kernels.decode(w.c.rules, w.stored.data(), w.bytes, w.values.data(), w.c.box, w.aligned());
  w.scene.values_open = false;
  w.scene.stage = 1;
  w.seen = w.seen ||
           w.kernels.find_decode_fault(w.c.rules, w.stored.data(), w.bytes, w.values.data(), w.c.box, w.aligned()) !=
               kNoTile ||
           xxh3_64(w.stored.data(), w.bytes) != w.check;
}
FlipOutcome verdict_of_decoding(const Work& w) {
  if (w.seen) return FlipOutcome::detected;
  return w.values == w.right ? FlipOutcome::harmless : FlipOutcome::silent;
}

void run_flips(void (*code)(Work&), FlipOutcome (*verdict)(const Work&), std::uint64_t steps,
               std::span<const FlipTarget> targets, std::span<const char* const> stages) {
  if (const std::string why = testing::why_no_flips(); !why.empty()) GTEST_SKIP() << why;
  const bool thorough = quern::testing::thorough();
  const auto cases = flip_cases(thorough);
  const std::size_t count = ((thorough ? kThoroughFlips : kFlips) + cases.size() - 1) / cases.size();
  FlipTally tally;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ChunkCase& c = cases[i];
    const auto work = std::make_unique<Work>(c);  // the stack is flipped, too, and it is the callers' what to work on
    Work& w = *work;
    const std::uint64_t elements = c.box.extents[0] * c.box.extents[1] * c.box.extents[2];
    const auto flips = testing::plan_flips(steps * elements, count, targets, kSeed + i);
    testing::run_with_flips(
        w.scene, flips, [&] { code(w); }, [&] { return verdict(w); }, tally);
    ASSERT_FALSE(w.seen) << "without a flip, " << c.name;
  }
  if (thorough) std::printf("%s", tally.table(stages).c_str());
  EXPECT_GT(tally.all(), kFlips / 2);
  // Of a few hundred flips one may be silent by chance: which instructions they hit depends on compiler and machine.
  EXPECT_LE(static_cast<double>(tally.silent()), std::max(1.0, kMostSilent * static_cast<double>(tally.all())))
      << "seed " << kSeed << "\n"
      << tally.table(stages);
}

TEST(Flips, WhileAChunkIsEncoded_AreDetectedOrHarmless) {
  const FlipTarget targets[] = {FlipTarget::general_register, FlipTarget::flags,
                                FlipTarget::vector_register,  FlipTarget::stack,
                                FlipTarget::scratch,          FlipTarget::stored};
  const char* const stages[] = {"encode", "check"};
  run_flips(encode_checked, verdict_of_encoding, kEncodeSteps, targets, stages);
}

TEST(Flips, WhileAChunkIsDecoded_AreDetectedOrHarmless) {
  const FlipTarget targets[] = {
      FlipTarget::general_register, FlipTarget::flags,  FlipTarget::vector_register, FlipTarget::stack,
      FlipTarget::scratch,          FlipTarget::stored, FlipTarget::values};
  const char* const stages[] = {"decode", "check"};
  run_flips(decode_checked, verdict_of_decoding, kDecodeSteps, targets, stages);
}

}  // namespace
}  // namespace quern::kernels

// Chunks on the lanes of the emulator: values and results are those of the host's decoder, whatever the
// bytes.
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/wavelet/model.h"
#include "tests/emulator/lane_jobs.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/job_cases.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::decode_job_on_lanes;
using quern::testing::EmulatorState;

enum class KernelResult { host, damaged, good };

/// `back` has the array's bytes; `watch` counts races.
KernelResult decode_on_lanes(const Coding& coding, std::uint64_t chunk, const Bytes& stored, Bytes& back,
                             std::uint32_t warps, bool watch) {
  const MutableBox3 box = coding.box(chunk, back.data());
  Bytes exact(stored);
  exact.shrink_to_fit();
  Vector<std::uint8_t> job;
  if (!append_job(coding, exact, box, job)) return KernelResult::host;
  return decode_job_on_lanes(job, box.data, box.special, warps, watch) ? KernelResult::good : KernelResult::damaged;
}

/// What the jobs of the cases have, so that the cases are known to try it.
struct Seen {
  std::size_t linear_borders = 0;
  std::size_t own_contexts = 0;
  std::size_t back_contexts = 0;
  std::size_t spreads = 0;
  std::size_t sections = 0;
  std::size_t level_lanes = 0;
  std::size_t row_means = 0;
  std::size_t plane_means = 0;
  std::size_t raster_lanes = 0;
  std::size_t packets = 0;
  std::size_t corrections = 0;
  std::size_t exceptions = 0;
  std::array<std::size_t, 3> lattices{};  ///< by kind

  void add(std::span<const std::uint8_t> bytes) {
    kernels::JobHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.kind == kernels::JobKind::levels) add_levels(bytes);
    const double spacing = head.kind == kernels::JobKind::levels   ? of<kernels::LevelJob>(bytes).lattice.spacing
                           : head.kind == kernels::JobKind::raster ? of<kernels::RasterJob>(bytes).lattice.spacing
                                                                   : of<kernels::WaveletJob>(bytes).lattice.spacing;
    lattices[static_cast<std::size_t>(head.kind)] += spacing != 0 ? 1 : 0;
    if (head.kind == kernels::JobKind::raster) {
      kernels::RasterJob job;
      std::memcpy(&job, bytes.data(), sizeof job);
      (job.planes > 1 ? plane_means : row_means) += job.mean ? 1 : 0;
      raster_lanes += job.lanes.mask > 0 ? 1 : 0;
      exceptions += job.exception_count;
    }
    if (head.kind == kernels::JobKind::wavelet) {
      kernels::WaveletJob job;
      std::memcpy(&job, bytes.data(), sizeof job);
      corrections += job.correction != 0 ? 1 : 0;
      exceptions += job.exception_count;
      for (std::uint32_t b = 0; b < job.band_count; ++b) packets += band(bytes, job, b).known_taps > 0 ? 1 : 0;
    }
  }

 private:
  template <class Job>
  static Job of(std::span<const std::uint8_t> bytes) {
    Job job;
    std::memcpy(&job, bytes.data(), sizeof job);
    return job;
  }
  static kernels::WaveletBandPlan band(std::span<const std::uint8_t> bytes, const kernels::WaveletJob& job,
                                       std::uint32_t number) {
    kernels::WaveletBandPlan plan;
    std::memcpy(&plan, bytes.data() + job.bands + number * sizeof plan, sizeof plan);
    return plan;
  }
  void add_levels(std::span<const std::uint8_t> bytes) {
    kernels::LevelJob job;
    std::memcpy(&job, bytes.data(), sizeof job);
    linear_borders += job.linear_border ? 1 : 0;
    exceptions += job.exception_count;
    for (std::uint32_t at = job.plans; at + sizeof(kernels::ClassPlan) <= job.taps; at += sizeof(kernels::ClassPlan)) {
      kernels::ClassPlan plan;
      std::memcpy(&plan, bytes.data() + at, sizeof plan);
      own_contexts += (plan.above | plan.sides) != 0 ? 1 : 0;
      back_contexts += plan.back != 0 ? 1 : 0;
      spreads += plan.spread_count;
    }
    const std::size_t count = (job.starts - job.sections) / sizeof(kernels::StreamSection);
    sections += count > 1 ? 1 : 0;
    for (std::size_t s = 0; s < count; ++s) {
      kernels::StreamSection section;
      std::memcpy(&section, bytes.data() + job.sections + s * sizeof section, sizeof section);
      level_lanes += section.mask > 0 ? 1 : 0;
    }
  }
};

TEST(Stencil_OnLanes, Cases_TryEverything) {
  Seen seen;
  for (const LanesCase& c : cases()) {
    const auto coding = coding_of(c);
    Bytes none(coding->data().size());
    for (std::uint64_t chunk = 0; chunk < coding->chunks(); ++chunk) {
      Vector<std::uint8_t> job;
      ASSERT_TRUE(append_job(*coding, coding->encode(chunk), coding->box(chunk, none.data()), job)) << c.name;
      seen.add(job);
    }
  }
  EXPECT_GT(seen.linear_borders, 0u);
  EXPECT_GT(seen.own_contexts, 0u);
  EXPECT_GT(seen.back_contexts, 0u);
  EXPECT_GT(seen.spreads, 0u);
  EXPECT_GT(seen.sections, 0u);
  EXPECT_GT(seen.level_lanes, 0u);
  EXPECT_GT(seen.row_means, 0u);
  EXPECT_GT(seen.plane_means, 0u);
  EXPECT_GT(seen.raster_lanes, 0u);
  EXPECT_GT(seen.packets, 0u);
  EXPECT_GT(seen.corrections, 0u);
  EXPECT_GT(seen.exceptions, 0u);
  for (const std::size_t lattices : seen.lattices) EXPECT_GT(lattices, 1u);
}

TEST(Stencil_OnLanes, EveryCase_ValuesOfTheHost) {
  std::uint64_t seed = 1;
  std::size_t number = 0;
  for (const LanesCase& c : cases()) {
    if (quern::testing::kInstrumented && number++ % 3 != 0) continue;
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    Bytes expected(coding->data().size(), 0xA5);
    Bytes back(coding->data().size(), 0xA5);
    for (std::uint64_t chunk = 0; chunk < coding->chunks(); ++chunk) {
      const Bytes stored = coding->encode(chunk);
      ASSERT_TRUE(decode_on_host(*coding, chunk, stored, expected).ok());
      EmulatorState::instance().reset(++seed);
      const bool watch = coding->data().size() < 200000;
      ASSERT_EQ(decode_on_lanes(*coding, chunk, stored, back, 1 + static_cast<std::uint32_t>(seed % 5), watch),
                KernelResult::good);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
    }
    ASSERT_EQ(back, expected);
  }
}

TEST(Stencil_OnLanes, OtherModes_AreTheHosts) {
  const Shape shape = shape_of({9, 20, 33});
  const Coding constant(DType::f32, shape, as_bytes<float>(std::vector<double>(shape.elems(), 4)), 1e-2,
                        {{"layout", "levels"}});
  Bytes back(constant.data().size());
  EXPECT_EQ(decode_on_lanes(constant, 0, constant.encode(0), back, 2, false), KernelResult::host);
  // So are they on a lattice.
  Bytes on_lattice(kLatticeHead);
  write_lattice({1, 0.5}, on_lattice);
  on_lattice.insert(on_lattice.end(), {1, 7, 0, 0, 0});
  ASSERT_TRUE(decode_on_host(constant, 0, on_lattice, back).ok());
  EXPECT_EQ(decode_on_lanes(constant, 0, on_lattice, back, 2, false), KernelResult::host);
}

/// Where the exceptions of a chunk on a lattice are told: behind the model of the chunk of integers.
std::size_t exceptions_at(const Coding& coding, const Bytes& stored) {
  const ChunkSpec spec = spec_of_state(coding.decoder().device_state());
  const MutableBox3 box = coding.box(0, nullptr);
  std::span<const std::uint8_t> rest(stored);
  rest = rest.subspan(kLatticeHead + 1);
  const LevelsView view(box, spec.form);
  const auto mode = static_cast<Mode>(stored[kLatticeHead]);
  if (mode == Mode::levels) {
    Vector<Predictor> predictors(LevelsModel::predictor_count(view.axes));
    LevelsModel model;
    model.predictors = predictors.data();
    EXPECT_TRUE(read_levels_model(rest, view.axes, model).ok());
  } else if (mode == Mode::raster) {
    RasterModel model;
    EXPECT_TRUE(read_raster_model(rest, kernels::stencil_extents(box.extents), model).ok());
  } else {
    Vector<std::uint16_t> constants(kMaxWaveletGroups);
    WaveletModel model;
    model.axes = wavelet_axes(view);
    model.constants = constants.data();
    EXPECT_TRUE(read_wavelet_model(rest, model).ok());
  }
  return stored.size() - rest.size();
}

TEST(Stencil_OnLanes, ExceptionsOnALattice_AreElements) {
  std::size_t tried = 0;
  for (const LanesCase& c : cases()) {
    if (c.spacing == 0) continue;
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    Bytes stored = coding->encode(0);
    const auto at = stored.begin() + static_cast<std::ptrdiff_t>(exceptions_at(*coding, stored));
    ASSERT_EQ(*at, 0);  // there were none
    // Two: numbers 5 and 7, places -3 and 2^31 - 1.
    *at = 2;
    const Bytes two{5, 0xFD, 0xFF, 0xFF, 0xFF, 1, 0xFF, 0xFF, 0xFF, 0x7F};
    stored.insert(at + 1, two.begin(), two.end());
    Bytes expected(coding->data().size(), 0xA5);
    Bytes back(coding->data().size(), 0xA5);
    ASSERT_TRUE(decode_on_host(*coding, 0, stored, expected).ok());
    EmulatorState::instance().reset(++tried);
    ASSERT_EQ(decode_on_lanes(*coding, 0, stored, back, 3, true), KernelResult::good);
    EXPECT_EQ(back, expected);
  }
  EXPECT_GT(tried, 4u);
}

/// Bytes that nobody wrote: what the host refuses is refused, by the job's maker or by the lanes; all else gives
/// the host's values.
void expect_same_result(const Coding& coding, const Bytes& stored) {
  Bytes expected(coding.data().size(), 0x11);
  Bytes back(coding.data().size(), 0x11);
  const Status host = decode_on_host(coding, 0, stored, expected);
  const KernelResult lanes = decode_on_lanes(coding, 0, stored, back, 3, false);
  if (lanes == KernelResult::host) return;  // the host has the word
  if (in_raster_order(stored) && lanes == KernelResult::damaged)
    return;  // or because of large sums, with which it has the word, too
  ASSERT_EQ(lanes == KernelResult::good, host.ok()) << host.text();
  if (host.ok()) {
    ASSERT_EQ(back, expected);
  }
}

TEST(Stencil_OnLanes, AlteredBytes_AnswersOfTheHost) {
  std::mt19937 random(77);
  std::size_t decoded = 0;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    if (coding->data().size() > 100000) continue;
    const Bytes stored = coding->encode(0);
    EmulatorState::instance().reset(9);
    for (std::size_t round = 0; round < (quern::testing::kInstrumented ? 2u : 6u); ++round) {
      Bytes altered(stored);
      // Mostly where the model is; a lane's words are the rest.
      const std::size_t most = round % 4 == 0 ? altered.size() : std::min<std::size_t>(altered.size(), 120);
      for (std::size_t n = 1 + random() % 3; n-- > 0;)
        altered[1 + random() % (most - 1)] ^= static_cast<std::uint8_t>(1u << (random() % 8));
      expect_same_result(*coding, altered);
      if (HasFatalFailure()) return;
      Vector<std::uint8_t> job;
      Bytes none(coding->data().size());
      if (append_job(*coding, altered, coding->box(0, none.data()), job)) ++decoded;
    }
    for (std::size_t length = 0; length < stored.size(); length += 1 + stored.size() / 6)
      expect_same_result(*coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  EXPECT_GT(decoded, 20u);
}

}  // namespace
}  // namespace quern::codec::stencil::test

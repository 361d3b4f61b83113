// Bits that flip while the (simulated) device encodes and decodes arrays under verify=fault: what comes of each, and that
// a call that waits does its work once more. A copy of the process takes each flip, so that a crash is an outcome.
#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <quern/metrics.h>

#include "tests/gpu/device_job.h"
#include "tests/simt/cuda_test.h"
#include "tests/simt/simt.h"
#include "tests/support/thorough.h"

namespace quern {
namespace {

using quern::testing::Bytes;
using quern::testing::Data;
using quern::testing::decoded_on_host;
using quern::testing::DeviceBuffer;
using quern::testing::DeviceJob;
using quern::testing::lorenzo;
using quern::testing::on_host;
using quern::testing::OwnedArray;
using quern::testing::shape_of;
using quern::testing::Stream;
using simt::BitFlip;

constexpr std::uint64_t kSeed = 20261127;
constexpr double kMostSilent = 0.001;
/// Of encoding and of decoding each.
constexpr std::size_t kFlips = 60;
constexpr std::size_t kThoroughFlips = 12000;
constexpr std::size_t kShortCases = 3;
/// Of processor time that a copy may take.
constexpr unsigned kMostSeconds = 3;
constexpr unsigned kThoroughSeconds = 20;

enum class Outcome : std::uint8_t { harmless, detected, loud, silent };
enum class Target : std::uint8_t { exchanged, shared, workspace, stream, values };
constexpr const char* kTargetNames[] = {"values that lanes exchange", "shared memory", "workspace", "stream", "values"};

struct Case {
  DType dtype;
  Shape shape;
  Data data;
  BoundKind kind;
  double bound;
};

/// Tiles of every shape, in parts and whole; masks; exceptions; no bound; the first ones without --thorough.
std::vector<Case> cases() {
  std::vector<Case> all = {{DType::f32, shape_of({4, 9, 40}), Data::smooth, BoundKind::abs, 1e-2},
                           {DType::f32, shape_of({20, 45}), Data::land, BoundKind::rel, 1e-3},
                           {DType::i16, shape_of({1200}), Data::noise, BoundKind::abs, 3},
                           {DType::f64, shape_of({40, 32}), Data::smooth, BoundKind::abs, 1e-4},
                           {DType::f32, shape_of({8, 8, 32}), Data::noise, BoundKind::abs, 1e-3},
                           {DType::f32, shape_of({30, 40}), Data::smooth, BoundKind::pwrel, 1e-2},
                           {DType::f16, shape_of({1100}), Data::nan_scattered, BoundKind::lossless, 0}};
  if (!quern::testing::thorough()) all.resize(kShortCases);
  return all;
}

CompressOptions checked(CompressOptions options) {
  options.settings.emplace_back("verify", "fault");
  return options;
}

/// One array with all that a call on it takes.
class Scene {
 public:
  explicit Scene(const Case& c)
      : options(lorenzo(c.kind, c.bound)),
        array(quern::testing::make_array(c.dtype, c.shape, c.data)),
        expected(on_host(array, options)),
        right(array) {
    EXPECT_EQ(decoded_on_host(expected, right), StatusCode::ok);
    auto plain = device_compressor(0, c.dtype, c.shape, options);
    auto checking = device_compressor(0, c.dtype, c.shape, checked(options));
    EXPECT_TRUE(plain.ok() && checking.ok());
    coder = std::move(checking).value();
    call_bytes = (*plain)->workspace_bytes(1);
    job = std::make_unique<DeviceJob>(*coder, 1, array.bytes.size(), expected.size());
    plain_job = std::make_unique<DeviceJob>(**plain, 1, array.bytes.size(), expected.size());
    unchecked = std::move(plain).value();
  }

  static Bytes bytes_of(const OwnedArray& array) { return {array.bytes.begin(), array.bytes.end()}; }

  /// Whether the work was done, and nothing failed.
  bool run(DeviceJob& on, bool encode, const std::vector<BitFlip>& flips) {
    on.room().put({expected.size()});
    if (encode) {
      on.array(0).put(bytes_of(array));
    } else {
      on.array(0).put(Bytes(array.bytes.size(), 0xa5));
      on.stream(0).put(expected);
    }
    Stream queue;
    simt::plan_flips(flips);
    const bool queued = encode ? on.compress(queue).ok() : on.decompress(queue).ok();
    return queued && cudaStreamSynchronize(queue) == cudaSuccess && simt::failure().empty();
  }

  /// Finds what the call writes of its workspace: what is the same whatever was there before.
  bool find_used(bool encode) {
    std::vector<Bytes> left;
    for (const std::uint8_t before : {0x00, 0xff}) {
      plain_job->workspace().put(Bytes(call_bytes, before));
      if (!run(*plain_job, encode, {})) return false;
      left.push_back(plain_job->workspace().get());
    }
    for (std::uint64_t i = 0; i < call_bytes; ++i)
      if (left[0][i] == left[1][i]) used_bytes.push_back(i);
    return !used_bytes.empty();
  }

  Outcome verdict(bool encode) const {
    if (job->outcomes()[0].status != 0) return Outcome::detected;
    OwnedArray back = array;
    if (!encode) {
      const Bytes got = job->array(0).get();
      std::copy(got.begin(), got.end(), back.bytes.begin());
    } else if (decoded_on_host(job->stream(0).get(job->outcomes()[0].bytes), back) != StatusCode::ok) {
      return Outcome::detected;  // by every reader
    }
    if (back.bytes == right.bytes) return Outcome::harmless;
    // A flip while layout and step were chosen: another stream, which must keep what was asked for all the same.
    return encode && keeps_bound(back) ? Outcome::harmless : Outcome::silent;
  }

  CompressOptions options;
  OwnedArray array;
  Bytes expected;
  OwnedArray right;
  std::unique_ptr<DeviceArrayCoder> coder, unchecked;
  std::unique_ptr<DeviceJob> job, plain_job;
  std::uint64_t call_bytes = 0;           ///< of the workspace, in which the call itself works
  std::vector<std::uint64_t> used_bytes;  ///< of these, the ones that it writes

 private:
  /// The bound of the stream that no flip has touched.
  bool keeps_bound(const OwnedArray& back) const {
    MemorySource source(expected);
    const auto info = inspect(source, builtin_codecs());
    const auto check = check_bound(array.view(), back.view(), info->enforced, {}, {});
    return check.ok() && check->violations == 0;
  }
};

/// The launches of a call that looks for no faults, as moments; and where the last one ends.
using Launches = std::vector<std::uint64_t>;

/// Every other one in any launch, whatever its length; the others at any time, so that long launches get more.
BitFlip plan(const Scene& scene, bool encode, const Launches& launches, Target target, std::mt19937_64& random) {
  BitFlip flip;
  const std::size_t launch = random() % (launches.size() - 1);
  const bool in_any_launch = random() % 2 == 0;
  const std::uint64_t begin = in_any_launch ? launches[launch] : launches.front();
  const std::uint64_t end = in_any_launch ? launches[launch + 1] : launches.back();
  flip.moment = begin + random() % (end - begin);
  flip.choice = random();
  const auto within = [&](std::uint8_t* begin, std::uint64_t bytes) {
    flip.where = BitFlip::Where::memory;
    flip.at = begin + random() % bytes;
  };
  switch (target) {
    case Target::exchanged: flip.where = BitFlip::Where::exchanged; break;
    case Target::shared: flip.where = BitFlip::Where::shared; break;
    case Target::workspace:
      within(scene.job->workspace().data() + scene.used_bytes[random() % scene.used_bytes.size()], 1);
      break;
    case Target::stream: within(scene.job->stream(0).data(), scene.expected.size()); break;
    case Target::values: within(scene.job->array(0).data(), scene.array.bytes.size()); break;
  }
  // What the caller gives is read as it is: values of an array may only change before they are first read.
  EXPECT_FALSE(encode && target == Target::values);
  return flip;
}

/// What becomes of a flip that a copy of this process takes.
Outcome outcome_of(Scene& scene, bool encode, const BitFlip& flip) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
    std::freopen("/dev/null", "w", stderr);
    const itimerval limit{{0, 0}, {quern::testing::thorough() ? kThoroughSeconds : kMostSeconds, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    const bool done = scene.run(*scene.job, encode, {flip});
    _exit(static_cast<int>(done ? scene.verdict(encode) : Outcome::loud));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= static_cast<int>(Outcome::silent);
  return ended ? static_cast<Outcome>(WEXITSTATUS(status)) : Outcome::loud;
}

/// Counts of outcomes, by target.
class Tally {
 public:
  void add(Target target, Outcome outcome) {
    ++counts_[static_cast<std::size_t>(target)][static_cast<std::size_t>(outcome)];
  }
  std::uint64_t all() const { return of(Outcome::harmless) + of(Outcome::detected) + of(Outcome::loud) + silent(); }
  std::uint64_t silent() const { return of(Outcome::silent); }
  std::string table() const {
    std::string text = "| flipped in | flips | harmless | detected | crash or hang | silent |\n";
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      const auto& n = counts_[t];
      text += std::string("| ") + kTargetNames[t] + " | " + std::to_string(n[0] + n[1] + n[2] + n[3]);
      for (const std::uint64_t count : n) text += " | " + std::to_string(count);
      text += " |\n";
    }
    return text;
  }

 private:
  std::uint64_t of(Outcome outcome) const {
    std::uint64_t sum = 0;
    for (const auto& n : counts_) sum += n[static_cast<std::size_t>(outcome)];
    return sum;
  }

  std::array<std::array<std::uint64_t, 4>, std::size(kTargetNames)> counts_{};
};

class DeviceFaultsTest : public quern::testing::CudaTest {
 protected:
  struct Work {
    explicit Work(const Case& c) : scene(c) {}
    Scene scene;
    Launches launches;
  };

  static void prepare(Work& work, bool encode) {
    Scene& scene = work.scene;
    ASSERT_TRUE(scene.find_used(encode));
    ASSERT_TRUE(scene.run(*scene.plain_job, encode, {}));
    work.launches = simt::launch_moments();
    work.launches.push_back(simt::moments());
    ASSERT_TRUE(scene.run(*scene.job, encode, {}));
    ASSERT_GT(simt::launch_moments().size(), work.launches.size());
    ASSERT_EQ(scene.verdict(encode), Outcome::harmless);
  }

  /// Of the whole stream, as soon as the call's own kernels have ended: a flip of data that is read again.
  static BitFlip of_stream(const Work& work) {
    BitFlip flip;
    flip.moment = work.launches.back();
    flip.at = work.scene.job->stream(0).data() + work.scene.expected.size() / 2;
    return flip;
  }

  /// The arrays take turns, so that a run which is ended early has seen all of them.
  void run_flips(bool encode) {
    std::vector<std::unique_ptr<Work>> works;
    for (const Case& c : cases()) {
      prepare(*works.emplace_back(std::make_unique<Work>(c)), encode);
      if (HasFatalFailure()) return;
    }
    const bool thorough = quern::testing::thorough();
    const std::size_t flips = thorough ? kThoroughFlips : kFlips;
    std::mt19937_64 random(kSeed);
    Tally tally;
    for (const auto& work : works) EXPECT_EQ(outcome_of(work->scene, encode, of_stream(*work)), Outcome::detected);
    for (std::size_t i = 0; i < flips; ++i) {
      Work& work = *works[i % works.size()];
      const auto target = static_cast<Target>(random() % (encode ? 4 : 5));
      const BitFlip flip = plan(work.scene, encode, work.launches, target, random);
      const Outcome outcome = outcome_of(work.scene, encode, flip);
      tally.add(target, outcome);
      if (outcome == Outcome::silent)
        std::printf("silent: array %zu, %s, moment %llu, choice %llu\n", i % works.size(),
                    kTargetNames[static_cast<std::size_t>(target)], static_cast<unsigned long long>(flip.moment),
                    static_cast<unsigned long long>(flip.choice));
      if (thorough && (i + 1) % 500 == 0) std::printf("%s", tally.table().c_str());
    }
    EXPECT_LE(static_cast<double>(tally.silent()), thorough ? kMostSilent * static_cast<double>(tally.all()) : 0.0)
        << "seed " << kSeed << "\n"
        << tally.table();
  }
};

TEST_F(DeviceFaultsTest, FlipsWhileArraysAreEncoded_AreDetectedOrHarmless) { run_flips(true); }
TEST_F(DeviceFaultsTest, FlipsWhileArraysAreDecoded_AreDetectedOrHarmless) { run_flips(false); }

/// A launch of the second reading of a call, well before values are compared.
std::size_t within_second_reading(std::size_t launches_of_call) { return launches_of_call + 4; }

TEST_F(DeviceFaultsTest, OneFlip_CallsThatWaitDoTheirWorkOnceMore) {
  Scene scene(cases().front());
  ASSERT_TRUE(scene.run(*scene.plain_job, true, {}));
  const std::size_t launches = simt::launch_moments().size();
  ASSERT_TRUE(scene.run(*scene.job, true, {}));
  BitFlip flip;
  flip.launch = within_second_reading(launches);
  const std::size_t checked_launches = simt::launch_moments().size();
  DeviceBuffer<std::uint8_t> values(Scene::bytes_of(scene.array));
  flip.at = values.data() + 3;
  flip.choice = 5;  // of the exponent

  // The array is not what was encoded, as the check sees; the second time it is.
  OwnedArray changed = scene.array;
  changed.bytes[3] ^= 1u << 5;
  Bytes stream(scene.expected.size() + 256);
  simt::plan_flips({flip});
  const auto report =
      compress_device_array(0, values.data(), scene.array.dtype, scene.array.shape, checked(scene.options), stream);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(simt::launch_moments().size(), 2 * checked_launches);
  stream.resize(report->output_bytes);
  EXPECT_EQ(stream, on_host(changed, scene.options));

  // And once more, the second time too.
  stream.resize(scene.expected.size() + 256);
  BitFlip again = flip;
  again.launch += checked_launches;
  simt::plan_flips({flip, again});
  EXPECT_EQ(
      compress_device_array(0, values.data(), scene.array.dtype, scene.array.shape, checked(scene.options), stream)
          .status()
          .code(),
      StatusCode::hardware_fault);
}

TEST_F(DeviceFaultsTest, OneFlipOfDecodedValues_CallsThatWaitDecodeOnceMore) {
  Scene scene(cases().front());
  ASSERT_TRUE(scene.run(*scene.plain_job, false, {}));
  const std::size_t launches = simt::launch_moments().size();
  ASSERT_TRUE(scene.run(*scene.job, false, {}));
  DeviceBuffer<std::uint8_t> values(scene.array.bytes.size());
  BitFlip flip;
  flip.launch = within_second_reading(launches);
  flip.at = values.data() + scene.array.bytes.size() / 2;
  BitFlip again = flip;
  again.launch += simt::launch_moments().size();
  const auto decode = [&](const std::vector<BitFlip>& flips) {
    simt::plan_flips(flips);
    return decompress_device_array(0, scene.expected, values.data(), scene.array.dtype, scene.array.shape, true).code();
  };
  EXPECT_EQ(decode({flip}), StatusCode::ok);
  EXPECT_EQ(values.get(), Scene::bytes_of(scene.right));
  EXPECT_EQ(decode({flip, again}), StatusCode::hardware_fault);
}

TEST_F(DeviceFaultsTest, OneFlipOfTheStream_CallsThatWaitCopyItOnceMore) {
  Scene scene(cases().front());
  ASSERT_TRUE(scene.run(*scene.plain_job, false, {}));
  const std::size_t launches = simt::launch_moments().size();
  ASSERT_TRUE(scene.run(*scene.job, false, {}));
  const std::size_t checked_launches = simt::launch_moments().size();
  DeviceBuffer<std::uint8_t> values(scene.array.bytes.size());
  BitFlip flip;
  flip.where = BitFlip::Where::uploaded;
  flip.launch = launches + 1;  // the first one of the second reading
  flip.choice = 8 * (scene.expected.size() / 2);
  simt::plan_flips({flip});
  const Status done =
      decompress_device_array(0, scene.expected, values.data(), scene.array.dtype, scene.array.shape, true);
  EXPECT_TRUE(done.ok()) << done.text();
  EXPECT_EQ(simt::launch_moments().size(), 2 * checked_launches);
  EXPECT_EQ(values.get(), Scene::bytes_of(scene.right));
}

TEST_F(DeviceFaultsTest, EveryBoundAndType_SameBytesAndNoFalseAlarm) {
  for (const DType dtype : quern::testing::all_dtypes())
    for (const auto& [kind, bound] : {std::pair{BoundKind::rel, 1e-3}, std::pair{BoundKind::lossless, 0.0},
                                      std::pair{BoundKind::abs, 0.0}, std::pair{BoundKind::pwrel, 1e-2}}) {
      if (kind == BoundKind::pwrel && !is_float(dtype)) continue;
      Scene scene({dtype, shape_of({6, 90}), is_float(dtype) ? Data::nan_scattered : Data::noise, kind, bound});
      SCOPED_TRACE(dtype_name(dtype));
      ASSERT_TRUE(scene.run(*scene.job, true, {}));
      ASSERT_EQ(scene.job->outcomes()[0].status, 0);
      EXPECT_EQ(scene.job->stream(0).get(), scene.expected);
      ASSERT_TRUE(scene.run(*scene.job, false, {}));
      ASSERT_EQ(scene.job->outcomes()[0].status, 0);
      EXPECT_EQ(scene.job->array(0).get(), Scene::bytes_of(scene.right));
    }
}

TEST_F(DeviceFaultsTest, ArrayBetweenMultiplesOf16_IsHeldTheSameWay) {
  Scene scene(cases().front());
  ASSERT_TRUE(scene.run(*scene.plain_job, true, {}));
  const std::size_t launches = simt::launch_moments().size();
  constexpr std::size_t kOffset = 4;
  Bytes bytes(kOffset);
  bytes.insert(bytes.end(), scene.array.bytes.begin(), scene.array.bytes.end());
  DeviceBuffer<std::uint8_t> values(bytes);
  Bytes stream(scene.expected.size());
  BitFlip flip;
  flip.launch = within_second_reading(launches);
  flip.at = values.data() + bytes.size() - 1;
  flip.choice = 5;
  const auto compress_with = [&](const std::vector<BitFlip>& flips) {
    simt::plan_flips(flips);
    return compress_device_array(0, values.data() + kOffset, scene.array.dtype, scene.array.shape,
                                 checked(scene.options), stream)
        .status()
        .code();
  };
  EXPECT_EQ(compress_with({}), StatusCode::ok);
  EXPECT_EQ(stream, scene.expected);
  const std::size_t once = simt::launch_moments().size();
  stream.resize(2 * stream.size());
  EXPECT_EQ(compress_with({flip}), StatusCode::ok);
  EXPECT_EQ(simt::launch_moments().size(), 2 * once);
}

TEST_F(DeviceFaultsTest, DamagedStreams_AreRefusedAndNoFaults) {
  Scene scene(cases().front());
  Bytes damaged = scene.expected;
  damaged[damaged.size() / 2] ^= 1;
  scene.job->room().put({damaged.size()});
  scene.job->stream(0).put(damaged);
  Stream queue;
  ASSERT_TRUE(scene.job->decompress(queue).ok());
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  EXPECT_EQ(scene.job->outcomes()[0].status, static_cast<std::int32_t>(StatusCode::checksum_mismatch));
}

TEST_F(DeviceFaultsTest, Batch_OneOutcomeForEachArray) {
  const Case c = cases().front();
  Scene scene(c);
  constexpr std::size_t kCount = 3;
  DeviceJob job(*scene.coder, kCount, scene.array.bytes.size(), scene.expected.size());
  for (std::size_t i = 0; i < kCount; ++i) job.array(i).put(Scene::bytes_of(scene.array));
  job.room().put({scene.expected.size(), scene.expected.size() - 1, scene.expected.size()});
  Stream queue;
  simt::plan_flips({});
  ASSERT_TRUE(job.compress(queue).ok());
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  const auto too_small = static_cast<std::int32_t>(StatusCode::destination_too_small);
  EXPECT_EQ(job.statuses(), (std::vector<std::int32_t>{0, too_small, 0}));
  EXPECT_EQ(job.sizes(), (std::vector<std::uint64_t>{scene.expected.size(), 0, scene.expected.size()}));
  // What the array holds when it is compared is the caller's: a flip there is one of the third array alone.
  BitFlip flip;
  flip.launch = simt::launch_moments().size() - 5;
  flip.at = job.array(2).data() + 3;
  flip.choice = 5;
  simt::plan_flips({flip});
  job.room().put(std::vector<std::uint64_t>(kCount, scene.expected.size()));
  ASSERT_TRUE(job.compress(queue).ok());
  ASSERT_EQ(cudaStreamSynchronize(queue), cudaSuccess);
  EXPECT_EQ(job.statuses(), (std::vector<std::int32_t>{0, 0, static_cast<std::int32_t>(StatusCode::hardware_fault)}));
}

}  // namespace
}  // namespace quern

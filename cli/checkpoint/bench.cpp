// quern checkpoint bench: how long a trainer waits under each way of saving. Ways take turns, so that what else the
// machine does hits all of them.
#include <algorithm>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include "checkpoint/convert/convert.h"
#include "checkpoint/convert/save_set.h"
#include "checkpoint/engine/engine.h"
#include "checkpoint/engine/stoppable_files.h"
#include "checkpoint/tiers/copy_checkpoint.h"
#include "cli/checkpoint/bench_trainer.h"
#include "cli/checkpoint/verb.h"
#include "cli/files/bench_folder.h"
#include "cli/files/page_file.h"
#include "cli/files/timeline_page.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "storage/token_bucket.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

constexpr double kNoEnd = std::numeric_limits<double>::infinity();
constexpr double kSlice = 0.1;  // seconds after which a wait looks for Ctrl-C
constexpr int kRounds = 3;

enum class Way { none, wait, copy, raw, lazy };
constexpr std::pair<Way, const char*> kWays[] = {
    {Way::none, "none"}, {Way::wait, "wait"}, {Way::copy, "copy"}, {Way::raw, "raw"}, {Way::lazy, "lazy"}};

/// What was measured of one way, over all rounds.
struct Measured {
  std::vector<double> steps;       ///< seconds of steps
  std::vector<double> blocked;     ///< that a save held its step up
  std::vector<double> submits;     ///< of that, seconds in submit
  std::vector<double> durable;     ///< from submit on
  std::vector<double> local;       ///< likewise, until the store has it; of ways through an engine
  std::uint64_t stored_bytes = 0;  ///< of the last checkpoint
  ck::EngineStats stats;
  Timeline timeline;  ///< of the first round
};

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

ck::AddedTensor added(const BenchTrainer::Tensor& tensor) {
  ck::AddedTensor out;
  out.name = tensor.name;
  out.what.type = ck::ElementType::f32;
  // Two axes where that can be, as presets leave vectors alone.
  const std::uint64_t n = tensor.values.size();
  const std::uint64_t rows = n % 64 == 0 ? 64 : 1;
  const std::uint64_t extents[] = {rows, n / rows};
  const auto shape = Shape::make({extents, 2});
  if (!shape.ok()) fail_status(shape.status(), Phase::encode, tensor.name);
  out.what.shape = *shape;
  out.data = reinterpret_cast<const std::uint8_t*>(tensor.values.data());
  return out;
}

/// The trainer's tensors as they lie, for a save that waits.
class WholeState final : public ck::TensorSet {
 public:
  explicit WholeState(const BenchTrainer& trainer) {
    for (const auto& tensor : trainer.tensors()) tensors_.push_back(added(tensor));
  }
  std::size_t count() const override { return tensors_.size(); }
  ck::SetTensor tensor(std::size_t index) const override { return ck::set_tensor(tensors_[index]); }
  Result<std::span<const std::uint8_t>> values(std::size_t index, AlignedBuffer&, ck::Report&) override {
    return std::span<const std::uint8_t>(tensors_[index].data, static_cast<std::size_t>(tensors_[index].what.bytes()));
  }

 private:
  std::vector<ck::AddedTensor> tensors_;
};

class Bench {
 public:
  Bench(const CheckpointArgs& args, BenchTrainer& trainer, const BenchFolder& folder)
      : args_(args),
        trainer_(trainer),
        folder_(folder),
        runner_([&] {
          Execution execution;
          execution.threads = args.run.threads;
          return execution;
        }()),
        tier_turns_(args.throttle) {
    const auto preset = ck::parse_preset(args.preset);
    if (!preset) fail(Exit::usage, fmt::format("--preset {}: use exact, moments, balanced or archive", args.preset));
    options_.preset = *preset;
    options_.save.base_newest = args.base_newest;
  }

  /// Some steps of one way, in a store of its own.
  void run(Way way, const char* name, int round, Measured& out) {
    ck::StoppableFiles files(ck::system_files(), args_.bench_tier ? 0 : args_.throttle);
    const std::string root = folder_.inside(fmt::format("{}-{}", name, round));
    const Stopwatch clock;
    spans_.clear();
    const auto engine = way == Way::none || way == Way::wait ? nullptr : open_engine(root);
    const ck::Store store(files, String(root));
    const bool draws = round == 0;
    for (std::uint64_t step = 1; step <= args_.bench_steps; ++step) {
      check_interrupt();
      const double begin = clock.seconds();
      trainer_.forward();
      const double forwarded = clock.seconds();
      trainer_.backward();
      const double after = clock.seconds();
      double blocked = 0;
      if (engine != nullptr) blocked = fence(*engine);
      const double free = clock.seconds();
      trainer_.update();
      const double updated = clock.seconds();
      double inside = 0;
      if (way != Way::none && step % args_.every == 0) {
        if (way == Way::wait) {
          save_and_wait(store, step, out);
        } else {
          submit(*engine, step, way == Way::raw);
          inside = clock.seconds() - updated;
          if (way == Way::copy) blocked += fence(*engine);
        }
      }
      const double end = clock.seconds();
      out.steps.push_back(end - begin);
      if (way == Way::wait && step % args_.every == 0) out.blocked.push_back(end - updated);
      if (engine != nullptr) pending_ += blocked;
      if (engine != nullptr && step % args_.every == 0) {
        // What this step waited at its fence belongs to the save before it.
        out.blocked.push_back(pending_ + inside);
        out.submits.push_back(inside);
        pending_ = 0;
      }
      if (!draws) continue;
      auto& spans = out.timeline.spans;
      spans.push_back({0, "forward", begin, forwarded});
      spans.push_back({0, "backward", forwarded, after});
      if (engine != nullptr) spans.push_back({0, "fence", after, free});
      spans.push_back({0, "update", free, updated});
      if (way == Way::wait) {
        spans.push_back({0, "save", updated, end});
      } else if (engine != nullptr) {
        spans.push_back({0, "submit", updated, updated + inside});
        if (way == Way::copy) spans.push_back({0, "fence", updated + inside, end});
      }
    }
    if (engine == nullptr) return;
    pending_ = 0;
    finish(*engine, out);
    if (draws) {
      const std::lock_guard lock(mutex_);
      for (TimelineSpan& span : spans_) out.timeline.spans.push_back(std::move(span));
    }
  }

 private:
  std::unique_ptr<ck::Engine> open_engine(const std::string& root) {
    ck::EngineOptions options;
    options.ring_bytes = args_.ring_bytes;
    options.threads = args_.run.threads;
    if (args_.bench_tier) {
      ck::TierOptions tier;
      tier.path = tier_of(root);
      tier.write_rate = args_.throttle;
      tier.most_waiting = static_cast<std::size_t>(args_.bench_steps) + 1;
      options.tiers.push_back(std::move(tier));
    } else {
      options.write_rate = args_.throttle;
    }
    options.at_exit = ck::AtEnd::drop;
    options.watch = [this](const ck::EngineEvent& event) {
      using Kind = ck::EngineEvent::Kind;
      if (event.kind == Kind::submit || event.kind == Kind::fence) return;
      const auto [lane, what] = event.kind == Kind::capture ? std::pair(std::size_t{1}, "capture")
                                : event.kind == Kind::code  ? std::pair(std::size_t{2}, "code")
                                : event.kind == Kind::tier  ? std::pair(std::size_t{3}, "tier")
                                                            : std::pair(std::size_t{3}, "publish");
      const std::lock_guard lock(mutex_);
      spans_.push_back({lane, what, event.begin, event.end});
    };
    ck::Report report;
    return check(ck::Engine::open(ck::system_files(), root, options, report), report);
  }

  template <class T>
  T check(Result<T> result, const ck::Report& report) {
    if (!result.ok()) {
      if (report.problem.empty()) fail_status(result.status(), Phase::encode, args_.store);
      fail(exit_for(result.status(), Phase::encode), std::string(report.problem.data(), report.problem.size()));
    }
    return std::move(result).value();
  }
  void check(const Status& status, const ck::Report& report) {
    (void)check(status.ok() ? Result<bool>(true) : Result<bool>(status), report);
  }

  double fence(ck::Engine& engine) {
    const Stopwatch watch;
    ck::Report report;
    while (!check(engine.fence("", kSlice, report), report)) check_interrupt();
    return watch.seconds();
  }

  static String tier_of(const std::string& root) { return String(root) + "-tier"; }

  void submit(ck::Engine& engine, std::uint64_t step, bool raw) {
    ck::Report report;
    ck::FileSaveOptions options = options_;
    options.save.step = step;
    options.group_bytes = options.save.large_tensor_bytes = ck::kEngineGroupBytes;
    if (raw) {
      options.preset = ck::Preset::exact;
      options.save.zstd_level = ck::kStoreRaw;
      options.save.base_newest = false;
    }
    auto save = check(engine.begin(options, report), report);
    for (const auto& tensor : trainer_.tensors()) check(engine.add(*save, added(tensor), report), report);
    check(engine.submit(std::move(save), report), report);
  }

  void save_and_wait(const ck::Store& store, std::uint64_t step, Measured& out) {
    const Stopwatch watch;
    ck::Report report;
    ck::FileSaveOptions options = options_;
    options.save.step = step;
    if (options.save.base_newest)
      options.save.base = step == args_.every
                              ? std::nullopt
                              : check(ck::find_newest_key(store, options.save.key_distance, report), report);
    options.progress = [](std::uint64_t, std::uint64_t) { return !SignalGuard::is_interrupted(); };
    auto session = check(ck::SaveSession::begin(store, options.save, runner_.get(), report), report);
    WholeState state(trainer_);
    const ck::SetCounts counts = check(ck::save_set(*session, state, options, runner_.get(), report), report);
    const ck::SaveResult made = check(session->commit(report), report);
    if (args_.bench_tier) {
      ck::CopyControl control;
      control.turn = [&](std::size_t bytes) {
        return storage::wait_turn(tier_turns_, bytes, [] { return SignalGuard::is_interrupted(); });
      };
      const ck::Store tier(ck::system_files(), tier_of(std::string(store.root())));
      (void)check(ck::copy_checkpoint(store, tier, made.name, control, report), report);
    }
    out.stored_bytes = counts.stored_bytes;
    out.durable.push_back(watch.seconds());
  }

  void finish(ck::Engine& engine, Measured& out) {
    ck::Report report;
    while (!check(engine.wait_all(kSlice, report), report)) check_interrupt();
    for (std::uint64_t step = args_.every; step <= args_.bench_steps; step += args_.every) {
      (void)check(engine.wait(step, ck::SaveLevel::durable, 0, report), report);
      const ck::SaveProgress progress = check(engine.poll(step, report), report);
      out.durable.push_back(progress.durable_seconds - progress.submit_seconds);
      out.local.push_back(progress.local_seconds - progress.submit_seconds);
      out.stored_bytes = progress.counts.stored_bytes;
    }
    out.stats = engine.stats();
    check(engine.close(ck::AtEnd::drain, kNoEnd, report), report);
  }

  const CheckpointArgs& args_;
  BenchTrainer& trainer_;
  const BenchFolder& folder_;
  RunnerHandle runner_;
  storage::TokenBucket tier_turns_;  ///< of the way that waits
  ck::FileSaveOptions options_;
  double pending_ = 0;
  std::mutex mutex_;
  std::vector<TimelineSpan> spans_;
};

/// Tensors of F32 of a file; others are left out, as the trainer computes in F32.
BenchTrainer trainer_of(const CheckpointArgs& args, ck::Report& report) {
  if (args.inputs.empty()) return {args.state_bytes, args.tensor_count};
  const auto failed = [&](const Status& status) {
    if (report.problem.empty()) fail_status(status, Phase::decode, args.inputs.front());
    fail(exit_for(status, Phase::decode), std::string(report.problem.data(), report.problem.size()));
  };
  auto model = ck::ModelFiles::open(ck::system_files(), String(args.inputs.front()), report);
  if (!model.ok()) failed(model.status());
  std::vector<BenchTrainer::Tensor> tensors;
  AlignedBuffer values;
  for (const auto& tensor : model->tensors()) {
    if (tensor.stored->what.type != ck::ElementType::f32 || tensor.stored->what.bytes() == 0) continue;
    if (const Status status = model->read(tensor, values, report); !status.ok()) failed(status);
    BenchTrainer::Tensor one{std::string(tensor.stored->name), std::vector<float>(values.size() / sizeof(float))};
    std::memcpy(one.values.data(), values.data(), values.size());
    tensors.push_back(std::move(one));
  }
  if (tensors.empty()) fail(Exit::usage, args.inputs.front() + ": it has no tensors of F32, which the trainer needs");
  return BenchTrainer(std::move(tensors));
}

}  // namespace

Exit run_checkpoint_bench(const CheckpointArgs& given) {
  CheckpointArgs args = given;
  check_page(args.inputs, args.html, args.force);
  ck::Report report;
  BenchTrainer trainer = trainer_of(args, report);
  const double copy_rate = trainer.measure_copy();
  const double copy_seconds = static_cast<double>(trainer.bytes()) / copy_rate;
  const double forward = args.forward.value_or(2 * copy_seconds), backward = args.backward.value_or(2 * copy_seconds);
  trainer.calibrate(forward, backward);
  if (args.ring_bytes == 0) args.ring_bytes = trainer.bytes() / 8 * 9 + (std::uint64_t{1} << 22);
  // Until the folder is gone: SIGINT and the like wait so long.
  const SignalGuard signals;
  const BenchFolder folder(args.store);
  Bench bench(args, trainer, folder);
  Measured measured[std::size(kWays)];
  Progress progress("checkpoint bench", args.run);
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < std::size(kWays); ++i) {
      progress.update(round * std::size(kWays) + i, kRounds * std::size(kWays));
      bench.run(kWays[i].first, kWays[i].second, round, measured[i]);
    }
  progress.update(kRounds * std::size(kWays), kRounds * std::size(kWays));

  const double undisturbed = median(measured[0].steps);
  Json ways = Json::array();
  std::string out = fmt::format(
      "{} in {} tensors, copied at {}/s; forward {:.0f} ms, backward {:.0f} ms; {} steps, a checkpoint every {}\n"
      "  way     step [ms]   rise [%]   blocked [ms]   longest   durable [ms]        stored    ring     coding\n",
      size_text(trainer.bytes()), trainer.tensors().size(), size_text(static_cast<std::uint64_t>(copy_rate)),
      forward * 1000, backward * 1000, kRounds * args.bench_steps, args.every);
  for (std::size_t i = 0; i < std::size(kWays); ++i) {
    Measured& m = measured[i];
    const double step = median(m.steps);
    const double rise = undisturbed > 0 ? step / undisturbed - 1 : 0;
    ways.push_back(Json{{"way", kWays[i].second},
                        {"step_seconds", step},
                        {"step_rise", rise},
                        {"blocked_seconds", median(m.blocked)},
                        {"blocked_longest", largest(m.blocked)},
                        {"submit_seconds", median(m.submits)},
                        {"durable_seconds", median(m.durable)},
                        {"local_seconds", median(m.local)},
                        {"stored_bytes", m.stored_bytes},
                        {"ring_peak", m.stats.ring_peak},
                        {"coding_peak", m.stats.coding_peak},
                        {"coded_first", m.stats.first_by_rate + m.stats.first_for_room + m.stats.first_for_size}});
    const std::string line =
        fmt::format("{:9.2f}  {:9.1f}  {:13.2f}  {:8.2f}  {:13.1f}  {:>12}  {:>7}  {:>9}", step * 1000, rise * 100,
                    median(m.blocked) * 1000, largest(m.blocked) * 1000, median(m.durable) * 1000,
                    m.stored_bytes == 0 ? "-" : size_text(m.stored_bytes),
                    m.stats.ring_peak == 0 ? "-" : size_text(m.stats.ring_peak),
                    m.stats.coding_peak == 0 ? "-" : size_text(m.stats.coding_peak));
    out += fmt::format("  {:6}  {}\n", kWays[i].second, line);
    m.timeline.name = kWays[i].second;
    m.timeline.figures = fmt::format("step {:.1f} ms, blocked {:.2f} ms a save, durable after {:.0f} ms", step * 1000,
                                     median(m.blocked) * 1000, median(m.durable) * 1000);
  }
#ifdef QUERN_HAVE_REPORT
  if (!args.html.empty()) {
    TimelinePage page;
    page.title = fmt::format("Who waits for checkpoints of {}", size_text(trainer.bytes()));
    page.remark = "Red is time that the trainer waits: at a fence, or for a whole save. All pictures have one scale.";
    page.colours = {{"forward", "#8ecae6"}, {"backward", "#219ebc"}, {"update", "#023047"},  {"fence", "#d62828"},
                    {"save", "#d62828"},    {"submit", "#f77f00"},   {"capture", "#fcbf49"}, {"code", "#a7c957"},
                    {"publish", "#6a994e"}, {"tier", "#386641"}};
    for (Measured& m : measured) {
      m.timeline.lanes = {"trainer", "capture", "coding", "publish"};
      page.timelines.push_back(std::move(m.timeline));
    }
    write_page(args.html, timeline_page(page), args.force);
  }
#endif
  if (args.run.json) {
    print_json(Json{{"state_bytes", trainer.bytes()},
                    {"tensors", trainer.tensors().size()},
                    {"copy_bytes_per_second", copy_rate},
                    {"forward_seconds", forward},
                    {"backward_seconds", backward},
                    {"steps", kRounds * args.bench_steps},
                    {"every", args.every},
                    {"preset", args.preset},
                    {"ring_bytes", args.ring_bytes},
                    {"throttle", args.throttle},
                    {"tier", args.bench_tier},
                    {"ways", ways},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

}  // namespace quern::cli

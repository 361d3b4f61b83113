// Candidates in turn, the fastest first, so that what cannot win is given up early.
#include "libcompress/pipeline/search/choose_codec.h"

#include <cmath>

#include "libcompress/pipeline/encode/mask_setting.h"

namespace quern {
namespace {

/// Higher is better: 6.02 dB are worth a bit a value.
double quality_for_size(const Trial& trial, std::uint64_t elems) {
  const double bits = 8 * static_cast<double>(trial.report.output_bytes) / static_cast<double>(elems);
  return -std::log2(trial.mse) / 2 - bits;
}

class Contest {
 public:
  Contest(Trials& trials, const ResolvedBound& bound, bool keep_streams)
      : trials_(trials), bound_(bound), keep_streams_(keep_streams), by_quality_(trials.options().goal == "psnr") {}
  ~Contest() { trials_.release(held_); }
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  Status run(const Vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) passes_left_ += cost(candidate);
    if (by_quality_) {
      const std::uint64_t room = trials_.array().bytes();
      if (!take(room))
        return Status(StatusCode::memory_limit, "the goal psnr needs {0} bytes at least; the limit is {1}",
                      static_cast<std::int64_t>(room), static_cast<std::int64_t>(trials_.memory_left()));
      QUERN_RETURN_IF_ERROR(decoded_.resize(room));
    }
    Status refused;
    for (const Candidate& candidate : candidates) {
      begin_pass(cost(candidate));
      auto trial = try_out(candidate);
      if (refused_settings(trial.status(), trials_.options())) {
        refused = trial.status();
        continue;
      }
      if (!trial.ok()) return trial.status();
      tried_.push_back(describe_trial(*trial, by_quality_ && trial->kept));
      if (is_better(*trial)) best_ = std::move(trial).value();
    }
    return best_ ? Status() : refused;
  }

  /// Gives back the memory of streams that are not needed any more.
  void let_go() {
    trials_.release(held_);
    held_ = 0;
  }

  Trial& best() { return *best_; }
  Vector<CodecTrial>& tried() { return tried_; }
  CodecReason reason() const {
    if (tried_.size() == 1) return CodecReason::only_one;
    return by_quality_ ? CodecReason::best_quality : CodecReason::smallest;
  }

 private:
  // Roughly the time it takes, the fastest codecs being 1; for the progress alone.
  static double cost(const Candidate& candidate) {
    switch (candidate.tier()) {
      case CodecTier::throughput: return 1;
      case CodecTier::ratio: return 20;
      case CodecTier::archive: return 2;
      case CodecTier::named: return 20;
    }
    return 1;
  }

  void begin_pass(double cost) {
    trials_.passes().begin_pass(cost / passes_left_);
    passes_left_ -= cost;
  }

  bool take(std::uint64_t bytes) {
    if (!trials_.hold(bytes)) return false;
    held_ += bytes;
    return true;
  }

  void give_back(std::uint64_t bytes) {
    trials_.release(bytes);
    held_ -= bytes;
  }

  bool measured(const Candidate& candidate) const {
    return by_quality_ && candidate.codec->supports(trials_.array().dtype, bound_.enforced.kind);
  }

  Result<Trial> try_out(const Candidate& candidate) {
    if (measured(candidate)) return try_quality(candidate);
    Trials::Limits limits;
    if (best_) limits.stop = best_->report.output_bytes - 1;
    // The first is fast and its size not known: it is made again if it wins.
    if (keep_streams_ && best_ && take(limits.stop)) {
      auto trial = trials_.run(candidate, bound_, {limits.stop, limits.stop});
      give_back(limits.stop - (trial.ok() ? trial->bytes.size() : 0));
      if (trial.ok() || trial.status().code() != StatusCode::memory_limit) return trial;
    }
    return trials_.run(candidate, bound_, limits);
  }

  Result<Trial> try_quality(const Candidate& candidate) {
    const CompressOptions& options = trials_.options();
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t most,
                           max_stream_bytes(trials_.array().dtype, trials_.array().shape, options.metadata.size()));
    if (!take(most))
      return Status(StatusCode::memory_limit, "the goal psnr needs {0} bytes at least; the limit is {1}",
                    static_cast<std::int64_t>(held_ + most), static_cast<std::int64_t>(trials_.memory_left() + held_));
    QUERN_ASSIGN_OR_RETURN(Trial trial, trials_.run(candidate, bound_, {most, UINT64_MAX}));
    give_back(most - trial.bytes.size());
    trials_.passes().begin_pass(1 / (1 + passes_left_));
    const double width = bound_.range ? bound_.range->max - bound_.range->min : 1;
    QUERN_RETURN_IF_ERROR(trials_.measure(trial, width, decoded_));
    if (!bound_.range) trial.report.psnr_db.reset();
    return trial;
  }

  bool is_better(const Trial& trial) const {
    if (trial.stopped) return false;
    if (!best_) return true;
    if (!measured(trial.candidate) || trial.mse == 0 || best_->mse == 0)
      return trial.report.output_bytes < best_->report.output_bytes;
    const std::uint64_t elems = trials_.array().elems();
    return quality_for_size(trial, elems) > quality_for_size(*best_, elems);
  }

  Trials& trials_;
  const ResolvedBound& bound_;
  bool keep_streams_;
  bool by_quality_;
  double passes_left_ = 1;  // 1: the winner may have to be made again
  std::uint64_t held_ = 0;
  AlignedBuffer decoded_;
  std::optional<Trial> best_;
  Vector<CodecTrial> tried_;
};

}  // namespace

const char* codec_reason_text(CodecReason reason) {
  switch (reason) {
    case CodecReason::asked_for: return "asked for";
    case CodecReason::only_one: return "the only codec for this type and bound";
    case CodecReason::exact: return "every bit comes back";
    case CodecReason::fastest: return "the goal is speed";
    case CodecReason::smallest: return "the smallest of those tried";
    case CodecReason::least_bound: return "the smallest bound of those tried";
    case CodecReason::best_quality: return "the most quality for its size of those tried";
    case CodecReason::expected_best: return "the others are expected to do worse";
  }
  return "unknown";
}

CodecReason lone_reason(const Candidate& candidate, const ResolvedBound& bound, const CompressOptions& options) {
  if (options.codec != "auto" && candidate.codec != nullptr && options.codec == candidate.name())
    return CodecReason::asked_for;
  if (options.goal == "speed") return CodecReason::fastest;
  return bound.enforced.kind == BoundKind::lossless ? CodecReason::exact : CodecReason::only_one;
}

bool refused_settings(const Status& status, const CompressOptions& options) {
  if (status.code() == StatusCode::unknown_setting) return true;
  // A value that one codec has and another has not, as in layout=levels.
  return status.code() == StatusCode::invalid_argument && options.codec == "auto" &&
         !codec_settings(options.settings).empty();
}

CodecTrial describe_trial(const Trial& trial, bool measured) {
  CodecTrial out;
  out.codec = trial.candidate.name();
  out.bytes = trial.report.output_bytes;
  out.at_least = trial.stopped;
  out.enforced = trial.report.enforced;
  out.on_device = trial.report.on_device;
  if (measured) out.psnr_db = trial.report.psnr_db;
  return out;
}

Result<CodecChoice> choose_candidate(Trials& trials, const Vector<Candidate>& candidates, const ResolvedBound& bound) {
  Contest contest(trials, bound, false);
  QUERN_RETURN_IF_ERROR(contest.run(candidates));
  return CodecChoice{contest.best().candidate, contest.reason(), std::move(contest.tried())};
}

Result<CompressReport> write_best(Trials& trials, const Vector<Candidate>& candidates, const ResolvedBound& bound,
                                  ByteSink& sink) {
  if (candidates.size() == 1 || trials.array().elems() == 0) {
    QUERN_ASSIGN_OR_RETURN(CompressReport report, trials.encode(candidates[0], bound, sink));
    report.reason = lone_reason(candidates[0], bound, trials.options());
    return report;
  }
  Contest contest(trials, bound, true);
  QUERN_RETURN_IF_ERROR(contest.run(candidates));
  Trial& best = contest.best();
  CompressReport report = std::move(best.report);
  if (best.kept) {
    QUERN_RETURN_IF_ERROR(sink.write(best.bytes));
    QUERN_RETURN_IF_ERROR(trials.report_done());
  } else {
    const std::optional<double> psnr = report.psnr_db;
    contest.let_go();
    QUERN_ASSIGN_OR_RETURN(report, trials.encode(best.candidate, bound, sink));
    report.psnr_db = psnr;
  }
  report.reason = contest.reason();
  report.tried = std::move(contest.tried());
  return report;
}

}  // namespace quern

// One search for both kinds of target: they differ in what is measured and in which direction exceeds it.
#include "libcompress/pipeline/search/target_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/search/bound_search.h"
#include "libcompress/pipeline/search/choose_codec.h"
#include "libcompress/pipeline/search/forecast.h"
#include "libcompress/pipeline/search/sample_array.h"

namespace quern {
namespace {

constexpr std::uint64_t kSampleElems = UINT64_C(1) << 20;
constexpr std::uint64_t kSampleShare = 8;              // arrays of that many samples are worth one
constexpr std::uint64_t kSampleAlternativesShare = 2;  // the same where a codec has several alternatives
// What is worse than the best by no more on a sample may be better on the array.
constexpr std::uint64_t kNearPercent = 8;
constexpr double kNearDb = 1;
constexpr double kSamplePass = 0.15;                         // of the time left: for the progress alone
constexpr std::uint64_t kForecastElems = UINT64_C(1) << 16;  // smaller arrays are encoded as fast as estimated
constexpr double kExactMargin = 1.5;
constexpr double kNearOctaves = 0.5;  // of the bound: so far slopes are believed
constexpr double kFormulaOctaves = 0.25;
constexpr double kLikely = 0.97;  // what is expected to be larger by more than the rest is given up
constexpr int kSteps = 16;
constexpr double kPsnrTolerance = 0.05;    // dB
constexpr double kRatioTolerance = 0.014;  // octaves: 1 %
constexpr double kRatioToleranceForPsnr = 0.006;
constexpr double kDbAnOctave = 6.02;
constexpr double kMostSpare = 60;    // dB: what exceeds the target by more says nothing of bounds far from its own
constexpr double kMostOctaves = 64;  // between the range and the smallest bound that is tried

// Keeps 12 bits after the leading one: results of pow, log2 and exp2 differ in their last bits between machines, the
// bounds tried must not.
double coarse(double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & ~((UINT64_C(1) << 40) - 1));
}

/// Options for a sample of an array, whose axes are shorter: slices that a setting names are not there.
CompressOptions options_for_sample(const CompressOptions& options) {
  CompressOptions for_sample = options;
  for (auto& [key, value] : for_sample.settings)
    if (key == "parts" && value != "auto") value = "off";
  return for_sample;
}

class TargetSearch {
 public:
  TargetSearch(Trials& trials, const std::optional<ExactRange>& range)
      : trials_(trials),
        width_(range ? range->width_down : 0),
        range_(range ? std::optional(range->range) : std::nullopt),
        psnr_(trials.options().bound.kind == BoundKind::psnr),
        measure_(psnr_ || trials.options().goal == "psnr"),
        target_(trials.options().bound.value),
        widest_(std::log2(width_)) {}

  /// Takes the memory that the trials need beside the encoder's, and asks the estimator.
  Status prepare() {
    const std::uint64_t bytes = trials_.array().bytes();
    const std::uint64_t most = bytes + bytes / 100 + 4096 + trials_.options().metadata.size();
    // The best stream and the one that is made; beside them the decoded array.
    keep_ = psnr_ ? most : std::min(most, most_bytes());
    const std::uint64_t held = 2 * keep_ + (measure_ ? bytes : 0);
    if (!trials_.hold(held)) {
      if (measure_)
        return Status(StatusCode::memory_limit, "this target needs {0} bytes at least; the limit is {1}",
                      static_cast<std::int64_t>(held), static_cast<std::int64_t>(trials_.memory_left()));
      keep_ = 0;
    }
    if (measure_) QUERN_RETURN_IF_ERROR(decoded_.resize(bytes));
    if (range_ && trials_.array().elems() >= kForecastElems && trials_.options().goal != "speed") {
      QUERN_ASSIGN_OR_RETURN(forecast_, Forecast::of(trials_, *range_));
    }
    return {};
  }

  /// Those that are expected to do best first, those that keep every bit last.
  void put_in_order(Vector<Candidate>& candidates) const {
    if (forecast_.empty()) return;
    const auto demerit = [this](const Candidate& candidate) {
      constexpr double kUnknown = 1e300;
      if (candidate.tier() == CodecTier::archive) return 2 * kUnknown;
      const auto expected = expected_of(candidate);
      if (!expected) return kUnknown;
      return psnr_ ? -expected->ratio : expected->place;
    };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Candidate& a, const Candidate& b) { return demerit(a) < demerit(b); });
  }

  /// True when even the 90 % quantile of what is expected of the candidate is worse than the stream that is there.
  bool expected_worse(const Candidate& candidate, const Trial& best) const {
    if (candidate.tier() == CodecTier::archive) {
      const auto most = forecast_.most_exact_ratio(candidate.name());
      return psnr_ && most && *most < ratio_of(best);
    }
    if (psnr_) {
      const auto expected = forecast_.at_psnr(candidate.name(), target_);
      return expected && expected->most_ratio < ratio_of(best);
    }
    const auto expected = forecast_.at_ratio(candidate.name(), target_, true);
    return !measure_ && expected && best.report.enforced.kind == BoundKind::abs &&
           expected->place > std::log2(best.report.enforced.value);
  }

  /// True when the array is not expected to come near the ratio with every bit kept.
  bool exact_is_hopeless(const Candidate& exact) const {
    const auto most = forecast_.most_exact_ratio(exact.name());
    return most && *most * kExactMargin < target_;
  }

  /// The best stream of a candidate that meets the target. `rival` is what another candidate has come to: what shows
  /// itself worse is given up, and its bytes are not kept.
  Result<std::optional<Trial>> find(const Candidate& candidate, const Trial* rival) {
    BoundSearch::Request request = whole_range();
    const double formula = request.start;
    if (rival != nullptr && rival->report.enforced.kind == BoundKind::abs)
      request.start = place_of(rival->report.enforced.value);
    if (const auto expected = expected_of(candidate)) {
      const double place = psnr_ ? expected->place : -expected->place;
      // For a ratio, what misses it at the rival's bound is worse.
      request.start = psnr_ || measure_ || rival == nullptr ? place : std::max(place, request.start);
      request.slope = psnr_ ? expected->psnr_slope : expected->rate_slope;
      if (psnr_ && std::fabs(place - formula) < kFormulaOctaves) {
        // Errors are spread evenly, and the formula is exact.
        request.start = formula;
        request.slope = kDbAnOctave;
      }
    }
    if (psnr_ && request.start < request.lowest) return std::optional<Trial>();
    Vector<Alternative> alternatives;
    if (measure_ && trials_.options().goal != "speed") {
      for (Candidate& alternative : alternatives_of(candidate, trials_.options(), trials_.array().shape))
        alternatives.push_back({std::move(alternative), request});
    } else {
      alternatives.push_back({candidate, request});
    }
    const std::uint64_t share = alternatives.size() > 1 ? kSampleAlternativesShare : kSampleShare;
    const bool sampled = candidate.tier() == CodecTier::ratio && trials_.array().elems() / share >= kSampleElems;
    if (sampled) QUERN_RETURN_IF_ERROR(begin_from_sample(alternatives));
    std::optional<Trial> best;
    for (Alternative& alternative : alternatives) {
      if (!sampled && best) alternative.request.start = place_of(best->report.enforced.value);
      QUERN_ASSIGN_OR_RETURN(auto found, descend(trials_, alternative, rival));
      if (!found || (best && !is_better(*found, *best))) continue;
      best = std::move(found);
      if (rival == nullptr || is_better(*best, *rival)) rival = &*best;
    }
    return best;
  }

  /// Without a bound to search for; given up when the stream exceeds `stop` bytes.
  Result<Trial> encode_exact(const Candidate& candidate, std::uint64_t stop) {
    const ResolvedBound exact{{}, range_};
    trials_.passes().begin_pass(share_of(candidate));
    QUERN_ASSIGN_OR_RETURN(Trial trial, trials_.run(candidate, exact, {std::min(keep_, stop), stop}));
    trial.psnr_db = std::numeric_limits<double>::infinity();
    if (measure_) trial.report.psnr_db = trial.psnr_db;
    if (!trial.stopped) note_ratio(trial);
    return trial;
  }
  bool meets(const Trial& trial) const { return !trial.stopped && surplus_of(trial) >= 0; }

  bool is_better(const Trial& a, const Trial& b) const {
    if (psnr_) return a.report.output_bytes < b.report.output_bytes;
    if (measure_) return a.psnr_db > b.psnr_db;
    if (a.report.enforced.value != b.report.enforced.value) return a.report.enforced.value < b.report.enforced.value;
    return a.report.output_bytes < b.report.output_bytes;
  }

  /// Bytes of the longest stream that reaches the ratio.
  std::uint64_t most_bytes() const {
    return static_cast<std::uint64_t>(static_cast<double>(trials_.array().bytes()) / target_);
  }
  double best_ratio() const { return best_ratio_; }
  std::optional<double> ratio_below() const { return ratio_below_; }
  bool measures() const { return measure_; }

 private:
  /// One alternative of coding and where to search it.
  struct Alternative {
    Candidate candidate;
    BoundSearch::Request request;
  };

  // Places run towards less surplus: larger bounds for a PSNR, smaller ones for a ratio.
  double place_of(double bound) const { return psnr_ ? std::log2(bound) : -std::log2(bound); }

  double bound_at(double place) const {
    const double bound = std::exp2(psnr_ ? place : -place);
    if (!(bound < width_ * (1 - 0x1p-12))) return width_;
    if (is_integer(trials_.array().dtype)) return bound < 1 ? 0.5 : std::floor(bound);
    return coarse(bound);
  }

  BoundSearch::Request whole_range() const {
    BoundSearch::Request request;
    request.steps = kSteps;
    if (psnr_) {
      // Errors spread evenly over [-E, E] have a mean square of E^2 / 3.
      request.start = widest_ - target_ / kDbAnOctave + std::log2(3.0) / 2;
      request.highest = widest_;
      request.lowest = widest_ - kMostOctaves;
      request.slope = kDbAnOctave;
      request.tolerance = kPsnrTolerance;
    } else {
      const double bits = 8 * static_cast<double>(dtype_bytes(trials_.array().dtype)) / target_;
      request.lowest = -widest_;
      request.highest = -widest_ + kMostOctaves;
      request.start = -widest_ + std::min(bits + 4, 50.0);
      request.slope = 0.3;
      request.tolerance = measure_ ? kRatioToleranceForPsnr : kRatioTolerance;
    }
    return request;
  }

  /// Where the codec is expected to meet the target with the surplus that ends a search.
  std::optional<Expected> expected_of(const Candidate& candidate) const {
    if (psnr_) return forecast_.at_psnr(candidate.name(), target_ + kPsnrTolerance / 2);
    return forecast_.at_ratio(candidate.name(), target_ * (1 + kRatioTolerance / 3));
  }

  double ratio_of(const Trial& trial) const {
    return static_cast<double>(trial.report.input_bytes) / static_cast<double>(trial.report.output_bytes);
  }
  double surplus_of(const Trial& trial) const {
    return psnr_ ? trial.psnr_db - target_ : std::log2(ratio_of(trial) / target_);
  }
  void note_ratio(const Trial& trial) {
    const double ratio = ratio_of(trial);
    best_ratio_ = std::max(best_ratio_, ratio);
    if (!psnr_ && ratio < target_) ratio_below_ = std::max(ratio_below_.value_or(0), ratio);
  }

  /// Of the time left, for the progress alone. How many trials will be made is not known.
  static double share_of(const Candidate& candidate) {
    switch (candidate.tier()) {
      case CodecTier::throughput: return 0.01;
      case CodecTier::ratio: return 0.25;
      case CodecTier::archive: return 0.05;
      case CodecTier::named: return 0.25;
    }
    return 0.05;
  }

  Result<Trial> evaluate(Trials& trials, const Candidate& candidate, double bound) {
    Trials::Limits limits{keep_, UINT64_MAX};
    trials.passes().begin_pass(share_of(candidate));
    const ResolvedBound resolved{absolute_bound(bound), range_};
    QUERN_ASSIGN_OR_RETURN(Trial trial, trials.run(candidate, resolved, limits));
    if (measure_ && trial.kept) {
      trials.passes().begin_pass(share_of(candidate) / 3);
      QUERN_RETURN_IF_ERROR(trials.measure(trial, width_, decoded_));
    }
    return trial;
  }

  /// True when no bound brings this alternative of coding to what the rival takes: a bit a value is worth 6.02 dB at
  /// most.
  bool hopeless(const Trials& trials, const Trial& trial, double surplus, const Trial& rival) const {
    if (!psnr_)
      return !forecast_.empty() && !measure_ && surplus < 0 && rival.report.enforced.kind == BoundKind::abs &&
             trial.report.enforced.value >= rival.report.enforced.value;
    if (!(surplus < kMostSpare)) return false;
    const auto rival_bytes = static_cast<double>(rival.report.output_bytes);
    if (const auto expected = expected_of(trial.candidate)) {
      const double octaves = surplus / expected->psnr_slope;
      const double bytes = static_cast<double>(trial.report.output_bytes) * std::exp2(-octaves * expected->rate_slope);
      if (std::fabs(octaves) < kNearOctaves && bytes * kLikely >= rival_bytes) return true;
    }
    const double spare = std::max(surplus, 0.0) / kDbAnOctave / 8 * static_cast<double>(trials.array().elems());
    return static_cast<double>(trial.report.output_bytes) - spare >= rival_bytes;
  }

  /// The best stream of one alternative of coding; nothing where none meets the target. Bytes of what is no better than
  /// the rival are not kept. Leaves in the alternative's request where it ended.
  Result<std::optional<Trial>> descend(Trials& trials, Alternative& alternative, const Trial* rival) {
    BoundSearch search(alternative.request);
    std::optional<Trial> best;
    Vector<std::pair<double, double>> seen;  // bounds and their surplus: integers have few bounds
    while (const auto place = search.next()) {
      const double bound = bound_at(*place);
      if (!(bound > 0)) break;
      const auto known = std::find_if(seen.begin(), seen.end(), [&](const auto& s) { return s.first == bound; });
      if (known != seen.end()) {
        search.add(*place, known->second);
        continue;
      }
      QUERN_ASSIGN_OR_RETURN(Trial trial, evaluate(trials, alternative.candidate, bound));
      if (&trials == &trials_) note_ratio(trial);
      const double surplus = surplus_of(trial);
      if (!psnr_ && seen.empty() && !expected_of(alternative.candidate)) search.set_slope(ratio_slope(trial));
      seen.emplace_back(bound, surplus);
      search.add(is_integer(trials.array().dtype) ? *place : place_of(bound), surplus);
      const bool over = rival != nullptr && hopeless(trials, trial, surplus, *rival);
      if (surplus >= 0 && (!best || is_better(trial, *best))) {
        if (rival != nullptr && !is_better(trial, *rival)) let_go(trial);
        best = std::move(trial);
        alternative.request.start = place_of(bound);
      }
      if (over) break;
    }
    alternative.request.slope = search.slope();
    return best;
  }
  static void let_go(Trial& trial) {
    Vector<std::uint8_t>().swap(trial.bytes);
    trial.kept = false;
  }

  // A bit a value less for each octave of the bound, a little less than that at low rates.
  double ratio_slope(const Trial& trial) const {
    const double bits = 8 * static_cast<double>(dtype_bytes(trials_.array().dtype)) / ratio_of(trial);
    return std::clamp(1.2 / std::max(bits, 0.5), 0.05, 0.8);
  }

  /// Leaves the alternatives of coding that come near the best for a sample, this one first, each to begin where it
  /// ended.
  Status begin_from_sample(Vector<Alternative>& alternatives) {
    QUERN_ASSIGN_OR_RETURN(const SampleArray sample, make_sample_array(trials_.array(), kSampleElems));
    const std::uint64_t bytes = sample.view.bytes();
    if (bytes > trials_.memory_left())
      return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                    static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(trials_.memory_left()));
    Execution execution = trials_.execution();
    execution.memory_limit = trials_.memory_left() - bytes;
    trials_.passes().begin_pass(kSamplePass);
    execution.progress = trials_.passes().callback();
    const CompressOptions options = options_for_sample(trials_.options());
    Trials on_sample(sample.view, options, trials_.registry(), execution, trials_.runner());
    Vector<std::pair<Trial, Alternative>> found;
    std::size_t best = 0;
    Trial limit;  // what comes near the best
    for (Alternative& alternative : alternatives) {
      if (!found.empty()) alternative.request.start = found[best].second.request.start;
      QUERN_ASSIGN_OR_RETURN(auto trial, descend(on_sample, alternative, found.empty() ? nullptr : &limit));
      if (!trial) continue;
      let_go(*trial);
      found.emplace_back(std::move(*trial), alternative);
      if (found.size() > 1 && !is_better(found.back().first, found[best].first)) continue;
      best = found.size() - 1;
      limit.report = found[best].first.report;
      limit.report.output_bytes += limit.report.output_bytes * kNearPercent / 100;
      limit.psnr_db = found[best].first.psnr_db - kNearDb;
    }
    trials_.add_sample_encodings(on_sample.encodings());
    if (found.empty() || alternatives.size() == 1) return {};
    alternatives = {found[best].second};
    for (std::size_t i = 0; i < found.size(); ++i)
      if (i != best && is_better(found[i].first, limit)) alternatives.push_back(found[i].second);
    return {};
  }

  Trials& trials_;
  double width_;
  std::optional<ValueRange> range_;
  bool psnr_;
  bool measure_;
  double target_;
  double widest_;  // octaves
  std::uint64_t keep_ = 0;
  AlignedBuffer decoded_;
  Forecast forecast_;
  double best_ratio_ = 0;
  std::optional<double> ratio_below_;
};

std::optional<ExactRange> range_of(const Trials& trials) {
  if (const auto given = given_range(trials.options())) return given;
  return exact_range(trials.array(), trials.options().fill_bits, trials.runner());
}

/// Large ratios are told without fractions.
Status missed_ratio(double best, double asked) {
  const auto whole = [](double value) { return static_cast<std::int64_t>(std::min(std::floor(value), 9e18)); };
  if (asked < 10000)
    return Status(StatusCode::bound_not_met, "the ratio {1.3} cannot be reached; the best is {0.3}", whole(best * 1000),
                  whole(asked * 1000));
  return Status(StatusCode::bound_not_met, "the ratio {1} cannot be reached; the best is {0.3}", whole(best * 1000),
                whole(asked));
}

/// Streams of the candidates that meet the target, and the best of them.
struct Outcome {
  std::optional<Trial> best;
  Vector<CodecTrial> tried;
  bool left_out = false;  ///< a codec was not tried, being expected to do worse
};

Result<Outcome> search_all(Trials& trials, TargetSearch& search) {
  const CompressOptions& options = trials.options();
  QUERN_ASSIGN_OR_RETURN(auto candidates,
                         find_candidates(trials.array().dtype, BoundKind::abs, options, trials.registry()));
  search.put_in_order(candidates);
  const bool for_psnr = options.bound.kind == BoundKind::psnr;
  Outcome outcome;
  Status refused;
  for (const Candidate& candidate : candidates) {
    const bool archive = candidate.tier() == CodecTier::archive;
    if (archive && !for_psnr) continue;  // it has been tried
    if (outcome.best && search.expected_worse(candidate, *outcome.best)) {
      outcome.left_out = true;
      continue;
    }
    if (archive) {
      const std::uint64_t stop = outcome.best ? outcome.best->report.output_bytes - 1 : UINT64_MAX;
      QUERN_ASSIGN_OR_RETURN(Trial exact, search.encode_exact(candidate, stop));
      outcome.tried.push_back(describe_trial(exact, search.measures() && !exact.stopped));
      if (search.meets(exact)) outcome.best = std::move(exact);
      continue;
    }
    auto found = search.find(candidate, outcome.best ? &*outcome.best : nullptr);
    if (refused_settings(found.status(), options)) {
      refused = found.status();
      continue;
    }
    if (!found.ok()) return found.status();
    if (!*found) continue;
    outcome.tried.push_back(describe_trial(**found, search.measures()));
    if (!outcome.best || search.is_better(**found, *outcome.best)) outcome.best = std::move(*found);
  }
  if (!outcome.best && !refused.ok()) return refused;
  return outcome;
}

/// Writes what a search found.
Result<CompressReport> write_found(Trials& trials, Outcome& outcome, const std::optional<ExactRange>& range,
                                   ByteSink& sink) {
  Trial& best = *outcome.best;
  CompressReport report = std::move(best.report);
  const ResolvedBound bound{report.enforced, range ? std::optional(range->range) : std::nullopt};
  if (best.kept) {
    QUERN_RETURN_IF_ERROR(sink.write(best.bytes));
    QUERN_RETURN_IF_ERROR(trials.report_done());
  } else {
    QUERN_ASSIGN_OR_RETURN(report, trials.encode(best.candidate, bound, sink));
  }
  report.reason = outcome.left_out ? CodecReason::expected_best : lone_reason(best.candidate, bound, trials.options());
  if (outcome.tried.size() > 1) {
    report.reason = CodecReason::smallest;
    if (trials.options().bound.kind == BoundKind::ratio)
      report.reason = trials.options().goal == "psnr" ? CodecReason::best_quality : CodecReason::least_bound;
    report.tried = std::move(outcome.tried);
  }
  return report;
}

Result<Candidate> exact_candidate(const Trials& trials) {
  QUERN_ASSIGN_OR_RETURN(const auto candidates, find_candidates(trials.array().dtype, BoundKind::lossless,
                                                                trials.options(), trials.registry()));
  return candidates[0];
}

}  // namespace

Result<CompressReport> write_psnr(Trials& trials, ByteSink& sink) {
  const std::optional<ExactRange> range = range_of(trials);
  if (range && range->width_down > 0) {
    const std::uint64_t before = trials.memory_left();
    TargetSearch search(trials, range);
    QUERN_RETURN_IF_ERROR(search.prepare());
    QUERN_ASSIGN_OR_RETURN(Outcome outcome, search_all(trials, search));
    if (outcome.best) return write_found(trials, outcome, range, sink);
    trials.release(before - trials.memory_left());
  }
  QUERN_ASSIGN_OR_RETURN(const Candidate exact, exact_candidate(trials));
  const ResolvedBound bound{{}, range ? std::optional(range->range) : std::nullopt};
  QUERN_ASSIGN_OR_RETURN(CompressReport report, trials.encode(exact, bound, sink));
  report.psnr_db = std::numeric_limits<double>::infinity();
  report.reason = lone_reason(exact, bound, trials.options());
  return report;
}

Result<CompressReport> write_ratio(Trials& trials, ByteSink& sink) {
  const std::optional<ExactRange> range = range_of(trials);
  const bool has_range = range && range->width_down > 0;
  TargetSearch search(trials, range);
  QUERN_RETURN_IF_ERROR(search.prepare());
  QUERN_ASSIGN_OR_RETURN(const Candidate exact, exact_candidate(trials));
  Outcome outcome;
  const auto keep_all = [&]() -> Status {
    QUERN_ASSIGN_OR_RETURN(Trial lossless, search.encode_exact(exact, has_range ? search.most_bytes() : UINT64_MAX));
    if (search.meets(lossless)) outcome.best = std::move(lossless);
    return {};
  };
  const bool later = has_range && search.exact_is_hopeless(exact);
  if (!later) QUERN_RETURN_IF_ERROR(keep_all());
  if (!outcome.best && has_range) {
    QUERN_ASSIGN_OR_RETURN(outcome, search_all(trials, search));
  }
  if (!outcome.best && later) QUERN_RETURN_IF_ERROR(keep_all());
  if (!outcome.best) return missed_ratio(search.best_ratio(), trials.options().bound.value);
  QUERN_ASSIGN_OR_RETURN(CompressReport report, write_found(trials, outcome, range, sink));
  report.ratio_below = search.ratio_below();
  return report;
}

}  // namespace quern

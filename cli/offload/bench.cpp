// quern offload bench: seconds of a step of Adam whose state lies in folders, for each form of the state.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/bench_folder.h"
#include "cli/files/page_file.h"
#include "cli/files/timeline_page.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "cli/offload/raw_swap.h"
#include "cli/verbs/verbs.h"
#include "libcompress/core/task_runner.h"
#include "offload/optimizer.h"
#include "storage/publish_file.h"
#include "storage/throttled_files.h"

namespace quern::cli {
namespace {

using codec::tensor::AdamSettings;
using codec::tensor::ElementType;
using offload::FileForm;
using offload::StepActivity;

constexpr std::uint64_t kDone = 1000;  ///< steps that the made-up state looks back on
constexpr int kWarm = 2;               ///< steps in which rates become known and throttles are in balance

/// About a bell curve of width 0.58.
float made_up(std::uint64_t i) {
  const std::uint64_t bits = kernels::at_rest_mix64(i);
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<float>(bits >> (16 * k) & 0xffff) * 0x1p-16f - 0.5f;
  return sum;
}

AdamSettings settings_of(std::uint64_t step) {
  AdamSettings settings;
  settings.decay = 0.1;
  settings.step = step;
  return settings;
}

/// Gradients in bfloat16 of some steps: of every value both signs, of one size, as second moments of many steps are
/// within some binades of each other.
class Gradients {
 public:
  explicit Gradients(std::uint64_t values) : bits_(static_cast<std::size_t>(values) + kKinds * kShift) {
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      const float middle = kernels::at_rest_mix64(i) % 2 == 0 ? 1e-3f : -1e-3f;
      bits_[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(middle + 4e-4f * made_up(7 * i)));
    }
  }
  const std::uint16_t* of(std::uint64_t step) const { return bits_.data() + step % kKinds * kShift; }

 private:
  static constexpr std::size_t kKinds = 16, kShift = 977;
  std::vector<std::uint16_t> bits_;
};

Execution on_threads(const RunArgs& run) {
  Execution execution;
  execution.threads = run.threads;
  return execution;
}

struct Measured {
  std::string name;
  std::vector<double> seconds;
  double expected = 0;  ///< by the simulator; 0: not asked
  double memory_bytes = 0;
  double read_bytes = 0, written_bytes = 0;  ///< a step
  std::uint64_t packed = 0, subgroups = 0;   ///< files that are entropy coded at the end, of all
  std::vector<offload::StepSpan> spans;
};

class OffloadBench {
 public:
  explicit OffloadBench(const OffloadArgs& args)
      : args_(args), progress_("offload bench", args.run), gradients_(args.parameters), runner_(on_threads(args.run)) {
    for (const OffloadFolder& folder : args.folders) folders_.push_back(std::make_unique<BenchFolder>(folder.path));
  }

  /// Three arrays in memory, no folders.
  Measured in_memory() {
    const auto values = static_cast<std::size_t>(args_.parameters);
    std::vector<float> weights(values, 0.5f), first(values, 1e-4f), second(values, 1e-6f);
    Measured out;
    out.name = "in memory";
    out.memory_bytes = 12.0 * static_cast<double>(values);
    measure(out, [&](std::uint64_t step) {
      adam_in_memory(runner_.get(), make_adam_rule(settings_of(step)), gradients_.of(step), values, weights.data(),
                     first.data(), second.data());
    });
    return out;
  }

  Measured of(const OffloadForm& form) {
    storage::ThrottledFiles files(storage::system_files(), SignalGuard::is_interrupted);
    std::vector<std::string> paths;
    for (std::size_t f = 0; f < folders_.size(); ++f) {
      paths.push_back(folders_[f]->inside(fmt::format("form-{}", form.name)));
      files.add(paths.back(), args_.folders[f].rate);
    }
    return form.bits == 0 ? swapped(files, paths) : offloaded(files, paths, form);
  }

 private:
  /// `prepare` is called before what is measured of a step.
  template <class Step, class Prepare>
  void measure(Measured& out, const Step& step, const Prepare& prepare) {
    for (std::uint64_t s = 0; s < args_.steps + kWarm; ++s) {
      check_interrupt();
      progress_.update(s, args_.steps + kWarm);
      prepare(s);
      const Stopwatch watch;
      step(kDone + 1 + s);
      if (s >= kWarm) out.seconds.push_back(watch.seconds());
    }
  }

  template <class Step>
  void measure(Measured& out, const Step& step) {
    measure(out, step, [](std::uint64_t) {});
  }

  Measured swapped(storage::FileSystem& files, const std::vector<std::string>& paths) {
    storage::Report report;
    for (const std::string& path : paths) check(storage::make_one_folder(files, path, report), report, path);
    Measured out;
    out.name = "raw";
    RawSwap swap(files, runner_.get(), paths, args_.parameters, args_.subgroup, memory());
    measure(out, [&](std::uint64_t step) { swap.step(make_adam_rule(settings_of(step)), gradients_.of(step)); });
    out.memory_bytes = static_cast<double>(swap.memory_bytes());
    out.read_bytes = out.written_bytes = 12.0 * static_cast<double>(args_.parameters);
    out.spans = swap.spans();
    return out;
  }

  Measured offloaded(storage::FileSystem& files, const std::vector<std::string>& paths, const OffloadForm& form) {
    offload::OptimizerOptions options;
    options.region_values = {args_.parameters};
    options.subgroup_values = args_.subgroup;
    options.form = {form.bits, form.finest};
    options.file_form = form.files;
    options.memory_limit = memory();
    options.threads = args_.run.threads;
    options.record = true;
    for (const std::string& path : paths) options.folders.emplace_back().path = String(path);
    storage::Report report;
    auto opened = offload::Optimizer::open(files, options, report);
    check(opened.ok() ? Status() : opened.status(), report, paths.front());
    offload::Optimizer& optimizer = **opened;
    const auto source = [](const offload::RegionPart& part) {
      for (std::uint64_t i = 0; i < part.count; ++i) {
        part.weights[i] = made_up(part.begin + i);
        part.first[i] = 4e-4f * made_up(3 * (part.begin + i));
        part.second[i] = 1e-6f * (1 + 0.5f * made_up(5 * (part.begin + i)));
      }
      return Status();
    };
    check(optimizer.load(kDone, source, report), report, paths.front());
    std::vector<std::uint16_t> copy(static_cast<std::size_t>(args_.parameters));
    offload::RegionStep region;
    region.copy = copy.data();
    Measured out;
    out.name = form.name.size() == 1 ? form.name + " bits" : form.name;
    offload::FolderUse before;
    const auto take = [&](std::uint64_t step) {
      region.settings = settings_of(step);
      region.gradient = {gradients_.of(step), ElementType::bf16};
      const auto done = optimizer.step(std::span(&region, 1), {}, report);
      check(done.ok() ? Status() : done.status(), report, paths.front());
    };
    measure(out, take, [&](std::uint64_t s) {
      if (s != kWarm) return;
      before = moved(optimizer);
      out.expected = optimizer.expected_seconds();
    });
    const offload::FolderUse after = moved(optimizer);
    const auto steps = static_cast<double>(args_.steps);
    out.read_bytes = static_cast<double>(after.bytes_read - before.bytes_read) / steps;
    out.written_bytes = static_cast<double>(after.bytes_written - before.bytes_written) / steps;
    out.memory_bytes = static_cast<double>(optimizer.usage().most_memory_bytes);
    out.spans.assign(optimizer.step_spans().begin(), optimizer.step_spans().end());
    out.packed = optimizer.usage().packed_subgroups;
    out.subgroups = optimizer.subgroup_count();
    return out;
  }

  static offload::FolderUse moved(const offload::Optimizer& optimizer) {
    offload::FolderUse all;
    for (const auto& folder : optimizer.usage().folders) {
      all.bytes_read += folder.bytes_read;
      all.bytes_written += folder.bytes_written;
    }
    return all;
  }

  /// The same for all forms: what is asked for, or an eighth of the state, but four subgroups of it, and what coding
  /// takes where files of a form may be coded.
  std::uint64_t memory() const {
    const std::uint64_t few = 4 * 12 * std::min(args_.subgroup, args_.parameters);
    const bool codes = std::any_of(args_.forms.begin(), args_.forms.end(),
                                   [](const OffloadForm& form) { return form.files != FileForm::plain; });
    const std::uint64_t coders = codes ? offload::coder_bytes(args_.folders.size()) : 0;
    return args_.run.memory.value_or(std::max(12 * args_.parameters / 8, few) + coders);
  }

  static void check(const Status& status, const storage::Report& report, const std::string& path) {
    if (status.ok()) return;
    check_interrupt();
    if (report.problem.empty()) fail_status(status, Phase::encode, path);
    fail(exit_for(status, Phase::encode), std::string(report.problem.data(), report.problem.size()));
  }

  const OffloadArgs& args_;
  Progress progress_;
  Gradients gradients_;
  RunnerHandle runner_;
  std::vector<std::unique_ptr<BenchFolder>> folders_;
};

/// Bytes a second of all folders in one direction; 0: one has no limit.
double rate_of(const OffloadArgs& args) {
  double sum = 0;
  for (const OffloadFolder& folder : args.folders) {
    if (folder.rate == 0) return 0;
    sum += folder.rate;
  }
  return sum;
}

double waited(const Measured& m) {
  double seconds = 0;
  for (const offload::StepSpan& span : m.spans)
    if (span.activity >= StepActivity::wait_for_read) seconds += span.end - span.begin;
  return seconds;
}

#ifdef QUERN_HAVE_REPORT
const char* word_of(StepActivity activity) {
  switch (activity) {
    case StepActivity::read: return "read";
    case StepActivity::update: return "update";
    case StepActivity::write: return "write";
    case StepActivity::wait_for_read: return "waits for a read";
    case StepActivity::wait_for_memory: return "waits for memory";
    case StepActivity::wait_for_writes: return "waits for writes";
  }
  return "";
}

Timeline timeline_of(const OffloadArgs& args, const Measured& m) {
  Timeline out{m.name,
               fmt::format("step {:.1f} ms, of the last {:.1f} ms waited", median(m.seconds) * 1000, waited(m) * 1000),
               {"update"},
               {}};
  for (std::size_t f = 0; f < args.folders.size(); ++f) {
    out.lanes.push_back(fmt::format("read {}", f + 1));
    out.lanes.push_back(fmt::format("write {}", f + 1));
  }
  for (const offload::StepSpan& span : m.spans) {
    const std::size_t lane = span.activity == StepActivity::read    ? 1 + 2 * span.folder
                             : span.activity == StepActivity::write ? 2 + 2 * span.folder
                                                                    : 0;
    out.spans.push_back({lane, word_of(span.activity), span.begin, span.end});
  }
  return out;
}

std::string page_of(const OffloadArgs& args, const std::vector<Measured>& forms) {
  TimelinePage page;
  page.title = fmt::format("Steps of Adam over {} parameters in {} folders", args.parameters, args.folders.size());
  page.remark = "The last step of each form. Red is time that the update waits. All pictures have one scale.";
  page.colours = {{"update", "#023047"},
                  {"read", "#8ecae6"},
                  {"write", "#6a994e"},
                  {"waits for a read", "#d62828"},
                  {"waits for memory", "#f77f00"},
                  {"waits for writes", "#e56b6f"}};
  for (const Measured& m : forms)
    if (!m.spans.empty()) page.timelines.push_back(timeline_of(args, m));
  return timeline_page(page);
}
#endif

Json json_of(const OffloadArgs& args, const Measured& m, double raw) {
  const double seconds = median(m.seconds);
  const double rate = rate_of(args);
  Json out{{"form", m.name},
           {"step_seconds", seconds},
           {"memory_bytes", m.memory_bytes},
           {"read_bytes", m.read_bytes},
           {"written_bytes", m.written_bytes},
           {"waited_seconds", waited(m)}};
  if (std::isfinite(m.expected) && m.expected > 0) out["expected_seconds"] = m.expected;
  if (m.subgroups > 0) out["packed_share"] = static_cast<double>(m.packed) / static_cast<double>(m.subgroups);
  if (rate > 0) {
    out["read_share"] = m.read_bytes / seconds / rate;
    out["write_share"] = m.written_bytes / seconds / rate;
  }
  if (raw > 0) out["times_raw"] = raw / seconds;
  return out;
}

std::string line_of(const OffloadArgs& args, const Measured& m, double raw) {
  const double seconds = median(m.seconds);
  const double rate = rate_of(args);
  const auto size = [](double bytes) { return bytes == 0 ? "-" : size_text(static_cast<std::uint64_t>(bytes)); };
  const auto share = [&](double bytes) {
    return rate > 0 && bytes > 0 ? fmt::format("{:.2f}", bytes / seconds / rate) : "-";
  };
  return fmt::format("  {:17}  {:9.1f}  {:>8}  {:>10}  {:>10}  {:>10}  {:>5}  {:>5}  {:>9}\n", m.name, seconds * 1000,
                     m.expected > 0 && std::isfinite(m.expected) ? fmt::format("{:.1f}", m.expected * 1000) : "-",
                     size(m.memory_bytes), size(m.read_bytes), size(m.written_bytes), share(m.read_bytes),
                     share(m.written_bytes), raw > 0 ? fmt::format("{:.2f}", raw / seconds) : "-");
}

/// Before anything is measured: whether --memory is enough for forms whose files are all coded.
void check_memory(const OffloadArgs& args) {
  if (!args.run.memory) return;
  for (const OffloadForm& form : args.forms) {
    if (form.files != FileForm::packed) continue;
    const std::uint64_t subgroup =
        offload::plain_bytes(std::min(args.subgroup, args.parameters), {form.bits, form.finest});
    const std::uint64_t fewest = offload::coder_bytes(args.folders.size()) + 2 * subgroup;
    if (*args.run.memory < fewest)
      fail(Exit::usage, fmt::format("--memory {}: {} needs {} bytes, 4 MiB for each folder and two subgroups of {}. "
                                    "Give --memory {} or more, or --forms without -packed",
                                    *args.run.memory, form.name, fewest, subgroup, fewest));
  }
}

}  // namespace

Exit run_offload_bench(const OffloadArgs& args) {
  check_memory(args);
  check_page({}, args.html, args.force);
  std::vector<Measured> forms;
  double raw = 0;
  {
    // Until the folders are gone: SIGINT and the like wait so long.
    const SignalGuard signals;
    OffloadBench bench(args);
    forms.push_back(bench.in_memory());
    for (const OffloadForm& form : args.forms) {
      forms.push_back(bench.of(form));
      if (form.bits == 0) raw = median(forms.back().seconds);
    }
  }
#ifdef QUERN_HAVE_REPORT
  if (!args.html.empty()) write_page(args.html, page_of(args, forms), args.force);
#endif
  if (args.run.json) {
    Json list = Json::array();
    for (const Measured& m : forms) list.push_back(json_of(args, m, raw));
    Json folders = Json::array();
    for (const OffloadFolder& folder : args.folders)
      folders.push_back(Json{{"path", folder.path}, {"rate", folder.rate}});
    print_json(Json{{"parameters", args.parameters},
                    {"subgroup", args.subgroup},
                    {"steps", args.steps},
                    {"folders", folders},
                    {"forms", list},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}});
    return Exit::ok;
  }
  std::string out = fmt::format(
      "{} parameters in subgroups of {}, folders: {}, median of {} steps\n"
      "  form               step [ms]  expected      memory        read     written  share  share  times raw\n",
      args.parameters, args.subgroup, args.folders.size(), args.steps);
  for (const Measured& m : forms) out += line_of(args, m, raw);
  if (rate_of(args) > 0) out += "  share: of what the folders' rates allow, for reading and for writing\n";
  print_text(out);
  return Exit::ok;
}

}  // namespace quern::cli

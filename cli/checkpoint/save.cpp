// quern checkpoint save: options become a policy, and what was done is told.
#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/convert/lossy_summary.h"
#include "checkpoint/safetensors/json.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

constexpr std::uint64_t kMaxRuleFile = 1 << 20;

std::string text(const String& s) { return {s.data(), s.size()}; }
double ratio(std::uint64_t raw, std::uint64_t stored) {
  return stored == 0 ? 0 : static_cast<double>(raw) / static_cast<double>(stored);
}

/// Reads a JSON file of settings with `parse`; failures name the file.
template <class Parse>
auto read_settings(CheckpointWorkspace& work, const std::string& path, const Parse& parse) {
  const auto bytes = ck::read_file(ck::system_files(), path, kMaxRuleFile);
  if (!bytes.ok()) work.check(ck::fail_file(work.report(), path, "read it", bytes.status()));
  auto parsed = parse(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()), work.report());
  if (!parsed.ok()) fail(Exit::usage, fmt::format("{}: {}", path, text(work.report().problem)));
  return std::move(parsed).value();
}

const char* mode_text(const ck::SavedTensor& saved) {
  return saved.alias ? "stored already" : codec::tensor::mode_name(saved.mode);
}

/// Whether something may be lost of a tensor.
bool has_loss(const ck::TensorSummary& tensor) { return tensor.lossy && tensor.saved.fallback.empty(); }

void print_tensor(const ck::TensorSummary& tensor) {
  const ck::SavedTensor& saved = tensor.saved;
  std::string line = fmt::format("{:44} {:11} {:>12} -> {:>11} {:9}", text(tensor.name), text(tensor.role),
                                 tensor.raw_bytes, saved.alias ? 0 : saved.stored_bytes, mode_text(saved));
  if (has_loss(tensor))
    line += fmt::format("  worst {:.4g}, {:.4g} of {:.4g} {}", saved.worst_absolute, saved.worst, saved.bound,
                        ck::unit_text(*tensor.lossy));
  else if (saved.worst_absolute > 0)
    line += fmt::format("  worst {:.4g}", saved.worst_absolute);
  if (!saved.fallback.empty()) line += fmt::format("  ({})", text(saved.fallback));
  print_note(line);
}

Json tensor_json(const ck::TensorSummary& tensor) {
  const ck::SavedTensor& saved = tensor.saved;
  Json line{{"name", text(tensor.name)},
            {"role", text(tensor.role)},
            {"mode", saved.alias ? "alias" : codec::tensor::mode_name(saved.mode)},
            {"raw_bytes", tensor.raw_bytes},
            {"stored_bytes", saved.alias ? 0 : saved.stored_bytes},
            {"worst_absolute", saved.worst_absolute}};
  const bool lossy = has_loss(tensor);
  line["bound"] = lossy ? Json(saved.bound) : Json(nullptr);
  line["unit"] = lossy ? Json(ck::unit_text(*tensor.lossy)) : Json(nullptr);
  line["worst"] = lossy ? Json(saved.worst) : Json(nullptr);
  line["fallback"] = saved.fallback.empty() ? Json(nullptr) : Json(text(saved.fallback));
  return line;
}

Json kind_json(const ck::LossyKind& kind) {
  Json out{{"role", text(kind.role)}, {"tensors", kind.tensors}};
  out["mode"] = kind.request ? codec::tensor::mode_name(kind.request->mode) : "derived";
  const bool has_bound = kind.request && kind.request->bound > 0;
  out["bound"] = has_bound ? Json(kind.request->bound) : Json(nullptr);
  out["unit"] = has_bound ? Json(ck::unit_text(*kind.request)) : Json(nullptr);
  return out;
}

/// A step that was typed and is not there is a mistake; what is there and does not fit is passed over with a note.
void check_base(const CheckpointArgs& args, CheckpointWorkspace& work) {
  if (!args.base) return;
  ck::Report unheard;
  const auto names = work.store().list_current(unheard);
  if (names.ok() &&
      std::any_of(names->begin(), names->end(), [&](const auto& name) { return name.step == *args.base; }))
    return;
  fail(Exit::usage,
       fmt::format("{}: the store has no checkpoint of step {}; see quern checkpoint ls", args.store, *args.base));
}

ck::FileSaveOptions options_of(const CheckpointArgs& args, CheckpointWorkspace& work) {
  check_base(args, work);
  ck::FileSaveOptions options;
  options.save.step = *args.step;
  options.save.base = args.base;
  options.save.base_newest = args.base_newest;
  options.save.replace = args.replace;
  for (const auto& [name, value] : args.tags) options.save.tags.push_back({String(name), String(value)});
  options.save.parity_data = args.parity_data;
  options.save.parity_files = args.parity_files;
  options.save.zstd_level = args.zstd_level;
  options.save.group = args.group;
  options.save.writer = args.writer;
  options.save.writers = args.writers;
  options.preset = ck::parse_preset(args.preset).value_or(ck::Preset::exact);
  if (!args.policy.empty()) options.policy = read_settings(work, args.policy, ck::parse_policy);
  if (!args.replay.empty()) options.replay = read_settings(work, args.replay, ck::parse_replay_rule);
  for (const auto& [glob, role] : args.roles) options.roles.emplace_back(String(glob), String(role));
  options.dry_run = args.dry_run;
  return options;
}

struct Counts {
  std::size_t aliases = 0, differences = 0, replayed = 0, fallbacks = 0;

  explicit Counts(const Vector<ck::TensorSummary>& tensors) {
    for (const auto& tensor : tensors) {
      const ck::SavedTensor& saved = tensor.saved;
      aliases += saved.alias ? 1 : 0;
      differences += !saved.alias && saved.mode == ck::Mode::delta ? 1 : 0;
      replayed += !saved.alias && saved.mode == ck::Mode::replay ? 1 : 0;
      fallbacks += saved.fallback.empty() ? 0 : 1;
    }
  }
};

std::uint64_t parity_bytes(const ck::Manifest& manifest) {
  std::uint64_t sum = 0;
  for (const auto& file : manifest.parity.files) sum += file.bytes;
  return sum;
}

}  // namespace

Exit run_checkpoint_save(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  ck::FileSaveOptions options = options_of(args, work);
  Vector<String> paths;
  for (const std::string& path : args.inputs) paths.emplace_back(path);
  const Stopwatch watch;
  // What the store makes is open to nobody who may not read the inputs: files from their first moment, and folders. Who
  // may write is the umask's business: a group may share a store.
  const mode_t mode = least_mode(args.inputs);
  const mode_t closed = ((mode & 040) == 0 ? 070 : 0) | ((mode & 004) == 0 ? 007 : 0);
  const ScopedUmask mask(closed);
  std::optional<ck::FileSaveResult> saved;
  {
    Progress progress("checkpoint save", args.run);
    options.progress = progress.callback();
    saved = work.check(ck::save_files(work.store(), paths, options, work.runner(), work.report()));
  }
  if (String note = ck::unnamed_weights_note(options.preset, saved->tensors); !note.empty())
    work.report().notes.push_back(ck::join({note, ": --role 'GLOB=param'"}));
  work.print_notes();
  const double seconds = watch.seconds();
  const ck::Manifest& manifest = saved->save.manifest;
  const std::uint64_t stored = manifest.stored_bytes() + saved->save.manifest_bytes;
  const Counts counts(saved->tensors);
  const ck::LossySummary loss = ck::summarize_loss(saved->tensors);
  Json kinds = Json::array();
  for (const auto& kind : loss.kinds) kinds.push_back(kind_json(kind));
  const bool tell_each = args.run.verbose || (args.dry_run && !args.run.quiet && !args.run.json);
  Json each = Json::array();
  for (const auto& tensor : saved->tensors) {
    if (tell_each) print_tensor(tensor);
    if (args.run.json) each.push_back(tensor_json(tensor));
  }
  if (args.run.json) {
    print_json(Json{{"step", *args.step},
                    {"id", text(manifest.name.id)},
                    {"published", saved->save.published},
                    {"dry_run", args.dry_run},
                    {"preset", args.preset},
                    {"input_bytes", saved->input_bytes},
                    {"output_bytes", stored},
                    {"manifest_bytes", saved->save.manifest_bytes},
                    {"parity_bytes", parity_bytes(manifest)},
                    {"ratio", ratio(saved->input_bytes, stored)},
                    {"tensors", saved->tensors.size()},
                    {"stored_already", counts.aliases},
                    {"differences", counts.differences},
                    {"with_loss", loss.lossy},
                    {"exact", loss.exact},
                    {"lossy", kinds},
                    {"replayed", counts.replayed},
                    {"kept_exactly_instead", counts.fallbacks},
                    {"each", each},
                    {"seconds", seconds},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("step {}: {} tensors, {} -> {} ({:.3f}x){}", *args.step, saved->tensors.size(),
                           size_text(saved->input_bytes), size_text(stored), ratio(saved->input_bytes, stored),
                           args.dry_run            ? ", not saved"
                           : saved->save.published ? ""
                                                   : ", waiting for the other writers"));
    if (loss.lossy != 0 || options.preset != ck::Preset::exact) print_note(text(ck::loss_sentence(loss)));
  }
  return Exit::ok;
}

}  // namespace quern::cli

// quern checkpoint: what is in a store, whether it is whole, and keeping it small.
#include <fmt/format.h>

#include "checkpoint/restore/verify.h"
#include "checkpoint/save/compact.h"
#include "checkpoint/save/difference.h"
#include "checkpoint/store/collect.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"

namespace quern::cli {
namespace {

/// What lies on a node that is away looks lost.
void note_absent_nodes(const CheckpointArgs& args, const CheckpointWorkspace& work) {
  if (args.run.quiet || work.store().placed() == nullptr) return;
  for (const String& sentence : work.store().placed()->absent_nodes()) print_note({sentence.data(), sentence.size()});
}

namespace ck = quern::checkpoint;

std::string text(const String& s) { return {s.data(), s.size()}; }
double ratio(std::uint64_t raw, std::uint64_t stored) {
  return stored == 0 ? 0 : static_cast<double>(raw) / static_cast<double>(stored);
}

Json shape_json(const Shape& shape) {
  Json out = Json::array();
  for (const std::uint64_t extent : shape.extents()) out.push_back(extent);
  return out;
}

std::string dtype_of(const ck::ManifestTensor& tensor) {
  return tensor.declared ? text(tensor.declared->dtype) : ck::element_name(tensor.what.type);
}

std::string shape_of(const ck::ManifestTensor& tensor) {
  if (!tensor.declared) return tensor.what.shape.text();
  std::string out;
  for (const std::uint64_t extent : tensor.declared->shape) out += fmt::format("{}{}", out.empty() ? "" : "x", extent);
  return out;
}

std::uint32_t chain_depth(const ck::Manifest& manifest) {
  std::uint32_t depth = 0;
  for (const auto& tensor : manifest.tensors) depth = std::max(depth, tensor.depth);
  return depth;
}

Json names_json(const Vector<ck::CheckpointName>& names) {
  Json out = Json::array();
  for (const auto& name : names) out.push_back(Json{{"step", name.step}, {"id", text(name.id)}});
  return out;
}

Json tags_json(const ck::Manifest& manifest) {
  Json out = Json::object();
  for (const ck::Tag& tag : manifest.tags) out[text(tag.name)] = text(tag.text);
  return out;
}

/// Short ones, on the line of their checkpoint.
std::string tags_text(const ck::Manifest& manifest) {
  std::string out;
  for (const ck::Tag& tag : manifest.tags)
    if (tag.name.size() + tag.text.size() <= 40) out += fmt::format("  {}={}", text(tag.name), text(tag.text));
  return out;
}

/// One line a checkpoint, or a JSON array of findings.
Exit tell_findings(const CheckpointArgs& args, const std::vector<ck::Finding>& findings) {
  bool good = true;
  Json list = Json::array();
  for (const ck::Finding& finding : findings) {
    good = good && finding.good;
    Json problems = Json::array();
    for (const String& problem : finding.problems) problems.push_back(text(problem));
    list.push_back(Json{{"step", finding.name.step},
                        {"id", text(finding.name.id)},
                        {"good", finding.good},
                        {"repaired", finding.repaired},
                        {"problems", problems}});
    if (args.run.json || (args.run.quiet && finding.good)) continue;
    print_note(fmt::format("step {}: {}", finding.name.step,
                           !finding.good      ? "damaged"
                           : finding.repaired ? "mended, whole again"
                                              : "whole"));
    for (const String& problem : finding.problems) print_note("  " + text(problem));
  }
  if (args.run.json) print_json(Json{{"good", good}, {"checkpoints", list}});
  return good ? Exit::ok : Exit::stream;
}

std::vector<ck::CheckpointName> only_asked_for(const CheckpointArgs& args, const Vector<ck::CheckpointName>& names) {
  std::vector<ck::CheckpointName> out;
  for (const auto& name : names)
    if (!args.step || name.step == *args.step) out.push_back(name);
  if (args.step && out.empty())
    fail(Exit::usage,
         fmt::format("{}: the store has no checkpoint of step {}; see quern checkpoint ls", args.store, *args.step));
  return out;
}

}  // namespace

Exit run_checkpoint_ls(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  const auto names = work.check(work.store().list_current(work.report()));
  work.print_notes();
  Json list = Json::array();
  std::string out;
  for (const auto& name : names) {
    ck::Report own;
    const auto manifest = work.store().read_checked(name, own);
    Json line{{"step", name.step}, {"id", text(name.id)}, {"good", manifest.ok()}};
    if (manifest.ok()) {
      const std::uint64_t raw = manifest->raw_bytes(), stored = manifest->stored_bytes();
      line["base"] = manifest->base ? Json(manifest->base->step) : Json(nullptr);
      line["tensors"] = manifest->tensors.size();
      line["raw_bytes"] = raw;
      line["stored_bytes"] = stored;
      line["depth"] = chain_depth(*manifest);
      line["needs"] = names_json(manifest->references);
      line["generation"] = manifest->name.generation;
      line["tags"] = tags_json(*manifest);
      line["parity"] = manifest->parity.data == 0
                           ? Json(nullptr)
                           : Json(fmt::format("{}+{}", manifest->parity.data, manifest->parity.parity));
      out += fmt::format("{:>12}  {:>6} tensors  {:>10} -> {:>10}  {:.3f}x{}{}{}\n", name.step,
                         manifest->tensors.size(), size_text(raw), size_text(stored), ratio(raw, stored),
                         manifest->base ? fmt::format("  base {}", manifest->base->step) : "",
                         manifest->parity.data == 0
                             ? ""
                             : fmt::format("  parity {}+{}", manifest->parity.data, manifest->parity.parity),
                         tags_text(*manifest));
    } else {
      line["problem"] = text(own.problem);
      out += fmt::format("{:>12}  damaged: {}\n", name.step, text(own.problem));
    }
    list.push_back(std::move(line));
  }
  if (args.run.json) {
    print_json(Json{{"store", args.store}, {"checkpoints", list}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

Exit run_checkpoint_info(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  const ck::Manifest manifest = work.chosen();
  work.print_notes();
  Json tensors = Json::array();
  std::string out =
      fmt::format("step {}, id {}, written by quern {}{}\n", manifest.name.step, text(manifest.name.id),
                  text(manifest.library), manifest.base ? fmt::format(", base {}", manifest.base->step) : "");
  for (const auto& tensor : manifest.tensors) {
    const char* const mode = tensor.alias ? "alias" : codec::tensor::mode_name(tensor.mode);
    const std::uint64_t stored = tensor.alias ? 0 : tensor.stored_bytes;
    Json line{{"name", text(tensor.name)}, {"role", text(tensor.role)}};
    line["dtype"] = dtype_of(tensor);
    line["shape"] = shape_json(tensor.is_piece ? tensor.whole : tensor.what.shape);
    if (tensor.declared) line["shape"] = tensor.declared->shape;
    if (tensor.is_piece) {
      Json from = Json::array(), to = Json::array();
      for (std::size_t a = 0; a < tensor.box.rank; ++a) {
        from.push_back(tensor.box.begin[a]);
        to.push_back(tensor.box.end[a]);
      }
      line["box"] = Json{{"begin", from}, {"end", to}};
    }
    line["mode"] = mode;
    line["bound"] = tensor.bound == 0 ? Json(nullptr) : Json(tensor.bound);
    line["bound_of"] =
        tensor.bound == 0 ? Json(nullptr) : Json(codec::tensor::mode_name(tensor.bound_mode.value_or(tensor.mode)));
    line["exact"] = !tensor.decoded;
    line["depth"] = tensor.depth;
    line["base"] = tensor.base ? Json(manifest.references[tensor.base->checkpoint - 1].step) : Json(nullptr);
    line["moments"] = Json::array();
    if (tensor.moments)
      for (const std::uint32_t number : *tensor.moments) line["moments"].push_back(text(manifest.tensors[number].name));
    line["companion"] = tensor.companion ? Json(text(manifest.tensors[*tensor.companion].name)) : Json(nullptr);
    line["raw_bytes"] = tensor.what.bytes();
    line["stored_bytes"] = stored;
    line["hash"] = text(ck::hex(tensor.content));
    tensors.push_back(std::move(line));
    out += fmt::format("{:44} {:14} {:8} {:16} {:9} {:>12} -> {:>12}{}\n", text(tensor.name), text(tensor.role),
                       dtype_of(tensor), shape_of(tensor), mode, tensor.what.bytes(), stored,
                       tensor.bound == 0 ? "" : fmt::format("  within {:.4g}", tensor.bound));
  }
  if (args.run.json) {
    Json files = Json::array();
    for (const auto& file : manifest.files) files.push_back(text(file.name));
    print_json(Json{{"step", manifest.name.step},
                    {"id", text(manifest.name.id)},
                    {"library", text(manifest.library)},
                    {"generation", manifest.name.generation},
                    {"tags", tags_json(manifest)},
                    {"base", manifest.base ? Json(manifest.base->step) : Json(nullptr)},
                    {"needs", names_json(manifest.references)},
                    {"raw_bytes", manifest.raw_bytes()},
                    {"stored_bytes", manifest.stored_bytes()},
                    {"files", files},
                    {"tensors", tensors}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

Exit run_checkpoint_diff(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  const auto a = work.check(work.store().at_step(args.steps[0], work.report()), Phase::decode);
  const auto b = work.check(work.store().at_step(args.steps[1], work.report()), Phase::decode);
  ck::Restorer restorer(work.store(), work.runner());
  AlignedBuffer left, right;
  Json list = Json::array();
  std::string out;
  std::vector<bool> met(b.tensors.size(), false);
  const auto add = [&](const String& name, const char* verdict, const ck::Difference& difference) {
    list.push_back(Json{{"name", text(name)},
                        {"verdict", verdict},
                        {"differing", difference.differing},
                        {"not_comparable", difference.not_comparable},
                        {"max_error", difference.max_error}});
    out += fmt::format("{:44} {:10} {:>12} differ, max error {:.6g}\n", text(name), verdict, difference.differing,
                       difference.max_error);
  };
  Progress progress("checkpoint diff", args.run);
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const auto& tensor = a.tensors[i];
    progress.update(i, a.tensors.size());
    std::size_t j = 0;
    while (j < b.tensors.size() && (b.tensors[j].name != tensor.name || b.tensors[j].box.begin != tensor.box.begin))
      ++j;
    if (j == b.tensors.size()) {
      add(tensor.name, "only in A", {});
      continue;
    }
    met[j] = true;
    const auto& other = b.tensors[j];
    if (tensor.what.type != other.what.type || tensor.what.shape != other.what.shape ||
        tensor.declared != other.declared) {
      add(tensor.name, "reshaped", {});
    } else if (tensor.restored() == other.restored()) {
      add(tensor.name, "equal", {});
    } else {
      work.check(restorer.tensor(a.name, i, left, work.report()), Phase::decode);
      work.check(restorer.tensor(b.name, j, right, work.report()), Phase::decode);
      ck::Difference found = ck::difference(tensor.what.type, left.span(), right.span());
      // Bytes of a type that is not known have no distance.
      if (tensor.declared && !ck::parse_element(tensor.declared->dtype)) found = {found.differing, 0, found.differing};
      add(tensor.name, "changed", found);
    }
  }
  for (std::size_t j = 0; j < met.size(); ++j)
    if (!met[j]) add(b.tensors[j].name, "only in B", {});
  if (args.run.json) {
    print_json(Json{{"a", args.steps[0]}, {"b", args.steps[1]}, {"tensors", list}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

Exit run_checkpoint_verify(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  note_absent_nodes(args, work);
  const auto names = only_asked_for(args, work.check(work.store().list(work.report())));
  work.print_notes();
  std::vector<ck::Finding> findings;
  {
    Progress progress("checkpoint verify", args.run);
    for (const auto& name : names) {
      progress.update(findings.size(), names.size());
      findings.push_back(ck::verify_checkpoint(work.store(), name, args.full, work.runner()));
    }
  }
  return tell_findings(args, findings);
}

Exit run_checkpoint_repair(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  // Its own folder may have been lost, but for the copy of the placement that a node has.
  if (work.store().placed() != nullptr) work.check(work.store().make_folders(work.report()));
  note_absent_nodes(args, work);
  const auto names = only_asked_for(args, work.check(ck::names_to_repair(work.store(), work.report())));
  work.print_notes();
  std::vector<ck::Finding> findings;
  {
    Progress progress("checkpoint repair", args.run);
    for (const auto& name : names) {
      progress.update(findings.size(), names.size());
      findings.push_back(ck::repair_checkpoint(work.store(), name, work.runner()));
    }
  }
  return tell_findings(args, findings);
}

Exit run_checkpoint_compact(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  ck::SaveOptions options;
  options.parity_data = args.parity_data;
  options.parity_files = args.parity_files;
  const auto made = work.check(ck::compact(work.store(), *args.step, options, work.runner(), work.report()));
  work.print_notes();
  if (args.run.json)
    print_json(Json{{"step", *args.step},
                    {"id", text(made.name.id)},
                    {"output_bytes", made.manifest.stored_bytes() + made.manifest_bytes}});
  return Exit::ok;
}

Exit run_checkpoint_gc(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  ck::CollectOptions options;
  options.keep = args.keep;
  options.keep_every = args.keep_every;
  if (args.keep_best != 0) options.best = ck::KeepBest{args.keep_best, String(args.metric), args.largest_is_best};
  for (const std::uint64_t step : args.steps) options.remove.push_back(step);
  options.dry_run = args.dry_run;
  note_absent_nodes(args, work);
  const auto done = work.check(ck::collect(work.store(), options, work.report()));
  work.print_notes();
  if (args.run.json) {
    print_json(Json{{"removed", names_json(done.removed)},
                    {"kept_for_others", names_json(done.kept_for_others)},
                    {"freed_bytes", done.freed_bytes},
                    {"dry_run", args.dry_run}});
  } else if (!args.run.quiet) {
    if (!done.kept_for_others.empty()) {
      std::string steps;
      for (auto name = done.kept_for_others.rbegin(); name != done.kept_for_others.rend(); ++name)
        steps += fmt::format("{}{}", steps.empty() ? "" : ", ", name->step);
      print_note(fmt::format("kept, because what stays needs tensors of it: step {}", steps));
    }
    print_note(fmt::format("{} {} checkpoints, {}", args.dry_run ? "would remove" : "removed", done.removed.size(),
                           size_text(done.freed_bytes)));
  }
  return Exit::ok;
}

}  // namespace quern::cli

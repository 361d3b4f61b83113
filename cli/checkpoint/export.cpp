// quern checkpoint export: a checkpoint's weights as a folder that Hugging Face's from_pretrained() reads.
#include <fmt/format.h>

#include "checkpoint/export/export_model.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

std::string text(const String& s) { return {s.data(), s.size()}; }

ck::ExportOptions options_of(const CheckpointArgs& args) {
  ck::ExportOptions options;
  for (const std::string& glob : args.tensors) options.choice.only.emplace_back(glob);
  for (const std::string& prefix : args.strip) options.choice.strip.emplace_back(prefix);
  if (args.dtype == "bf16") options.choice.type = ck::ElementType::bf16;
  if (args.dtype == "f16") options.choice.type = ck::ElementType::f16;
  if (args.dtype == "f32") options.choice.type = ck::ElementType::f32;
  options.shard_bytes = args.shard_bytes.value_or(ck::kExportShardBytes);
  options.replace = args.force;
  return options;
}

void print_result(const CheckpointArgs& args, std::uint64_t step, const ck::ExportResult& done) {
  for (const auto& [second, first] : done.tied)
    print_note(fmt::format("{} is {}: written once, under that name", text(second), text(first)));
  if (done.inexact != 0)
    print_note(fmt::format("{} of the tensors were saved with loss and are within their bound, not bit for bit",
                           done.inexact));
  print_note(fmt::format("step {}: {} tensors{}, {} in {} to {}", step, done.tensors,
                         done.cast == 0 ? "" : fmt::format(" ({} as {})", done.cast, args.dtype), size_text(done.bytes),
                         done.files.size() == 1 ? "one file" : fmt::format("{} files", done.files.size()), args.hf));
}

}  // namespace

Exit run_checkpoint_export(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  const ck::Manifest manifest = work.chosen();
  work.print_notes();
  ck::Restorer restorer(work.store(), work.runner());
  ck::ExportOptions options = options_of(args);
  const Stopwatch watch;
  // Open to those who may read the checkpoint.
  const mode_t mode = mode_like(text(work.store().manifest_path(manifest.name)));
  const ScopedUmask mask(((mode & 040) == 0 ? 070 : 0) | ((mode & 004) == 0 ? 007 : 0));
  ck::ExportResult done;
  {
    Progress progress("checkpoint export", args.run);
    options.progress = progress.callback();
    done = work.check(ck::export_model(work.store().files(), restorer, manifest, args.hf, options, work.report()),
                      Phase::decode);
  }
  work.print_notes();
  if (args.run.json) {
    Json files = Json::array(), tied = Json::object();
    for (const String& name : done.files) files.push_back(text(name));
    for (const auto& [second, first] : done.tied) tied[text(second)] = text(first);
    print_json(Json{{"step", manifest.name.step},
                    {"id", text(manifest.name.id)},
                    {"output", args.hf},
                    {"files", files},
                    {"tensors", done.tensors},
                    {"cast", done.cast},
                    {"inexact", done.inexact},
                    {"tied", tied},
                    {"input_bytes", manifest.stored_bytes()},
                    {"output_bytes", done.bytes},
                    {"seconds", watch.seconds()},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_result(args, manifest.name.step, done);
  }
  return Exit::ok;
}

}  // namespace quern::cli

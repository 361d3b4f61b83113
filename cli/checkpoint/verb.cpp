// quern checkpoint: which work, and the ways in and out of the store.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "checkpoint/convert/convert.h"
#include "checkpoint/tiers/tiers.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/files/byte_streams.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

std::string text(const String& s) { return {s.data(), s.size()}; }

void make_output_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_errno(path, "make the folder");
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    fail(Exit::io, path + ": is no folder; several files need one");
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

ck::Store open_store(const std::string& path) {
  ck::Report report;
  auto store = ck::Store::open(ck::system_files(), String(path), report);
  if (!store.ok()) fail(exit_for(store.status(), Phase::decode), text(report.problem));
  return std::move(store).value();
}

CheckpointWorkspace::CheckpointWorkspace(const CheckpointArgs& args)
    : args_(args), store_(open_store(args.store)), runner_([&] {
        Execution execution;
        execution.threads = args.run.threads;
        return execution;
      }()) {}

void CheckpointWorkspace::print_notes() {
  if (!args_.run.quiet)
    for (const String& note : report_.notes) print_note(text(note));
  report_.notes.clear();
}

void CheckpointWorkspace::fail_with(const Status& status, Phase phase) {
  print_notes();
  if (report_.problem.empty()) fail_status(status, phase, args_.store);
  fail(exit_for(status, phase), text(report_.problem));
}

ck::Manifest CheckpointWorkspace::chosen() {
  if (args_.step) return check(store_.at_step(*args_.step, report_), Phase::decode);
  return check(store_.newest(report_), Phase::decode);
}

SafeFileSink::SafeFileSink(const std::string& path, bool replace, mode_t mode)
    : path_(path == "-" ? "standard output" : path) {
  if (path == "-") {
    check_stdout(replace);
  } else {
    file_.emplace(path, SafeFile::Options{.replace = replace, .mode = mode});
  }
}

mode_t least_mode(const std::vector<std::string>& inputs) {
  mode_t mode = 0666;
  const auto take = [&](const std::string& path) { mode &= mode_like(path) | 0600; };
  for (const std::string& input : inputs) {
    take(input);
    if (!input.ends_with(".json")) continue;
    // An index names files beside it; all that might be meant count.
    std::error_code ignored;
    const auto folder = std::filesystem::absolute(input, ignored).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".safetensors") take(entry.path().string());
  }
  return mode;
}

Status SafeFileSink::write(std::span<const std::uint8_t> bytes, ck::Report& report) {
  bytes_ += bytes.size();
  if (write_all(file_ ? file_->descriptor() : STDOUT_FILENO, bytes)) return {};
  return ck::fail_file(report, path_, "write it", Status(StatusCode::io_error, "write failed", errno));
}

namespace {

/// What is asked for of one checkpoint, under temporary names until all of it is written. A failure is that of reading.
Status load_from(const CheckpointArgs& args, CheckpointWorkspace& work, const ck::Manifest& manifest,
                 std::uint64_t& bytes) {
  ck::Restorer restorer(work.store(), work.runner());
  Vector<String> globs;
  for (const std::string& glob : args.tensors) globs.emplace_back(glob);
  Progress progress("checkpoint load", args.run);
  const ProgressCallback callback = progress.callback();
  // Open to those who may read the checkpoint.
  const mode_t mode = mode_like(text(work.store().manifest_path(manifest.name)));
  std::vector<std::unique_ptr<SafeFileSink>> sinks;
  const auto sink_for = [&](const std::string& path) -> ck::FileSink& {
    sinks.push_back(std::make_unique<SafeFileSink>(path, args.force, mode));
    return *sinks.back();
  };
  if (!globs.empty() || !args.slice.empty() || manifest.files.empty()) {
    QUERN_RETURN_IF_ERROR(
        ck::load_tensors(restorer, manifest, globs, args.slice, sink_for(args.output), callback, work.report()));
  } else if (manifest.files.size() == 1 && !is_folder(args.output)) {
    QUERN_RETURN_IF_ERROR(ck::load_file(restorer, manifest, 0, sink_for(args.output), callback, work.report()));
  } else {
    if (args.output == "-") fail(Exit::usage, "-o -: this checkpoint has several files; name a folder");
    make_output_folder(args.output);
    for (std::size_t i = 0; i < manifest.files.size(); ++i)
      QUERN_RETURN_IF_ERROR(ck::load_file(
          restorer, manifest, i, sink_for(args.output + "/" + text(manifest.files[i].name)), callback, work.report()));
  }
  for (const auto& sink : sinks) {
    sink->commit();
    bytes += sink->bytes();
  }
  return {};
}

bool is_damage(const Status& status) {
  return status.code() == StatusCode::corrupt || status.code() == StatusCode::checksum_mismatch ||
         status.code() == StatusCode::truncated;
}

}  // namespace

Exit run_checkpoint_load(const CheckpointArgs& given) {
  CheckpointArgs args = given;
  if (!args.tiers.empty()) {
    CheckpointWorkspace all(args);
    const auto found = all.check(ck::newest_of(stores_of(args), all.runner(), all.report(), args.step), Phase::decode);
    all.print_notes();
    if (found.tier != 0) args.store = args.tiers[found.tier - 1];
    args.step = found.manifest.name.step;
  }
  CheckpointWorkspace work(args);
  ck::Manifest manifest = work.chosen();
  work.print_notes();
  const Stopwatch watch;
  std::uint64_t bytes = 0;
  // What was written to standard output cannot be taken back.
  const bool may_fall_back = !args.step && args.output != "-";
  for (;;) {
    const Status loaded = load_from(args, work, manifest, bytes);
    if (loaded.ok()) break;
    if (!may_fall_back || !is_damage(loaded)) work.fail_with(loaded, Phase::decode);
    ck::Report older;
    auto next = work.store().newest(older, &manifest.name);
    if (!next.ok()) work.fail_with(loaded, Phase::decode);
    // Said whatever is asked: other values come than those of the newest.
    print_note(fmt::format("step {} was passed over: {}; quern checkpoint repair mends what parity allows",
                           manifest.name.step, text(work.report().problem)));
    manifest = std::move(next).value();
    work.report().problem.clear();
    bytes = 0;
  }
  if (args.run.json)
    print_json(Json{{"step", manifest.name.step},
                    {"id", text(manifest.name.id)},
                    {"store", args.store},
                    {"output", args.output},
                    {"output_bytes", bytes},
                    {"input_bytes", manifest.stored_bytes()},
                    {"seconds", watch.seconds()},
                    {"threads", thread_count(args.run)},
                    {"version", QUERN_VERSION}},
               args.output == "-");
  else if (!args.run.quiet)
    print_note(fmt::format("step {}: {} to {}", manifest.name.step, size_text(bytes),
                           args.output == "-" ? "standard output" : args.output));
  return Exit::ok;
}

Exit run_checkpoint_convert(const CheckpointArgs& args) {
  ck::Report report;
  const auto check = [&](const Status& status) {
    if (status.ok()) return;
    if (report.problem.empty()) fail_status(status, Phase::decode, args.inputs.front());
    fail(exit_for(status, Phase::decode), text(report.problem));
  };
  auto model = ck::ModelFiles::open(ck::system_files(), String(args.inputs.front()), report);
  check(model.status());
  const mode_t mode = least_mode({args.inputs.front()});
  std::uint64_t bytes = 0;
  std::size_t files = 1;
  if (!args.shard_bytes) {
    SafeFileSink sink(args.output, args.force, mode);
    check(ck::write_model_file(*model, 0, model->tensors().size(), sink, report));
    sink.commit();
    bytes = sink.bytes();
  } else {
    make_output_folder(args.output);
    const auto ends = ck::cut_shards(*model, *args.shard_bytes);
    files = ends.size();
    ck::ShardIndex index;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      const String name = ck::shard_name(i, ends.size());
      SafeFileSink sink(args.output + "/" + text(name), args.force, mode);
      check(ck::write_model_file(*model, begin, ends[i], sink, report));
      sink.commit();
      bytes += sink.bytes();
      for (std::size_t t = begin; t < ends[i]; ++t) index.files.emplace_back(model->tensors()[t].stored->name, name);
    }
    const String list = ck::make_shard_index(index, model->tensor_bytes());
    SafeFileSink sink(args.output + "/model.safetensors.index.json", args.force, mode);
    check(sink.write({reinterpret_cast<const std::uint8_t*>(list.data()), list.size()}, report));
    sink.commit();
  }
  if (args.run.json)
    print_json(Json{{"input_bytes", model->input_bytes()},
                    {"output_bytes", bytes},
                    {"tensors", model->tensors().size()},
                    {"files", files},
                    {"version", QUERN_VERSION}});
  return Exit::ok;
}

Exit run_checkpoint(const CheckpointArgs& args) {
  switch (args.work) {
    case CheckpointWork::save: return run_checkpoint_save(args);
    case CheckpointWork::load: return run_checkpoint_load(args);
    case CheckpointWork::ls: return run_checkpoint_ls(args);
    case CheckpointWork::info: return run_checkpoint_info(args);
    case CheckpointWork::diff: return run_checkpoint_diff(args);
    case CheckpointWork::verify: return run_checkpoint_verify(args);
    case CheckpointWork::repair: return run_checkpoint_repair(args);
    case CheckpointWork::compact: return run_checkpoint_compact(args);
    case CheckpointWork::gc: return run_checkpoint_gc(args);
    case CheckpointWork::convert: return run_checkpoint_convert(args);
    case CheckpointWork::bench: return run_checkpoint_bench(args);
    case CheckpointWork::tiers: return run_checkpoint_tiers(args);
    case CheckpointWork::place: return run_checkpoint_place(args);
    case CheckpointWork::keeper: return run_checkpoint_keeper(args);
    case CheckpointWork::export_model: return run_checkpoint_export(args);
  }
  return Exit::usage;
}

}  // namespace quern::cli

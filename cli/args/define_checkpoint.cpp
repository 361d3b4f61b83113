// Options of quern checkpoint, and how their texts are read.
#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/options.h"
#include "cli/args/parity_numbers.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kMaxStep = 999'999'999'999'999;

CLI::App& add_work(CLI::App& verb, RawArgs& raw, const char* name, const char* what, bool with_store = true) {
  CLI::App& work = *verb.add_subcommand(name, what);
  if (with_store) work.add_option("--store", raw.store, "folder of the store")->type_name("DIR")->required();
  work.add_flag("-q,--quiet", raw.quiet, "only errors");
  work.add_flag("--json", raw.json, "one JSON object on standard output");
  return work;
}

void add_threads(CLI::App& work, RawArgs& raw) {
  add_value(work, "-T,--threads", raw.threads, "N", "threads; 0 = all [1]");
  add_value(work, "--progress", raw.progress, "WHEN", "auto (on a terminal), always or never [auto]");
}

void define_save(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_work(verb, raw, "save", "save safetensors files as one checkpoint");
  work.add_option("FILE", raw.files, "safetensors files, or an index of them (*.index.json)")
      ->required()
      ->type_name("");
  add_value(work, "--step", raw.step, "N", "the checkpoint's step");
  add_value(work, "--base", raw.base, "N",
            "step that tensors may be stored as differences to; newest: the newest that has no base itself");
  work.add_flag("--replace", raw.replace, "take the place of the checkpoint of that step, if there is one");
  add_repeatable(work, "--tag", raw.tags, "NAME=TEXT", "keep this with the checkpoint, as in loss=2.75; repeatable");
  add_value(work, "--preset", raw.preset, "NAME",
            "exact; moments (optimizer within .05 of a step); balanced (weights too); archive [exact]");
  add_value(work, "--policy", raw.policy, "FILE", "rules in JSON on how tensors are stored; come before the preset's");
  add_value(work, "--replay", raw.replay, "FILE",
            "the optimizer's rule in JSON: store a step after --base as its gradient, bit for bit");
  add_value(work, "--parity", raw.parity, "K+M",
            "spread over K parts and add M parity files, any M of which may be lost");
  add_repeatable(work, "--role", raw.roles, "GLOB=ROLE",
                 "role of tensors by name (param: a weight, exp_avg, exp_avg_sq, ...); repeatable [from the names]");
  add_value(work, "--zstd", raw.zstd_level, "LEVEL", "let zstd try too, 1 to 19; 0: never [0]");
  add_value(work, "--group", raw.group, "NAME", "several writers: a common name that is new for each checkpoint");
  add_value(work, "--writer", raw.writer, "I/N", "several writers: this one's number from 0, and how many there are");
  work.add_flag("--dry-run", raw.dry_run, "say what each tensor would take and lose, but save nothing");
  work.add_flag("-v,--verbose", raw.verbose, "a line for each tensor");
  add_threads(work, raw);
  work.footer(
      "Examples:\n"
      "  quern checkpoint save state.safetensors --store run --step 400\n"
      "  quern checkpoint save state.safetensors --store run --step 500 --base newest --tag loss=2.75\n"
      "  quern checkpoint save state.safetensors --store run --step 500 --base 400 --parity 4+2\n"
      "  quern checkpoint save model.safetensors.index.json --store run --step 500\n"
      "  quern checkpoint save state.safetensors --store run --step 500 --preset balanced --dry-run\n"
      "  quern checkpoint save state.safetensors gradients.safetensors --store run --step 401 \\\n"
      "      --base 400 --replay adamw.json\n"
      "A policy: {\"preset\": \"moments\", \"rules\": [{\"name\": \"*.lora_*\", \"mode\": \"exact\"},\n"
      "  {\"role\": \"param\", \"min_rank\": 2, \"mode\": \"ebq\", \"bound\": 1e-4, \"unit\": \"std\"}]}\n"
      "A rule: {\"optimizer\": \"adamw\", \"order\": \"fused\", \"betas\": [0.9, 0.95], \"eps\": 1e-8, \"lr\": 7e-4,\n"
      "  \"weight_decay\": 0.1, \"groups\": [{\"max_rank\": 1, \"weight_decay\": 0}]}\n"
      "  lr, step and clip_scale are otherwise taken from the files' metadata.\n");
}

void define_load(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_work(verb, raw, "load", "bring a checkpoint's files back, byte for byte");
  add_value(work, "--step", raw.step, "N", "which checkpoint [the newest that is whole]");
  add_repeatable(work, "--tier", raw.tiers, "DIR",
                 "a store's further folder, where it may lie too; what is loaded is checked first; repeatable");
  work.add_option("-o,--output", raw.output, "file, or - for standard output; folder for several files")
      ->type_name("OUT")
      ->required();
  add_repeatable(work, "--tensor", raw.tensors, "GLOB",
                 "only tensors of such names, as a safetensors file; repeatable");
  add_value(work, "--slice", raw.slice, "BOX",
            "of each tensor only this, as in 0:10,5:9,: (axes as saved, end excluded)");
  work.add_flag("-f,--force", raw.force, "replace existing files");
  add_threads(work, raw);
  work.footer(
      "Examples:\n"
      "  quern checkpoint load --store run -o state.safetensors\n"
      "  quern checkpoint load --store run --tier shared/run -o state.safetensors\n"
      "  quern checkpoint load --store run --step 400 --tensor 'exp_avg*' -o moments.safetensors\n"
      "  quern checkpoint load --store run --tensor embed.weight --slice 0:100,: -o rows.safetensors\n");
}

void define_export(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_work(verb, raw, "export", "write a checkpoint's weights as a model for others to load", false);
  work.add_option("STORE,--store", raw.store, "folder of the store")->type_name("DIR")->required();
  work.add_option("--hf", raw.hf, "folder for model.safetensors, or shards and their index, as Hugging Face has them")
      ->type_name("DIR")
      ->required();
  add_value(work, "--step", raw.step, "N", "which checkpoint [the newest that is whole]");
  add_repeatable(work, "--only,--tensor", raw.tensors, "GLOB",
                 "tensors of such names; repeatable [the model of a state dict; else all]");
  add_repeatable(work, "--strip-prefix", raw.strip, "TEXT",
                 "take this from the names that begin with it, such as model.; repeatable");
  add_value(work, "--dtype", raw.dtype, "TYPE", "bf16, f16 or f32: round floating-point weights to it [as they are]");
  add_value(work, "--shard-size", raw.shard_size, "SIZE", "most bytes of a file, such as 5G [5000000000]");
  work.add_flag("-f,--force", raw.force, "replace a model in the folder");
  add_threads(work, raw);
  work.footer(
      "Of tied weights the first name is written; the others are in the metadata of its file, and loading ties them.\n"
      "config.json and the tokenizer are no part of a checkpoint: copy them beside.\n"
      "Examples:\n"
      "  quern checkpoint export run --hf out\n"
      "  quern checkpoint export run --step 400 --hf out --dtype bf16 --shard-size 2G\n"
      "  quern checkpoint export run --hf out --only 'model.*' --strip-prefix model. --strip-prefix module.\n");
}

void define_bench(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_work(verb, raw, "bench", "measure how long a trainer waits for its checkpoints");
  work.add_option("FILE", raw.files, "a safetensors file whose tensors are trained on [made up]")->type_name("");
  add_value(work, "--size", raw.state_size, "SIZE", "bytes of the made-up state [64M]");
  add_value(work, "--tensors", raw.tensor_count, "N", "tensors of it [48]");
  add_value(work, "--forward", raw.forward, "MS", "milliseconds of a forward pass [2 times a copy of the state]");
  add_value(work, "--backward", raw.backward, "MS", "milliseconds of a backward pass [2 times a copy of the state]");
  add_value(work, "--steps", raw.step, "N", "steps of each way of saving [12]");
  add_value(work, "--every", raw.every, "N", "steps from one checkpoint to the next [1]");
  add_value(work, "--ring", raw.ring, "SIZE", "bytes that copies of tensors may take [9/8 of the state]");
  add_value(work, "--preset", raw.preset, "NAME", "what may be lost: exact, moments, balanced, archive [exact]");
  add_value(work, "--base", raw.base, "newest", "save differences to the newest checkpoint without a base");
  add_value(work, "--throttle", raw.throttle, "SIZE", "bytes a second that may be written, as on a slower disk");
  work.add_flag("--tier", raw.bench_tier, "--throttle is that of a tier behind the store; the store is not held up");
  add_value(work, "--html", raw.html, "FILE", "a page with the timeline: who waited for what");
  work.add_flag("-f,--force", raw.force, "replace an existing page");
  add_threads(work, raw);
  work.footer(
      "Ways of saving: none; wait (each save before the next step); copy (wait for the copy alone); raw (while\n"
      "training goes on, without coding); lazy (the same, coded). --store is a folder for the bench's own stores,\n"
      "which it removes. A step does the same arithmetic whatever is saved.\n"
      "Examples:\n"
      "  quern checkpoint bench --store /tmp --size 8M --steps 4 --html waits.html\n"
      "  quern checkpoint bench --store /tmp --size 4M --throttle 50M --every 4 --json\n"
      "  quern checkpoint bench --store /tmp --size 4M --tier --throttle 50M --every 4 --preset moments\n");
}

void define_tiers(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_work(verb, raw, "tiers", "copies of a store's checkpoints in further folders");
  work.add_option("WORK", raw.what,
                  "list: where each checkpoint is\ndrain: copy to the tiers what they lack\n"
                  "promote: bring one back to the store\nevict: remove from the store what the tiers have")
      ->required()
      ->type_name("");
  work.add_option("--tier", raw.tiers,
                  "a folder behind the store, as on a shared file system; repeatable, nearest first")
      ->type_name("DIR")
      ->required()
      ->expected(1, 64)
      ->take_all();
  add_value(work, "--step", raw.step, "N", "drain, promote: this one [all; the newest that is whole]");
  add_value(work, "--every", raw.every, "N", "drain, evict: tiers are to have steps that are multiples of N [1]");
  add_value(work, "--keep", raw.keep, "K", "evict: leave the K newest in the store");
  add_value(work, "--throttle", raw.throttle, "SIZE", "drain, promote: bytes a second that may be written");
  work.add_flag("--dry-run", raw.dry_run, "evict: only say what would go");
  add_threads(work, raw);
  work.footer(
      "Copies have the same bytes and the same place in the order. A tier is a store: all of quern checkpoint\n"
      "works on it. What a checkpoint needs of others is copied, too. Damaged checkpoints are not copied.\n"
      "Examples:\n"
      "  quern checkpoint tiers drain --store run --tier shared/run --every 100\n"
      "  quern checkpoint tiers list --store run --tier shared/run\n"
      "  quern checkpoint tiers evict --store run --tier shared/run --every 100 --keep 3\n"
      "  quern checkpoint tiers promote --store run --tier shared/run\n");
}

void read_tiers(const RawArgs& raw, CheckpointArgs& out) {
  out.tiers_work = raw.what;
  if (raw.what != "list" && raw.what != "drain" && raw.what != "promote" && raw.what != "evict")
    fail(Exit::usage, fmt::format("checkpoint tiers {}: use list, drain, promote or evict", raw.what));
  if (!raw.every.empty()) out.every = parse_count(raw.every, "--every", kMaxStep);
  if (out.every == 0) fail(Exit::usage, "--every 0: give a number above 0");
  if (!raw.throttle.empty()) out.throttle = static_cast<double>(parse_size(raw.throttle, "--throttle"));
  if ((raw.what == "evict") != !raw.keep.empty())
    fail(Exit::usage, raw.what == "evict" ? "checkpoint tiers evict: say how many stay in the store, with --keep K"
                                          : "--keep: evict alone removes checkpoints");
}

/// Milliseconds as seconds.
double read_milliseconds(const std::string& text, const char* option) {
  return static_cast<double>(parse_count(text, option, 3'600'000)) / 1000;
}

void read_bench(const RawArgs& raw, CheckpointArgs& out) {
  if (raw.files.size() > 1) fail(Exit::usage, "FILE: the bench takes one file");
  if (!raw.base.empty() && raw.base != "newest") fail(Exit::usage, "--base: the bench knows newest alone");
  if (!raw.state_size.empty()) out.state_bytes = parse_size(raw.state_size, "--size");
  if (!raw.tensor_count.empty()) out.tensor_count = parse_count(raw.tensor_count, "--tensors", 1'000'000);
  if (out.tensor_count == 0 || out.state_bytes / 4 < out.tensor_count)
    fail(Exit::usage, "--size, --tensors: each tensor needs 4 bytes at least");
  if (!raw.forward.empty()) out.forward = read_milliseconds(raw.forward, "--forward");
  if (!raw.backward.empty()) out.backward = read_milliseconds(raw.backward, "--backward");
  if (!raw.step.empty()) out.bench_steps = parse_count(raw.step, "--steps", 100'000);
  if (!raw.every.empty()) out.every = parse_count(raw.every, "--every", 100'000);
  if (out.every == 0 || out.bench_steps < out.every) fail(Exit::usage, "--every: at least 1, and at most --steps");
  if (!raw.ring.empty()) out.ring_bytes = parse_size(raw.ring, "--ring");
  if (!raw.throttle.empty()) out.throttle = static_cast<double>(parse_size(raw.throttle, "--throttle"));
  if (!raw.preset.empty()) out.preset = raw.preset;
  out.bench_tier = raw.bench_tier;
  if (out.bench_tier && out.throttle == 0)
    fail(Exit::usage, "--tier: say how slow the tier is, as with --throttle 50M");
  out.html = raw.html;
}

void define_reading(CLI::App& verb, RawArgs& raw) {
  CLI::App& ls = add_work(verb, raw, "ls", "list checkpoints");
  ls.footer("Example:\n  quern checkpoint ls --store run\n");

  CLI::App& info = add_work(verb, raw, "info", "list a checkpoint's tensors and what they take");
  add_value(info, "--step", raw.step, "N", "which checkpoint [the newest that is whole]");
  info.footer("Example:\n  quern checkpoint info --store run --step 400\n");

  CLI::App& diff = add_work(verb, raw, "diff", "compare two checkpoints, tensor by tensor");
  diff.add_option("STEPS", raw.steps, "A B: two steps")->required()->expected(2)->type_name("");
  add_threads(diff, raw);
  diff.footer("Example:\n  quern checkpoint diff --store run 400 500\n");

  CLI::App& verify = add_work(verb, raw, "verify", "check that checkpoints are whole");
  add_value(verify, "--step", raw.step, "N", "only this one [all]");
  verify.add_flag("--full", raw.full, "also read every byte, decode every tensor and compare hashes");
  add_threads(verify, raw);
  verify.footer("Exit code 3 when something is damaged.\nExample:\n  quern checkpoint verify --store run --full\n");
}

void define_changing(CLI::App& verb, RawArgs& raw) {
  CLI::App& repair = add_work(verb, raw, "repair", "mend what parity and copies allow, bit for bit");
  add_value(repair, "--step", raw.step, "N", "only this one [all]");
  add_threads(repair, raw);
  repair.footer("Exit code 3 when something cannot be mended.\nExample:\n  quern checkpoint repair --store run\n");

  CLI::App& compact = add_work(verb, raw, "compact", "store a checkpoint anew so that it needs no other");
  compact.add_option("--step", raw.step, "which checkpoint")->type_name("N")->required();
  add_value(compact, "--parity", raw.parity, "K+M", "with this parity [none]");
  add_threads(compact, raw);
  compact.footer("Example:\n  quern checkpoint compact --store run --step 500\n");

  CLI::App& gc = add_work(verb, raw, "gc", "remove checkpoints and what unfinished saves have left");
  add_value(gc, "--keep", raw.keep, "N", "keep the N newest that are whole [all]");
  add_value(gc, "--keep-every", raw.keep_every, "N", "keep steps that are multiples of N too");
  add_value(gc, "--keep-best", raw.keep_best, "N:TAG[:max]",
            "keep the N with the smallest (max: largest) numbers under a tag too, as in 2:loss");
  add_repeatable(gc, "--remove", raw.steps, "STEP", "remove this one unless another needs it; repeatable");
  gc.add_flag("--dry-run", raw.dry_run, "only say what would go");
  gc.footer(
      "What the checkpoints that stay need of others is kept, tensor by tensor.\n"
      "Examples:\n"
      "  quern checkpoint gc --store run --keep 3\n"
      "  quern checkpoint gc --store run --keep 3 --keep-every 1000 --keep-best 2:loss --dry-run\n");

  CLI::App& convert = add_work(verb, raw, "convert", "between one safetensors file and several with an index", false);
  convert.add_option("FILE", raw.files, "a safetensors file, or an index (*.index.json)")
      ->required()
      ->expected(1)
      ->type_name("");
  convert.add_option("-o,--output", raw.output, "file; with --shard-size a folder")->type_name("OUT")->required();
  add_value(convert, "--shard-size", raw.shard_size, "SIZE", "most bytes of a file, such as 5G");
  convert.add_flag("-f,--force", raw.force, "replace existing files");
  convert.footer(
      "Examples:\n"
      "  quern checkpoint convert model.safetensors.index.json -o model.safetensors\n"
      "  quern checkpoint convert model.safetensors --shard-size 2G -o sharded/\n");
}

void read_parity(const std::string& text, CheckpointArgs& out) {
  if (text.empty()) return;
  const ParityNumbers numbers = parse_parity(text);
  out.parity_data = numbers.data;
  out.parity_files = numbers.parity;
}

/// "2:loss", "1:accuracy:max"; a tag's name may hold colons.
void read_best(std::string text, CheckpointArgs& out) {
  const std::string given = text;
  if (text.ends_with(":max") || text.ends_with(":min")) {
    out.largest_is_best = text.ends_with(":max");
    text.resize(text.size() - 4);
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size())
    fail(Exit::usage, fmt::format("--keep-best {}: write it as N:TAG or N:TAG:max, such as 2:loss", given));
  out.keep_best = static_cast<std::size_t>(parse_count(text.substr(0, colon), "--keep-best", 1'000'000'000));
  if (out.keep_best == 0) fail(Exit::usage, fmt::format("--keep-best {}: N must be at least 1", given));
  out.metric = text.substr(colon + 1);
}

void read_save(const RawArgs& raw, CheckpointArgs& out) {
  for (const std::string& tag : raw.tags) {
    const std::size_t equal = tag.find('=');
    if (equal == std::string::npos || equal == 0)
      fail(Exit::usage, fmt::format("--tag {}: write it as NAME=TEXT, such as loss=2.75", tag));
    out.tags.emplace_back(tag.substr(0, equal), tag.substr(equal + 1));
  }
  if (!out.step) fail(Exit::usage, "checkpoint save: give the checkpoint's step with --step N");
  if (!raw.preset.empty()) out.preset = raw.preset;
  if (out.preset != "exact" && out.preset != "moments" && out.preset != "balanced" && out.preset != "archive")
    fail(Exit::usage, fmt::format("--preset {}: unknown; use exact, moments, balanced or archive", out.preset));
  out.policy = raw.policy;
  out.replay = raw.replay;
  if (!out.replay.empty() && !out.base && !out.base_newest)
    fail(Exit::usage, "--replay: needs the checkpoint of the step before, with --base N");
  for (const std::string& text : raw.roles) {
    const std::size_t equal = text.rfind('=');
    if (equal == std::string::npos || equal == 0)
      fail(Exit::usage, fmt::format("--role {}: write it as GLOB=ROLE", text));
    out.roles.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
  if (!raw.zstd_level.empty()) out.zstd_level = static_cast<int>(parse_count(raw.zstd_level, "--zstd", 19));
  out.group = raw.group;
  if (raw.writer.empty() != raw.group.empty()) fail(Exit::usage, "--group and --writer: several writers need both");
  if (!raw.writer.empty()) {
    const std::size_t slash = raw.writer.find('/');
    if (slash == std::string::npos)
      fail(Exit::usage, fmt::format("--writer {}: write it as I/N, such as 0/4", raw.writer));
    out.writer = static_cast<std::uint32_t>(parse_count(raw.writer.substr(0, slash), "--writer", 65535));
    out.writers = static_cast<std::uint32_t>(parse_count(raw.writer.substr(slash + 1), "--writer", 65536));
    if (out.writer >= out.writers) fail(Exit::usage, fmt::format("--writer {}: I must be below N", raw.writer));
    if (out.writers > 1 && raw.dry_run) fail(Exit::usage, "--dry-run: not with several writers");
  }
}

}  // namespace

void define_checkpoint(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = *program.add_subcommand("checkpoint", "a crash-safe store of training checkpoints");
  verb.require_subcommand(1);
  define_save(verb, raw);
  define_load(verb, raw);
  define_export(verb, raw);
  define_bench(verb, raw);
  define_reading(verb, raw);
  define_changing(verb, raw);
  define_tiers(verb, raw);
  define_place(verb, raw);
  define_keeper(verb, raw);
  verb.footer("'quern checkpoint WORK --help' has options and examples.");
}

void read_checkpoint(const RawArgs& raw, const CLI::App& verb, const RunArgs& run, CheckpointArgs& out) {
  static constexpr std::pair<const char*, CheckpointWork> kWorks[] = {{"save", CheckpointWork::save},
                                                                      {"load", CheckpointWork::load},
                                                                      {"ls", CheckpointWork::ls},
                                                                      {"info", CheckpointWork::info},
                                                                      {"diff", CheckpointWork::diff},
                                                                      {"verify", CheckpointWork::verify},
                                                                      {"repair", CheckpointWork::repair},
                                                                      {"compact", CheckpointWork::compact},
                                                                      {"gc", CheckpointWork::gc},
                                                                      {"convert", CheckpointWork::convert},
                                                                      {"export", CheckpointWork::export_model},
                                                                      {"bench", CheckpointWork::bench},
                                                                      {"tiers", CheckpointWork::tiers},
                                                                      {"place", CheckpointWork::place},
                                                                      {"keeper", CheckpointWork::keeper}};
  for (const auto& [name, work] : kWorks)
    if (verb.get_name() == name) out.work = work;
  out.inputs = raw.files;
  out.store = raw.store;
  const bool needs_store = out.work != CheckpointWork::convert && out.work != CheckpointWork::place;
  if (out.store.empty() && needs_store) fail(Exit::usage, "--store: the folder's name is empty");
  while (out.store.size() > 1 && out.store.back() == '/') out.store.pop_back();
  if (!raw.step.empty() && out.work != CheckpointWork::bench) out.step = parse_count(raw.step, "--step", kMaxStep);
  out.base_newest = raw.base == "newest";
  if (!raw.base.empty() && !out.base_newest) out.base = parse_count(raw.base, "--base", kMaxStep);
  for (const std::string& text : raw.steps)
    out.steps.push_back(parse_count(text, out.work == CheckpointWork::diff ? "diff" : "--remove", kMaxStep));
  read_parity(raw.parity, out);
  if (out.work == CheckpointWork::save) read_save(raw, out);
  if (out.work == CheckpointWork::bench) read_bench(raw, out);
  out.tiers = raw.tiers;
  for (std::string& tier : out.tiers) {
    while (tier.size() > 1 && tier.back() == '/') tier.pop_back();
    if (tier.empty() || tier == out.store) fail(Exit::usage, "--tier: a folder other than that of the store");
  }
  if (out.work == CheckpointWork::tiers) read_tiers(raw, out);
  if (out.work == CheckpointWork::place) read_place(raw, out);
  if (out.work == CheckpointWork::keeper) read_keeper(raw, out);
  if (!raw.keep.empty()) out.keep = static_cast<std::size_t>(parse_count(raw.keep, "--keep", 1'000'000'000));
  if (out.keep && *out.keep == 0) fail(Exit::usage, "--keep 0: would remove everything; keep at least 1");
  if (!raw.keep_every.empty()) out.keep_every = parse_count(raw.keep_every, "--keep-every", kMaxStep);
  if (!raw.keep_every.empty() && out.keep_every == 0) fail(Exit::usage, "--keep-every 0: give a number above 0");
  if (!raw.keep_best.empty()) read_best(raw.keep_best, out);
  out.replace = raw.replace;
  if (!raw.shard_size.empty()) out.shard_bytes = parse_size(raw.shard_size, "--shard-size");
  out.tensors = raw.tensors;
  out.hf = raw.hf;
  out.strip = raw.strip;
  out.dtype = raw.dtype;
  if (!out.dtype.empty() && out.dtype != "bf16" && out.dtype != "f16" && out.dtype != "f32")
    fail(Exit::usage, fmt::format("--dtype {}: use bf16, f16 or f32, or leave it out to keep the types", out.dtype));
  if (out.work == CheckpointWork::export_model && out.hf.empty()) fail(Exit::usage, "--hf: the folder's name is empty");
  out.slice = raw.slice;
  out.dry_run = raw.dry_run;
  out.full = raw.full;
  out.output = raw.output;
  out.force = raw.force;
  out.run = run;
}

}  // namespace quern::cli

// Every verb, option, description and example of the command.
#include "cli/args/help_text.h"
#include "cli/args/options.h"
#include "cli/args/raw_args.h"

#ifndef QUERN_VERSION
#error "QUERN_VERSION is defined by the build"
#endif

namespace quern::cli {
namespace {

void add_data(CLI::App& verb, RawArgs& raw, bool with_fill) {
  add_value(verb, "-t,--type", raw.type, "TYPE", "element type: f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64");
  add_value(verb, "-s,--shape", raw.shape, "SHAPE", "extents, slowest axis first, as in 50x100x100");
  if (with_fill)
    add_repeatable(verb, "--fill", raw.fills, "VALUE", "value that marks missing data, kept exactly; repeatable");
  add_repeatable(verb, "--dataset", raw.datasets, "NAME",
                 "HDF5 path or netCDF variable; repeatable where it makes sense; compress: '*' is all of them");
  add_value(verb, "--skip", raw.skip, "BYTES", "raw files: bytes before the data");
  verb.add_flag("--big-endian", raw.big_endian, "raw files: elements are big-endian");
  add_value(verb, "--order", raw.order, "C|F", "raw files: C (shape slowest first) or F (shape fastest first)");
}

void add_strict(CLI::App& verb, RawArgs& raw) {
  verb.add_flag("--strict-input", raw.strict_input,
                "stop when values look like an undeclared fill value, another byte order or another type");
}

void add_run(CLI::App& verb, RawArgs& raw) {
  add_value(verb, "-T,--threads", raw.threads, "N", "threads; 0 = all [1]");
  add_value(verb, "--memory", raw.memory, "SIZE", "upper limit of memory, such as 512M or 4G [3/4 of the machine's]");
  add_value(verb, "--device", raw.device, "DEVICE", "auto, cpu, cuda or cuda:N [cpu]");
  add_value(verb, "--progress", raw.progress, "WHEN", "auto (on a terminal), always or never [auto]");
  verb.add_flag("-q,--quiet", raw.quiet, "only errors");
  verb.add_flag("-v,--verbose", raw.verbose, "more detail");
  verb.add_flag("--json", raw.json, "one JSON object a file on standard output");
}

/// Options of verbs that encode or decode, for codecs that are trained.
void add_models(CLI::App& verb, RawArgs& raw, const char* description) {
  add_value(verb, "--model", raw.model, "FILE", description);
  add_repeatable(verb, "--model-store", raw.model_stores, "DIR", "a folder of models, .qmodel files; repeatable");
}

void add_output(CLI::App& verb, RawArgs& raw, const char* description) {
  add_value(verb, "-o,--output", raw.output, "OUT", description);
  verb.add_flag("-c,--stdout", raw.to_stdout, "write to standard output, as -o -");
  verb.add_flag("-f,--force", raw.force, "replace existing files; allow binary data on a terminal");
  verb.add_flag("-k,--keep", raw.keep_input, "keep the inputs, as is done anyway without --rm");
  verb.add_flag("--rm", raw.remove, "remove each input after it was written successfully");
}

/// Options of verbs that take many files, which then need no file on the command line.
void add_many(CLI::App& verb, RawArgs& raw, const char* taken) {
  verb.get_option("IN")->required(false);
  verb.add_flag("-r,--recursive", raw.recursive,
                std::string("folders among IN stand for ") + taken + "; below OUT, folders are made like them");
  add_value(verb, "--files-from", raw.files_from, "LIST",
            "also the files named in LIST, one a line or as from find -print0; - is standard input");
  verb.add_flag("--skip-existing", raw.skip_existing, "leave files alone whose output exists");
}

void add_codec(CLI::App& verb, RawArgs& raw) {
  add_value(verb, "--goal", raw.goal, "GOAL",
            "ratio: the smallest stream of all codecs; psnr: most quality for its size; speed: fast codecs only; of a "
            "codec that is named, its fast choices [ratio]");
  add_value(verb, "--effort", raw.effort, "N",
            "1 to 9: how much time the search for a small stream may take; --goal speed is 1 [6]");
  add_repeatable(verb, "--set", raw.settings, "KEY=VALUE", "setting of the codec; repeatable");
  verb.add_flag("--no-mask-search", raw.no_mask_search, "do not look for repeated values worth masking");
}

/// Bounds that follow from the values.
template <class Group>
void add_precision(Group& bound, RawArgs& raw) {
  add_value(bound, "--digits", raw.digits, "N", "N significant digits of every value: --pwrel 5e-(N+1), or --abs");
  add_value(bound, "--information", raw.information, "SHARE",
            "as many bits of the mantissa as have that share of the real information, as in 0.99");
}

void define_compress(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = add_verb(program, raw, "compress", "compress arrays under an error bound", "IN",
                            "raw, .npy, .h5 or .nc files; - is standard input");
  CLI::Option_group& bound = *verb.add_option_group("bound", "exactly one");
  add_value(bound, "--abs", raw.abs, "E", "|x - x'| <= E");
  add_value(bound, "--rel", raw.rel, "R", "|x - x'| <= R * (max - min) over valid values");
  add_value(bound, "--pwrel", raw.pwrel, "R", "|x - x'| <= R * |x|");
  add_value(bound, "--psnr", raw.psnr, "DB",
            "PSNR at least DB and little more; the bound is searched, the outcome measured");
  add_value(bound, "--ratio", raw.ratio, "X",
            "compression ratio at least X and little more, smallest bound found by search");
  add_precision(bound, raw);
  bound.add_flag("--lossless", raw.lossless, "every bit comes back");
  add_value(verb, "--bounds", raw.bounds, "FILE",
            "lines 'variable kind value' for the variables of an HDF5 or netCDF file; a bound option beside it "
            "is for the variables not listed, which are skipped otherwise");
  add_data(verb, raw, true);
  add_strict(verb, raw);
  add_value(verb, "--range", raw.range, "MIN:MAX", "range of valid values, for --rel and --psnr");
  add_value(verb, "--codec", raw.codec, "NAME", "see quern list codecs [auto]");
  add_codec(verb, raw);
  add_many(
      verb, raw,
      "their .npy, .h5 and .nc files and raw files whose names tell type and shape (with -t and -s: whose size fits)");
  add_output(verb, raw, "output file, directory (several outputs) or - [IN.qn]");
  verb.add_flag("--append", raw.append, "add each input as a time step to OUT");
  add_value(
      verb, "--key-every", raw.key_every, "K",
      "with --append: steps may be predicted from the one before, but at least each K-th stands alone; 1: all do [16]");
  verb.add_flag("--explain", raw.explain, "also say what was expected of each codec, and how often it was run");
  add_value(verb, "--calibration", raw.calibration, "FILE",
            "append estimated and measured ratio, for quern estimate --calibration; no stream changes [off]");
  verb.add_flag("--verify", raw.verify,
                "decode again and check every element before OUT appears; --verify=fault: only check that no fault of "
                "the machine changed what is stored, chunk by chunk, with --codec lorenzo");
  add_models(verb, raw,
             "a model that quern train made: of train autoencoder for --codec autoencoder, of train superres for "
             "--codec stencil");
  add_run(verb, raw);
  verb.footer(
      "Examples:\n"
      "  quern compress --rel 1e-3 temperature_50x100x100.f32\n"
      "  quern compress --abs 0.01 -t f32 -s 50x100x100 --fill -9999 --verify in.raw -o out.qn\n"
      "  quern compress --psnr 60 temperature_50x100x100.f32\n"
      "  quern compress --ratio 50 --codec stencil temperature_50x100x100.f32\n"
      "  quern compress --information 0.99 --explain temperature_50x100x100.f32\n"
      "  quern compress --rel 1e-3 --goal speed -T 0 huge_1000x1000x1000.f32\n"
      "  quern compress --bounds bounds.txt --lossless model.nc -o compressed/\n"
      "  quern compress --rel 1e-3 --dataset '*' model.nc -o compressed/\n"
      "  simulate | quern compress --abs 1e-6 -t f64 -s 512x512x512 - -o field.qn\n"
      "  quern compress --append --rel 1e-4 step_*.npy -o run.qn\n"
      "  quern compress --rel 1e-4 -r run/ -o small/ -T 0 --skip-existing\n"
      "  find run -name '*.nc' -print0 | quern compress --rel 1e-4 --dataset tas --files-from - -o tas/\n");
}

void define_decompress(CLI::App& program, RawArgs& raw) {
  CLI::App& verb =
      add_verb(program, raw, "decompress", "bring arrays back", "IN", "quern streams; - is standard input");
  add_value(verb, "--step", raw.step, "K", "decode step K of a file of several, the first being 0 [all]");
  add_value(verb, "--region", raw.region, "A:B,...", "decode a part, one a:b an axis, as in 0:10,5:9,:");
  add_value(verb, "--level", raw.level, "K",
            "coarse preview: every 2^K-th place of the axes, of streams with levels; 0 is all");
  verb.add_flag("--keep-going", raw.keep_going, "save what a damaged stream still holds; the rest is filled");
  verb.add_flag("--verify", raw.verify,
                "--verify=fault: check that no hardware fault changed what is decoded (codec lorenzo)");
  add_many(verb, raw, "their .qn files");
  add_output(verb, raw, "output file (.npy .h5 .nc by extension, else raw), directory or - [IN without .qn]");
  add_models(verb, raw, "the model of streams that do not hold theirs");
  add_run(verb, raw);
  verb.footer(
      "quern info says which levels a stream has and their shapes; a region counts places of the level. "
      "Raw output has the machine's byte order. Several inputs with one .h5 or .nc output make one file of many "
      "arrays.\n"
      "Examples:\n"
      "  quern decompress field.qn\n"
      "  quern decompress field.qn -o field.npy\n"
      "  quern decompress --region 0:10,:,5 field.qn -o part.raw\n"
      "  quern decompress --step 1 run.qn -o step.npy\n"
      "  quern decompress --level 2 field.qn -o preview.npy\n"
      "  quern decompress -c field.qn | analyse\n"
      "  quern decompress -r small/ -o back/ -T 0\n");
}

void define_info(CLI::App& program, RawArgs& raw) {
  CLI::App& verb =
      add_verb(program, raw, "info", "say what streams hold, without decoding them", "IN", "quern streams");
  verb.add_flag("--check", raw.check, "also read everything and verify all checksums");
  verb.add_flag("--headers-only", raw.headers_only, "do not read the masks of special values");
  add_models(verb, raw, "the model of streams that do not hold theirs");
  add_run(verb, raw);
  verb.footer("Examples:\n  quern info field.qn\n  quern info --check --json run.qn\n");
}

void define_verify(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = add_verb(program, raw, "verify", "check a stream against the original, element by element", "FILES",
                            "ORIGINAL IN: the original array and its stream; IN alone where it holds records");
  add_data(verb, raw, false);
  add_models(verb, raw, "the model of streams that do not hold theirs");
  add_run(verb, raw);
  verb.footer(
      "Exit code 4 when an element misses the bound or a special value was lost. A stream of records has no original:\n"
      "its checksums and its structure are checked.\n"
      "Examples:\n  quern verify field_50x100x100.f32 field.qn\n  quern verify model.nc --dataset tas tas.qn --json\n"
      "  quern verify scan.qn\n");
}

void define_compare(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = add_verb(program, raw, "compare", "measure how far array B is from array A", "FILES",
                            "A B: the original and the reconstruction");
  add_data(verb, raw, true);
  add_strict(verb, raw);
  add_value(verb, "--html", raw.html, "FILE", "also write a report with pictures");
  verb.add_flag("-f,--force", raw.force, "replace an existing report");
  add_run(verb, raw);
  verb.footer(
      "Examples:\n  quern compare -t f32 -s 50x100x100 a.raw b.raw\n  quern compare a.npy b.npy --html report.html\n");
}

/// The first two names, as somebody would give them.
std::string some_codecs(const std::vector<std::string>& codecs) {
  std::string out;
  for (std::size_t i = 0; i < codecs.size() && i < 2; ++i) out += (i == 0 ? "" : ",") + codecs[i];
  return out;
}

void define_bench(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = add_verb(program, raw, "bench", "ratio, quality and speed of codecs on your data", "IN", "arrays");
  add_repeatable(verb, "--codec", raw.codec_list, "NAMES",
                 "codecs, as in " + some_codecs(raw.codecs) + "; repeatable [all]");
  add_repeatable(verb, "--rel", raw.rel_list, "LIST", "relative bounds, as in 1e-2,1e-3; repeatable [1e-2,1e-3,1e-4]");
  add_value(verb, "--repeats", raw.repeats, "N", "runs of which the median is reported [5]");
  verb.add_flag("--sweep", raw.sweep,
                "append each run to a CSV file, for quern train quality; runs there are not made again");
  add_value(verb, "--csv", raw.csv, "FILE", "the file for --sweep");
  add_repeatable(verb, "--peer", raw.peers, "TEMPLATE",
                 "another compressor for --sweep: sz3, zfp, sperr, qoz, or 'name=NAME: COMPRESS ;; DECOMPRESS' with "
                 "{input} {stream} {output} {bound} {type} {shape} {dims} (quern(1)); repeatable");
  add_codec(verb, raw);
  add_data(verb, raw, true);
  add_strict(verb, raw);
  add_run(verb, raw);
  verb.footer(
      "Examples:\n  quern bench temperature_50x100x100.f32\n  quern bench --codec lorenzo --rel 1e-3 -T 0 --json "
      "*.npy\n");
}

void define_estimate(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = add_verb(program, raw, "estimate", "say what compressing would give, without compressing", "IN",
                            "raw, .npy, .h5 or .nc files; of the last two all fields, unless --dataset names some");
  add_repeatable(verb, "--at", raw.at_list, "LIST", "relative bounds, as in 1e-2,1e-3 [1e-2,1e-3,1e-4]");
  add_repeatable(verb, "--at-abs", raw.at_abs_list, "LIST", "absolute bounds in their place");
  add_precision(verb, raw);
  add_repeatable(verb, "--codec", raw.codec_list, "NAMES", "codecs, as in " + some_codecs(raw.codecs) + " [all]");
  add_value(verb, "--model", raw.model, "FILE", "a model that quern train quality made [the one that ships]");
  add_value(verb, "--calibration", raw.calibration, "FILE",
            "correct ratios by the compressions that quern compress --calibration recorded");
  add_value(
      verb, "--features", raw.features, "WHAT",
      "deep: also what a network makes of patches of the array; counts: counts of residuals alone [as the model]");
  add_value(verb, "--html", raw.html, "FILE", "also write a report with pictures");
  verb.add_flag("-f,--force", raw.force, "replace an existing report");
  add_data(verb, raw, true);
  add_strict(verb, raw);
  add_run(verb, raw);
  verb.footer(
      "Each number stands with the interval that held the truth in about four of five cases in the training.\n"
      "Examples:\n  quern estimate temperature_50x100x100.f32\n  quern estimate --at 1e-2,1e-3,1e-4 --json "
      "temperature_50x100x100.f32\n  quern estimate --at-abs 0.01 -t f32 -s 50x100x100 in.raw --html report.html\n");
}

void define_models(CLI::App& program, RawArgs& raw) {
  CLI::App& model = *program.add_subcommand(
      "model", "look at models: of estimates, and of codecs that are trained; put them into streams");
  model.add_option("WHAT", raw.what, "info, verify, list, strip or embed")
      ->required()
      ->type_name("info|verify|list|strip|embed");
  model
      .add_option(
          "FILE", raw.files,
          "a model file [the one that ships]; list: a folder of them; strip: a model or a stream; embed: a stream")
      ->type_name("");
  add_value(model, "-o,--output", raw.output, "OUT", "strip, embed: the new file");
  add_value(model, "--model", raw.model, "FILE", "embed: the model of the stream");
  add_repeatable(model, "--model-store", raw.model_stores, "DIR",
                 "embed: a folder of models; strip: the folder that the model of a stream goes to");
  model.add_flag("-f,--force", raw.force, "replace an existing file");
  model.add_flag("--json", raw.json, "one JSON object");
  model.footer(
      "strip leaves what decoding takes of a model: no encoders, no record. Its id stays the same. Of a stream it "
      "takes\n"
      "the model out. embed puts the model into a stream, whose chunks stay as they are.\n"
      "Examples:\n  quern model info\n  quern model verify\n  quern model list\n"
      "  quern model embed u.qn --model u.qmodel -o whole.qn\n"
      "  quern model strip whole.qn --model-store models -o small.qn\n");

  CLI::App& train = *program.add_subcommand(
      "train", "make a model: of quality from runs of quern bench --sweep, of blocks or of fine detail from arrays");
  train.add_option("WHAT", raw.what, "quality, autoencoder or superres")
      ->required()
      ->type_name("quality|autoencoder|superres");
  add_value(train, "--runs", raw.runs, "FILE", "quality: the CSV file of the runs");
  train
      .add_option("--data", raw.training.data,
                  "autoencoder, superres, deep features: .npy files, or raw files whose names tell type and shape; "
                  "repeatable")
      ->type_name("FILE");
  add_value(train, "-o,--output", raw.output, "MODEL", "the new model");
  add_value(train, "--seed", raw.seed, "N", "of the first weights and of the noise [1]");
  add_value(train, "--epochs", raw.epochs, "N", "passes over the runs [500]");
  add_value(train, "--deep-epochs", raw.deep_epochs, "N",
            "quality: passes over the runs of networks with deep features [those of --epochs]");
  add_value(train, "--experts", raw.experts, "N", "networks that a gate weighs by what the array is like [1]");
  add_value(train, "--hidden", raw.hidden, "N", "quality: outputs of each hidden layer [64]");
  add_value(train, "--features", raw.features, "WHAT",
            "quality: deep: also networks that see patches of the arrays, which --data names; usually-deep: and "
            "estimates take them unless told otherwise [counts]");
  add_value(train, "--without", raw.without, "PART",
            "levels or hidden: leave out inputs of coarse levels, or the hidden layers, to see what they give");
  add_value(train, "--rows", raw.rows, "FILE", "also write each later run beside what was predicted, as CSV");
  add_value(train, "--test", raw.test, "MODEL", "train nothing: the errors of a model on the later runs");
  train.add_flag("--families", raw.families, "no model: the errors on each family of names that is left out");
  add_value(train, "--block", raw.training.block, "SHAPE", "autoencoder: 8x8x8, 16x16x16, 16x16 or 32x32 [8x8x8]");
  add_value(train, "--latents", raw.training.latents, "N", "autoencoder: numbers that it describes a block by [16]");
  add_value(train, "--components", raw.training.components, "N", "autoencoder: principal components beside it [32]");
  add_value(train, "--profile", raw.training.profile, "NAME",
            "autoencoder: tiny, slim or paper: 8, 16 or 32 channels; linear: principal components alone [tiny]; "
            "superres: tiny, slim or paper: 12, 24 or 48 outputs of the first layer [slim]");
  add_value(train, "--bound", raw.training.bound, "R", "superres: the bound, over the range, that it is for [0.01]");
  add_value(train, "--time-budget", raw.training.time_budget, "SECONDS",
            "autoencoder, superres: how long to train [60]");
  add_value(train, "--steps", raw.training.steps, "N",
            "autoencoder, superres: train so many steps (of each network), whatever the time");
  train.add_flag("--keep", raw.training.keep, "autoencoder: keep the network, even where it does not pay");
  train.add_flag("-f,--force", raw.force, "replace an existing model, or file of rows");
  train.footer(
      "Early steps of a series train, later ones test (NAME_t0001_..., NAME_t0002_...): of data, the last quarter of "
      "the\n"
      "files in the order given; of one file, the last quarter of its first axis.\n"
      "Examples:\n  quern train quality --runs runs.csv -o my.qmodel\n"
      "  quern train autoencoder --data u_t1_96x96x96.f32 u_t2_96x96x96.f32 -o u.qmodel\n"
      "  quern train superres --data u_t1_96x96x96.f32 u_t2_96x96x96.f32 -o fine.qmodel\n");
}

void define_h5(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = *program.add_subcommand("h5", "quern as a filter inside HDF5 and netCDF-4 files");
  verb.add_option("WHAT", raw.what, "args (print the filter's settings), pack, unpack or check")
      ->required()
      ->type_name("args|pack|unpack|check");
  verb.add_option("IN", raw.files, "HDF5 or netCDF-4 file, for all but args")->type_name("");
  CLI::Option_group& bound = *verb.add_option_group("bound", "one, for args and pack");
  add_value(bound, "--abs", raw.abs, "E", "|x - x'| <= E, in physical units where a dataset has a scale_factor");
  add_value(bound, "--rel", raw.rel, "R", "pack: |x - x'| <= R * (max - min) over each dataset's valid values");
  add_value(bound, "--pwrel", raw.pwrel, "R", "|x - x'| <= R * |x|");
  add_value(bound, "--psnr", raw.psnr, "DB", "pack: the absolute bound that gives each dataset about this PSNR");
  add_value(bound, "--ratio", raw.ratio, "X", "pack: the absolute bound that gives each dataset about this ratio");
  add_precision(bound, raw);
  bound.add_flag("--lossless", raw.lossless, "every bit comes back");
  add_value(bound, "--total-size", raw.total_size, "SIZE",
            "pack: the highest PSNR, the same for all datasets, with which the file fits, such as 200M");
  add_value(verb, "--psnr-floor", raw.psnr_floor, "DB", "with --total-size: fail rather than fall below this PSNR [0]");
  add_repeatable(verb, "--bound", raw.variable_bounds, "NAME=KIND:VALUE",
                 "pack: bound of one dataset, as in tas=abs:0.01, pr=rel:1e-4 or mask=lossless; repeatable");
  add_value(verb, "--bounds", raw.bounds, "FILE", "pack: lines 'dataset kind value'");
  add_repeatable(verb, "--dataset", raw.datasets, "NAME",
                 "pack, unpack, check: only this one; repeatable [pack: fields: floating-point or scaled numbers, 1024 "
                 "or more, that are no coordinates, bounds or flags]");
  add_value(verb, "--codec", raw.codec, "NAME", "see quern list codecs [auto]");
  add_value(verb, "--goal", raw.goal, "GOAL", "ratio, psnr or speed [ratio]");
  add_value(verb, "--effort", raw.effort, "N", "1 (fast) to 9 (small) [6]");
  verb.add_flag("--no-mask-search", raw.no_mask_search, "do not look for repeated values worth masking");
  verb.add_flag("--rechunk", raw.rechunk, "pack: merge small chunks into ones of 1 to 4 MiB");
  verb.add_flag("--rewritable", raw.rewritable,
                "pack: chunks that stay small when the file is appended to, changed or copied by nccopy");
  verb.add_flag("--again", raw.again, "pack: datasets that are packed already, too; the bounds add up");
  verb.add_flag("--optional", raw.optional, "args: let datasets that quern cannot take be stored without it");
  add_value(verb, "-o,--output", raw.output, "OUT", "pack, unpack: the new file");
  verb.add_flag("-f,--force", raw.force, "replace an existing file");
  add_value(verb, "-T,--threads", raw.threads, "N", "threads; 0 = all [1]");
  add_value(verb, "--memory", raw.memory, "SIZE", "upper limit of memory, such as 512M or 4G [3/4 of the machine's]");
  add_value(verb, "--progress", raw.progress, "WHEN", "auto (on a terminal), always or never [auto]");
  verb.add_flag("-q,--quiet", raw.quiet, "only errors");
  verb.add_flag("-v,--verbose", raw.verbose, "more detail");
  verb.add_flag("--json", raw.json, "one JSON object on standard output");
  verb.footer(
      "pack and unpack copy all else as it is stored: groups, links, attributes, chunks of other datasets.\n"
      "Examples:\n"
      "  quern h5 pack --rel 1e-4 model.nc -o small.nc\n"
      "  quern h5 pack --bound tas=abs:0.01 --bound pr=rel:1e-3 model.nc -o small.nc\n"
      "  quern h5 pack --total-size 100K --psnr-floor 40 model.nc -o small.nc\n"
      "  quern h5 check small.nc\n"
      "  h5repack -f \"temperature:$(quern h5 args --abs 0.01)\" in.h5 out.h5\n");
}

void define_small_verbs(CLI::App& program, RawArgs& raw) {
  CLI::App& list = *program.add_subcommand("list", "list codecs or devices");
  list.add_flag("--json", raw.json, "one JSON object a line");
  list.add_option("WHAT", raw.what, "codecs or devices")->required()->type_name("codecs|devices");
  list.footer("Examples:\n  quern list codecs\n  quern list devices --json\n");

  CLI::App& doctor = *program.add_subcommand("doctor", "say what this build and this machine can do");
  doctor.add_flag("--json", raw.json, "one JSON object");
  doctor.footer("Example:\n  quern doctor\n");

  CLI::App& completion = *program.add_subcommand("completion", "print a completion script for a shell");
  completion.add_option("SHELL", raw.what, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  completion.footer(
      "Examples:\n  quern completion bash > ~/.local/share/bash-completion/completions/quern\n"
      "  quern completion fish > ~/.config/fish/completions/quern.fish\n");
}

}  // namespace

std::unique_ptr<CLI::App> define_program(RawArgs& raw) {
  auto program = std::make_unique<CLI::App>("error-bounded compression of scientific arrays", "quern");
  program->formatter(help_formatter());
  program->set_version_flag("-V,--version", "quern " QUERN_VERSION);
  program->require_subcommand(1);
  define_compress(*program, raw);
  define_decompress(*program, raw);
  define_info(*program, raw);
  define_verify(*program, raw);
  define_compare(*program, raw);
  define_bench(*program, raw);
  define_estimate(*program, raw);
  define_models(*program, raw);
  define_h5(*program, raw);
  define_checkpoint(*program, raw);
  define_lidar(*program, raw);
  define_offload(*program, raw);
  define_small_verbs(*program, raw);
  program->footer(
      "Exit codes: 0 ok, 1 usage, 2 input or output, 3 bad stream, 4 bound or target not met, 5 device or memory,\n"
      "130 interrupted. 'quern help VERB' has options and examples.");
  return program;
}

}  // namespace quern::cli

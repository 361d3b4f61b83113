// From the command line's texts to typed requests: what cannot be meant is refused here, before any file is touched.
#include "cli/args/args.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/advice.h"
#include "cli/args/exit_codes.h"
#include "cli/args/help_text.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

constexpr std::size_t kMaxThreads = 4096;
constexpr std::uint64_t kMostLevel = 63;
constexpr std::uint64_t kMaxSkip = UINT64_C(1) << 62;

/// The one bound given, or nothing; two are refused.
std::optional<ErrorBound> read_bound(const RawArgs& raw, const CLI::App& verb) {
  struct Candidate {
    const char* option;
    BoundKind kind;
    const std::string* text;
  };
  const Candidate candidates[] = {{"--abs", BoundKind::abs, &raw.abs},
                                  {"--rel", BoundKind::rel, &raw.rel},
                                  {"--pwrel", BoundKind::pwrel, &raw.pwrel},
                                  {"--psnr", BoundKind::psnr, &raw.psnr},
                                  {"--ratio", BoundKind::ratio, &raw.ratio}};
  std::optional<ErrorBound> bound;
  const char* first = nullptr;
  const auto accept = [&](const char* option, ErrorBound value) {
    if (first != nullptr)
      fail(Exit::usage,
           fmt::format("{} and {}: give exactly one of --abs --rel --pwrel --psnr --ratio --digits --information "
                       "--lossless",
                       first, option));
    first = option;
    bound = value;
  };
  for (const Candidate& candidate : candidates) {
    const CLI::Option* option = verb.get_option_no_throw(candidate.option);  // not every verb has all of them
    if (option != nullptr && option->count() != 0)
      accept(candidate.option, parse_bound(candidate.kind, *candidate.text, candidate.option));
  }
  if (raw.lossless) accept("--lossless", {BoundKind::lossless, 0.0});
  // What stands here until the array is known is as tight as such a bound can be.
  constexpr double kUnknown = 0x1p-53;
  for (const auto& [option, text] : {std::pair{"--digits", &raw.digits}, std::pair{"--information", &raw.information}})
    if (!text->empty()) accept(option, {BoundKind::pwrel, kUnknown});
  if (bound && bound->kind == BoundKind::pwrel && bound->value >= 1)
    fail(Exit::usage, fmt::format("--pwrel {}: must be below 1", raw.pwrel));
  if (bound && bound->kind == BoundKind::ratio && bound->value < 1)
    fail(Exit::usage, fmt::format("--ratio {}: must be at least 1", raw.ratio));
  return bound;
}

std::optional<PrecisionArgs> read_precision(const RawArgs& raw) {
  constexpr std::uint64_t kMostDigits = 17;
  if (!raw.digits.empty()) {
    const std::uint64_t digits = parse_count(raw.digits, "--digits", kMostDigits);
    if (digits == 0) fail(Exit::usage, "--digits 0: give 1 to 17 significant digits");
    return PrecisionArgs{false, static_cast<double>(digits)};
  }
  if (raw.information.empty()) return std::nullopt;
  const double share = parse_real(raw.information, "--information");
  if (!(share > 0) || !(share < 1))
    fail(Exit::usage, fmt::format("--information {}: give a share above 0 and below 1, such as 0.99", raw.information));
  return PrecisionArgs{true, share};
}

DataArgs read_data(const RawArgs& raw) {
  DataArgs data;
  if (!raw.type.empty()) {
    data.dtype = parse_type(raw.type);
    if (!data.dtype)
      fail(Exit::usage, fmt::format("-t {}: unknown type; use f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64, or names "
                                    "such as float32, double, int16",
                                    raw.type));
  }
  if (!raw.shape.empty()) {
    if (const std::string advice = stray_extent(raw.shape, raw.files); !advice.empty()) fail(Exit::usage, advice);
    std::string extents = raw.shape;
    std::replace(extents.begin(), extents.end(), ',', 'x');
    auto shape = Shape::parse(extents);
    if (!shape.ok()) fail(Exit::usage, fmt::format("-s {}: {}", raw.shape, shape.status().text()));
    data.shape = shape.value();
  }
  data.fills = raw.fills;
  // A value that is no number for any type is refused now, not after the first file was opened.
  for (const std::string& fill : data.fills) (void)parse_fill(fill, data.dtype.value_or(DType::f64));
  data.datasets = raw.datasets;
  if (!raw.skip.empty()) data.skip_bytes = parse_count(raw.skip, "--skip", kMaxSkip);
  data.big_endian = raw.big_endian;
  data.strict_input = raw.strict_input;
  if (!raw.order.empty() && raw.order != "C" && raw.order != "F")
    fail(Exit::usage, fmt::format("--order {}: use C (slowest axis first) or F (fastest axis first)", raw.order));
  data.column_major = raw.order == "F";
  return data;
}

void read_device(const std::string& text, RunArgs& run) {
  if (text == "auto") {
    run.device = DeviceKind::automatic;
  } else if (text == "cpu") {
    run.device = DeviceKind::cpu;
  } else if (text == "cuda") {
    run.device = DeviceKind::cuda;
  } else if (text.starts_with("cuda:")) {
    run.device = DeviceKind::cuda;
    run.device_index = static_cast<unsigned>(parse_count(text.substr(5), "--device cuda:", 255));
  } else {
    fail(Exit::usage, fmt::format("--device {}: use auto, cpu, cuda or cuda:N", text));
  }
}

/// --model and --model-store of verbs that encode or decode.
ModelArguments read_models(const RawArgs& raw) { return {raw.model, raw.model_stores}; }

RunArgs read_run(const RawArgs& raw) {
  RunArgs run;
  if (!raw.device.empty()) read_device(raw.device, run);
  if (!raw.threads.empty()) run.threads = parse_count(raw.threads, "-T", kMaxThreads);
  if (!raw.memory.empty()) run.memory = parse_size(raw.memory, "--memory");
  if (!raw.progress.empty()) {
    if (raw.progress == "always") {
      run.progress = ProgressMode::always;
    } else if (raw.progress == "never") {
      run.progress = ProgressMode::never;
    } else if (raw.progress != "auto") {
      fail(Exit::usage, fmt::format("--progress {}: use auto, always or never", raw.progress));
    }
  }
  run.quiet = raw.quiet;
  run.verbose = raw.verbose;
  run.json = raw.json;
  return run;
}

OutputArgs read_output(const RawArgs& raw, const CLI::App& verb) {
  OutputArgs output;
  if (verb.count("--output") != 0 && raw.output.empty()) fail(Exit::usage, "-o: the output's name is empty");
  if (raw.to_stdout && !raw.output.empty() && raw.output != "-")
    fail(Exit::usage, fmt::format("-c and -o {}: give one of them", raw.output));
  output.path = raw.to_stdout ? "-" : raw.output;
  output.force = raw.force;
  output.remove_input = raw.remove;
  if (raw.keep_input && raw.remove) fail(Exit::usage, "-k and --rm: give one of them");
  if (output.remove_input && output.path == "-")
    fail(Exit::usage, "--rm: not with standard output, whose reader may fail after the input is gone");
  return output;
}

CodecArgs read_codec(const RawArgs& raw) {
  CodecArgs codec;
  if (!raw.codec.empty()) codec.codec = raw.codec;
  if (!raw.goal.empty()) codec.goal = raw.goal;
  if (codec.goal != "ratio" && codec.goal != "psnr" && codec.goal != "speed")
    fail(Exit::usage, fmt::format("--goal {}: use ratio, psnr or speed", codec.goal));
  if (!raw.effort.empty()) {
    if (raw.effort.size() != 1 || raw.effort[0] < '1' || raw.effort[0] > '9')
      fail(Exit::usage, fmt::format("--effort {}: give a number from 1 (fast) to 9 (small)", raw.effort));
    codec.effort = static_cast<unsigned>(raw.effort[0] - '0');
    if (codec.goal == "speed" && codec.effort > 1)
      fail(Exit::usage, fmt::format("--effort {}: not with --goal speed, which is --effort 1", raw.effort));
  }
  for (const std::string& text : raw.settings) {
    auto setting = parse_setting(text);
    if (setting.first != "idempotent") {
      codec.settings.push_back(std::move(setting));
      continue;
    }
    if (setting.second != "0" && setting.second != "1") fail(Exit::usage, "--set idempotent: give 0 or 1");
    codec.idempotent = setting.second == "1";
  }
  codec.find_repeated = !raw.no_mask_search;
  return codec;
}

void refuse_empty_names(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (file.empty()) fail(Exit::usage, "a file's name is empty");
  if (const std::string advice = no_levels(files); !advice.empty()) fail(Exit::usage, advice);
  if (std::count(files.begin(), files.end(), "-") > 1) fail(Exit::usage, "-: standard input can be read only once");
}

ManyArgs read_many(const RawArgs& raw, const CLI::App& verb) {
  if (raw.files.empty() && raw.files_from.empty()) {
    const std::string& name = verb.get_name();
    fail(Exit::usage, missing_after(name, "", "IN"));
  }
  if (verb.count("--files-from") != 0 && raw.files_from.empty()) fail(Exit::usage, "--files-from: the name is empty");
  if (raw.files_from == "-" && std::find(raw.files.begin(), raw.files.end(), "-") != raw.files.end())
    fail(Exit::usage, "--files-from - and -: standard input can be read only once");
  return {raw.recursive, raw.files_from, raw.skip_existing};
}

void read_compress(const RawArgs& raw, const CLI::App& verb, CompressArgs& out) {
  out.inputs = raw.files;
  out.many = read_many(raw, verb);
  out.bound = read_bound(raw, verb);
  out.bounds_file = raw.bounds;
  if (!out.bound && out.bounds_file.empty())
    fail(Exit::usage,
         "no error bound: give exactly one of --abs --rel --pwrel --psnr --ratio --digits --information --lossless");
  out.precision = read_precision(raw);
  if (out.precision && !out.bounds_file.empty())
    fail(Exit::usage, "--bounds: --digits and --information find a bound for each variable; give one of them");
  out.explain = raw.explain;
  out.calibration = raw.calibration;
  out.data = read_data(raw);
  if (!out.bounds_file.empty() && !out.data.datasets.empty())
    fail(Exit::usage, "--bounds and --dataset: the bounds file names the variables, give one of them");
  out.codec = read_codec(raw);
  if (!raw.range.empty()) out.range = parse_range(raw.range);
  out.run = read_run(raw);
  out.run.models = read_models(raw);
  if (!out.run.models.file.empty() && out.codec.codec != "autoencoder" && out.codec.codec != "stencil")
    fail(Exit::usage,
         "--model: goes with --codec autoencoder or --codec stencil, as the model is for; auto takes none");
  out.output = read_output(raw, verb);
  out.append = raw.append;
  if (verb.count("--key-every") != 0) {
    if (!out.append) fail(Exit::usage, "--key-every: is about steps of one file, add --append");
    out.key_every = static_cast<unsigned>(parse_count(raw.key_every, "--key-every", kMostKeyEvery));
    if (out.key_every == 0) fail(Exit::usage, "--key-every: must be a number from 1 to 256");
  }
  if (raw.verify == "fault") {
    if (out.codec.codec == "auto")
      fail(Exit::usage, "--verify=fault: name a codec that can, as in --codec lorenzo --verify=fault");
    out.codec.settings.emplace_back("verify", "fault");
  } else if (!raw.verify.empty() && raw.verify != "true") {
    fail(Exit::usage, fmt::format("--verify={}: use --verify, or --verify=fault", raw.verify));
  }
  out.verify = raw.verify == "true";
  if (out.many.any() && out.output.path == "-")
    fail(Exit::usage, "-r, --files-from, --skip-existing: not with standard output; name a folder with -o");
  if (out.append && out.many.skip_existing)
    fail(Exit::usage, "--append and --skip-existing: the output is the file that is added to");
  if (out.append && out.output.path.empty()) fail(Exit::usage, "--append: name the file to add to with -o OUT");
  if (out.append && out.output.path == "-") fail(Exit::usage, "--append: needs a file, not standard output");
  if (out.append && !out.bounds_file.empty())
    fail(Exit::usage, "--append and --bounds: time steps are of one array, choose it with --dataset");
  if (std::find(out.data.datasets.begin(), out.data.datasets.end(), "*") != out.data.datasets.end()) {
    if (out.data.datasets.size() > 1) fail(Exit::usage, "--dataset '*' means all of them; give no other name");
    if (out.append) fail(Exit::usage, "--append: time steps are of one array, name it with --dataset");
  }
  if (out.append && out.data.datasets.size() > 1)
    fail(Exit::usage, "--append: time steps are of one array, give one --dataset");
}

void read_decompress(const RawArgs& raw, const CLI::App& verb, DecompressArgs& out) {
  if (verb.count("--level") != 0) out.level = static_cast<unsigned>(parse_count(raw.level, "--level", kMostLevel));
  out.inputs = raw.files;
  out.many = read_many(raw, verb);
  out.region = raw.region;
  if (verb.count("--step") != 0) out.step = parse_count(raw.step, "--step", UINT32_MAX);
  if (verb.count("--region") != 0 && out.region.empty())
    fail(Exit::usage, "--region: write one a:b for each axis, joined by commas");
  out.keep_going = raw.keep_going;
  if (out.keep_going && !out.region.empty())
    fail(Exit::usage, "--keep-going and --region: decode the whole stream with --keep-going, then cut it");
  if (!raw.verify.empty() && raw.verify != "fault")
    fail(Exit::usage, "--verify: decompress has --verify=fault; a stream is held against its original by quern verify");
  out.check_faults = !raw.verify.empty();
  out.run = read_run(raw);
  out.run.models = read_models(raw);
  out.output = read_output(raw, verb);
  if (out.many.any() && out.output.path == "-")
    fail(Exit::usage, "-r, --files-from, --skip-existing: not with standard output; name a folder with -o");
  if (out.level > 0 && out.output.remove_input)
    fail(Exit::usage, "--level and --rm: a preview does not replace its stream");
}

void read_verify(const RawArgs& raw, VerifyArgs& out) {
  if (raw.files.empty() || raw.files.size() > 2) fail(Exit::usage, kVerifyFiles);
  if (raw.files.size() == 2) out.original = raw.files[0];
  out.stream = raw.files.back();
  out.data = read_data(raw);
  out.run = read_run(raw);
  out.run.models = read_models(raw);
}

/// The file that --html names; empty without that option.
std::string read_html(const RawArgs& raw, const CLI::App& verb) {
  if (verb.count("--html") != 0 && (raw.html.empty() || raw.html == "-"))
    fail(Exit::usage, "--html: name a file for the report");
  return raw.html;
}

void read_compare(const RawArgs& raw, const CLI::App& verb, CompareArgs& out) {
  if (raw.files.size() != 2) fail(Exit::usage, "compare needs two files: A B");
  out.a = raw.files[0];
  out.b = raw.files[1];
  out.html = read_html(raw, verb);
  out.force = raw.force;
  out.data = read_data(raw);
  if (out.data.datasets.size() > 2) fail(Exit::usage, "--dataset: at most two, for A and for B");
  out.run = read_run(raw);
}

void read_bench(const RawArgs& raw, BenchArgs& out) {
  out.inputs = raw.files;
  for (const std::string& list : raw.codec_list)
    for (std::string& name : split_list(list, "--codec")) out.codecs.push_back(std::move(name));
  for (const std::string& list : raw.rel_list)
    for (const std::string& text : split_list(list, "--rel"))
      out.rel.push_back(parse_bound(BoundKind::rel, text, "--rel").value);
  if (out.rel.empty() && raw.sweep) out.rel = {1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6};
  if (out.rel.empty()) out.rel = {1e-2, 1e-3, 1e-4};
  if (!raw.repeats.empty()) out.repeats = static_cast<unsigned>(parse_count(raw.repeats, "--repeats", 1000));
  if (out.repeats == 0) fail(Exit::usage, "--repeats 0: at least one run is needed");
  out.sweep = raw.sweep;
  out.csv = raw.csv;
  if (out.sweep && out.csv.empty()) fail(Exit::usage, "--sweep: name the file for the runs with --csv FILE");
  if (!out.sweep && !out.csv.empty()) fail(Exit::usage, "--csv: goes with --sweep");
  out.peers = raw.peers;
  if (!out.sweep && !out.peers.empty()) fail(Exit::usage, "--peer: goes with --sweep");
  out.data = read_data(raw);
  out.codec = read_codec(raw);
  if (out.sweep && !out.codec.is_default_search())
    fail(Exit::usage,
         "--sweep: leave --effort, --goal, --set and --no-mask-search out: estimates are of the default effort, goal "
         "and settings, and so are the runs that they are trained on");
  out.run = read_run(raw);
}

std::vector<double> read_list(const std::vector<std::string>& lists, BoundKind kind, const char* option) {
  std::vector<double> out;
  for (const std::string& list : lists)
    for (const std::string& text : split_list(list, option)) {
      out.push_back(parse_bound(kind, text, option).value);
      if (out.back() <= 0) fail(Exit::usage, fmt::format("{} {}: a bound must be above 0", option, text));
    }
  return out;
}

void read_estimate(const RawArgs& raw, const CLI::App& verb, EstimateArgs& out) {
  out.inputs = raw.files;
  if (!raw.at_list.empty() && !raw.at_abs_list.empty())
    fail(Exit::usage, "--at and --at-abs: give relative bounds or absolute ones");
  out.absolute = !raw.at_abs_list.empty();
  out.at = out.absolute ? read_list(raw.at_abs_list, BoundKind::abs, "--at-abs")
                        : read_list(raw.at_list, BoundKind::rel, "--at");
  out.precision = read_precision(raw);
  if (out.precision && !out.at.empty())
    fail(Exit::usage, "--at: --digits and --information find the bound; give one of them");
  if (!raw.digits.empty() && !raw.information.empty())
    fail(Exit::usage, "--digits and --information: give one of them");
  if (out.at.empty()) out.at = {1e-2, 1e-3, 1e-4};
  for (const std::string& list : raw.codec_list)
    for (std::string& name : split_list(list, "--codec"))
      if (name != "all") out.codecs.push_back(std::move(name));
  if (!raw.features.empty() && raw.features != "deep" && raw.features != "counts")
    fail(Exit::usage, fmt::format("--features {}: use deep or counts", raw.features));
  if (!raw.features.empty()) out.features = raw.features == "deep" ? EstimateFeatures::deep : EstimateFeatures::counts;
  out.model = raw.model;
  out.calibration = raw.calibration;
  if (!out.model.empty() && !out.calibration.empty())
    fail(Exit::usage, "--calibration: is of the model that ships; leave --model out");
  if (out.features == EstimateFeatures::deep && !out.calibration.empty())
    fail(
        Exit::usage,
        "--calibration: has the errors of estimates without deep features; leave --features deep or --calibration out");
  out.html = read_html(raw, verb);
  out.force = raw.force;
  out.data = read_data(raw);
  out.run = read_run(raw);
}

/// One PSNR for all datasets, which is found so that the file fits.
void read_total_size(const RawArgs& raw, H5Args& out) {
  if (raw.total_size.empty()) {
    if (!raw.psnr_floor.empty()) fail(Exit::usage, "--psnr-floor: goes with --total-size; --psnr alone sets a PSNR");
    return;
  }
  if (out.work != H5Work::pack) fail(Exit::usage, "--total-size: only h5 pack takes it");
  if (out.bound)
    fail(Exit::usage,
         "--total-size: finds the bounds itself; give it without another, or with --bound NAME=KIND:VALUE");
  out.total_size = parse_size(raw.total_size, "--total-size");
  if (!raw.psnr_floor.empty()) out.psnr_floor = parse_bound(BoundKind::psnr, raw.psnr_floor, "--psnr-floor").value;
  if (out.psnr_floor > H5Args::kMostSharedPsnr)
    fail(Exit::usage, fmt::format("--psnr-floor: at most {} dB; what needs more is packed with --lossless",
                                  H5Args::kMostSharedPsnr));
  out.bound = ErrorBound{BoundKind::psnr, out.psnr_floor};
}

void read_h5_bounds(const RawArgs& raw, const CLI::App& verb, H5Args& out) {
  const bool packs = out.work == H5Work::pack;
  out.bound = read_bound(raw, verb);
  out.precision = read_precision(raw);
  read_total_size(raw, out);
  out.bounds_file = raw.bounds;
  for (const std::string& text : raw.variable_bounds) out.bounds.push_back(parse_variable_bound(text, "--bound"));
  const bool has_some = out.bound || !out.bounds_file.empty() || !out.bounds.empty();
  if (!packs && (!out.bounds_file.empty() || !out.bounds.empty()))
    fail(Exit::usage, "--bound and --bounds: only h5 pack takes bounds of single datasets");
  if (packs && !raw.datasets.empty() && !out.bound)
    fail(Exit::usage, "--dataset: give a bound such as --abs for it, or --bound NAME=KIND:VALUE in its place");
  if (packs && !has_some)
    fail(Exit::usage,
         "no error bound: give one of --abs --rel --pwrel --psnr --ratio --digits --information --lossless, or bounds "
         "of single datasets with --bound NAME=KIND:VALUE or --bounds FILE");
  if (out.work == H5Work::args && !out.bound)
    fail(Exit::usage, "no error bound: give exactly one of --abs --pwrel --lossless");
  if (!packs && out.work != H5Work::args && has_some)
    fail(Exit::usage, fmt::format("h5 {} takes no bound, the file has it", raw.what));
  if (out.work != H5Work::args) return;
  if (out.precision)
    fail(Exit::usage,
         "--digits and --information need the values: quern h5 pack finds a bound for each dataset; a filter takes "
         "--pwrel");
  if (out.bound->kind == BoundKind::rel)
    fail(Exit::usage,
         "--rel: a filter sees one chunk at a time and needs an absolute bound; quern h5 pack --rel makes "
         "one for each dataset");
  if (out.bound->kind == BoundKind::psnr || out.bound->kind == BoundKind::ratio)
    fail(Exit::usage,
         fmt::format("--{0}: a filter sees one chunk at a time and needs an absolute bound; quern h5 pack --{0} finds "
                     "one for each dataset",
                     bound_kind_name(out.bound->kind)));
}

void read_h5(const RawArgs& raw, const CLI::App& verb, H5Args& out) {
  const std::pair<const char*, H5Work> works[] = {
      {"args", H5Work::args}, {"pack", H5Work::pack}, {"unpack", H5Work::unpack}, {"check", H5Work::check}};
  const auto* work =
      std::find_if(std::begin(works), std::end(works), [&](const auto& w) { return w.first == raw.what; });
  if (work == std::end(works)) fail(Exit::usage, fmt::format("h5 {}: use args, pack, unpack or check", raw.what));
  out.work = work->second;
  if (raw.files.size() != (out.work == H5Work::args ? 0 : 1))
    fail(Exit::usage, out.work == H5Work::args ? "h5 args needs no file: the settings are the same for all datasets"
                                               : fmt::format("h5 {} works on one file", raw.what));
  if (!raw.files.empty()) out.input = raw.files.front();
  if (out.input == "-") fail(Exit::usage, "HDF5 files need seeking; name a file");
  read_h5_bounds(raw, verb, out);
  out.datasets = raw.datasets;
  out.codec = read_codec(raw);
  out.optional = raw.optional;
  out.rechunk = raw.rechunk;
  out.rewritable = raw.rewritable;
  out.again = raw.again;
  out.run = read_run(raw);
  out.output = read_output(raw, verb);
  if (out.output.path == "-") fail(Exit::usage, "-o -: HDF5 files need seeking; name a file");
  if ((out.work == H5Work::pack || out.work == H5Work::unpack) && out.output.path.empty())
    fail(Exit::usage, fmt::format("h5 {}: name the new file with -o OUT", raw.what));
}

void read_small_verbs(const RawArgs& raw, const std::string& verb, const CLI::App& program, Command& out) {
  out.json = raw.json;
  if (verb == "doctor") {
    out.verb = Verb::doctor;
  } else if (verb == "list") {
    if (raw.what != "codecs" && raw.what != "devices")
      fail(Exit::usage, fmt::format("list {}: list codecs or list devices", raw.what));
    out.verb = raw.what == "codecs" ? Verb::list_codecs : Verb::list_devices;
  } else {
    if (raw.what != "bash" && raw.what != "zsh" && raw.what != "fish")
      fail(Exit::usage, fmt::format("completion {}: use bash, zsh or fish", raw.what));
    out.text = completion_script(program, raw);
  }
}

void read_verb(const RawArgs& raw, const CLI::App& verb, const CLI::App& program, Command& out) {
  refuse_empty_names(raw.files);
  const std::string& name = verb.get_name();
  if (name == "compress") {
    out.verb = Verb::compress;
    read_compress(raw, verb, out.compress);
  } else if (name == "decompress") {
    out.verb = Verb::decompress;
    read_decompress(raw, verb, out.decompress);
  } else if (name == "info") {
    out.verb = Verb::info;
    if (raw.check && raw.headers_only)
      fail(Exit::usage, "--check reads everything, --headers-only as little as possible: give one of them");
    out.info = {raw.files, raw.check, raw.headers_only, read_run(raw)};
    out.info.run.models = read_models(raw);
  } else if (name == "verify") {
    out.verb = Verb::verify;
    read_verify(raw, out.verify);
  } else if (name == "compare") {
    out.verb = Verb::compare;
    read_compare(raw, verb, out.compare);
  } else if (name == "bench") {
    out.verb = Verb::bench;
    read_bench(raw, out.bench);
  } else if (name == "estimate") {
    out.verb = Verb::estimate;
    read_estimate(raw, verb, out.estimate);
  } else if (name == "model") {
    out.verb = Verb::model;
    read_model_verb(raw, out.model);
  } else if (name == "train") {
    out.verb = Verb::train;
    read_train(raw, out.train);
  } else if (name == "h5") {
    out.verb = Verb::h5;
    read_h5(raw, verb, out.h5);
  } else if (name == "checkpoint") {
    out.verb = Verb::checkpoint;
    read_checkpoint(raw, *verb.get_subcommands().front(), read_run(raw), out.checkpoint);
  } else if (name == "lidar") {
    out.verb = Verb::lidar;
    read_lidar(raw, *verb.get_subcommands().front(), read_run(raw), out.lidar);
  } else if (name == "offload") {
    out.verb = Verb::offload;
    read_offload(raw, read_run(raw), out.offload);
  } else {
    read_small_verbs(raw, name, program, out);
  }
}

/// CLI11 says only that something required is missing, as in "IN is required".
std::string what_is_missing(const std::vector<std::string>& words, const CLI::App& program,
                            const std::string& problem) {
  const auto verbs = program.get_subcommands();
  if (verbs.empty()) return no_such_verb(words.front(), {words.begin() + 1, words.end()});
  std::string works;
  for (auto below = verbs.front()->get_subcommands(); !below.empty(); below = below.front()->get_subcommands())
    works += (works.empty() ? "" : " ") + below.front()->get_name();
  return missing_after(verbs.front()->get_name(), works, problem.substr(0, problem.find(' ')));
}

/// Help for those who ask, and for those who type nothing else.
void print_help(const CLI::App& program, bool asked, Command& out) {
  out.verb = Verb::print;
  out.asked = asked;
  const CLI::App* asked_for = &program;
  std::string before;
  for (auto below = program.get_subcommands(); !below.empty(); below = asked_for->get_subcommands()) {
    before += before.empty() ? "quern" : " " + asked_for->get_name();
    asked_for = below.front();
  }
  out.text = asked_for->help(before);
}

}  // namespace

int parse_only(int argc, const char* const* argv, const std::vector<std::string>& codecs, Command& out,
               std::string& message) {
  const std::vector<std::string> words =
      with_plain_options(argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>());
  RawArgs raw;
  raw.codecs = codecs;
  const auto program = define_program(raw);
  if (words.empty()) {
    print_help(*program, false, out);
    return 0;
  }
  try {
    program->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
    read_verb(raw, *program->get_subcommands().front(), *program, out);
    return 0;
  } catch (const CLI::CallForHelp&) {
    if (!program->get_subcommands().empty() || words.front().starts_with('-')) {
      print_help(*program, true, out);
      return 0;
    }
    message = one_line(no_such_verb(words.front(), {}), *program);
  } catch (const CLI::CallForVersion& version) {
    out.verb = Verb::print;
    out.text = std::string(version.what()) + "\n";
    return 0;
  } catch (const CLI::RequiredError& error) {
    message = one_line(what_is_missing(words, *program, error.what()), *program);
  } catch (const CLI::ParseError& error) {
    message = one_line(error.what(), *program);
  } catch (const CliError& error) {
    message = one_line(error.what(), *program);
  }
  return static_cast<int>(Exit::usage);
}

}  // namespace quern::cli

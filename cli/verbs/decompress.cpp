// quern decompress: streams back to arrays in files.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "cli/files/array_output.h"
#include "cli/files/byte_streams.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "cli/models/model_files.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/decode_stream.h"
#include "cli/verbs/many_jobs.h"
#include "cli/verbs/run_device.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

constexpr std::size_t kHolesShown = 8;

struct DecompressJob {
  std::string input;
  std::string output;  ///< "-" is standard output
};

struct Decoded {
  std::vector<StreamInfo> infos;
  DecodeOutcome outcome;
  std::uint64_t stream_bytes = 0;
  Shape shape;  ///< of what was written
};

std::string dataset_name(const std::string& noted, const std::string& input) {
  if (!noted.empty()) return noted;
  std::string name = base_name(input);
  if (name.ends_with(kStreamSuffix)) name.resize(name.size() - 3);
  const std::size_t dot = name.find_first_of('.');
  if (dot != std::string::npos && dot != 0) name.resize(dot);
  return name.empty() || name == "-" ? "data" : name;
}

/// Raw elements from a pipe to a descriptor, stream after stream, in bounded memory.
Decoded decode_pipe_to(ArrayOutput& output, const DecodeContext& context) {
  Decoded out;
  FdSource source(STDIN_FILENO);
  PipedValues last;
  const TakeElements take = [&](std::span<const std::uint8_t> bytes) { output.write(bytes); };
  do {
    out.infos.push_back(decode_pipe(source, context, take, last, out.outcome));
    out.shape = combined_shape(out.infos, context.name);
  } while (!check(source.at_end(), Phase::decode, context.name));
  out.stream_bytes = source.position();
  return out;
}

/// The streams of one file, their headers, and the array they make.
struct OpenStreams {
  Mapping file;
  std::vector<std::span<const std::uint8_t>> streams;
  std::vector<StreamInfo> infos;
  std::optional<std::size_t> step;  ///< the one that is wanted; `infos` has it alone then
  std::optional<Box> box;
  Shape shape;
  io::ArrayToWrite array;
};

/// What is written of the array: its shape, and names of dimensions where other kinds of files want them.
io::ArrayToWrite array_to_write(const OpenStreams& open, const DecompressJob& job, const DecompressArgs& args) {
  RestoredMeta restored = restore_meta(open.infos.front());
  // Attributes that describe axes speak of one whole step.
  restored.meta.is_complex = restored.meta.is_complex && !open.box && args.level == 0;
  const io::FileKind kind = job.output == "-" ? io::FileKind::raw : io::file_kind(job.output);
  const bool library = kind == io::FileKind::hdf5 || kind == io::FileKind::netcdf;
  if (library && open.infos.size() > 1 && !open.box && args.level == 0) {
    io::add_step_axis(restored.meta, open.infos.size());
  } else {
    restored.meta.shape = open.shape;
  }
  return {restored.meta, dataset_name(restored.dataset, job.input)};
}

/// Steps that were predicted have no coarse levels.
void refuse_level(std::span<const std::uint8_t> stream, std::size_t step, unsigned level, const std::string& name) {
  if (level == 0) return;
  MemorySource source(stream);
  if (check(inspect_reference(source, builtin_codecs()), Phase::decode, name))
    fail(Exit::usage, fmt::format("{}: --level {}: step {} was predicted from the one before and has no coarse levels; "
                                  "take a key step (quern info lists them) with --step, or decode it whole",
                                  name, level, step));
}

OpenStreams open_streams(const DecompressJob& job, const DecompressArgs& args) {
  const std::string name = job.input == "-" ? "standard input" : job.input;
  OpenStreams out;
  out.file = job.input == "-" ? map_standard_input() : Mapping::of_file(job.input);
  out.streams = split_streams(out.file.bytes(), name, args.keep_going);
  if (args.step) {
    if (*args.step >= out.streams.size())
      fail(Exit::usage,
           fmt::format("{}: --step {}: the file has steps 0 to {}", name, *args.step, out.streams.size() - 1));
    out.step = static_cast<std::size_t>(*args.step);
  }
  for (std::size_t i = 0; i < out.streams.size(); ++i) {
    if (out.step && i != *out.step) continue;
    MemorySource source(out.streams[i]);
    refuse_level(out.streams[i], i, args.level, name);
    out.infos.push_back(at_level(check(inspect(source, builtin_codecs()), Phase::decode, name), args.level, name));
  }
  out.shape = combined_shape(out.infos, name);
  if (!args.region.empty()) {
    auto parsed = Box::parse(args.region, out.shape);
    if (!parsed.ok())
      fail(Exit::usage, fmt::format("{}: --region {}: {} (the array is {})", name, args.region, parsed.status().text(),
                                    out.shape.text()));
    out.box = parsed.value();
    out.shape = check(out.box->shape(), Phase::encode, name);
  }
  out.array = array_to_write(out, job, args);
  return out;
}

Decoded decode_file_to(ArrayOutput& output, const DecompressJob& job, const DecompressArgs& args,
                       const DecodeContext& context, Progress& progress) {
  Decoded out;
  OpenStreams open = open_streams(job, args);
  progress.set_element_bytes(dtype_bytes(open.infos.front().dtype));
  out.stream_bytes = open.file.bytes().size();
  out.shape = open.array.meta.shape;
  out.infos = std::move(open.infos);
  output.begin(open.array.meta, open.array.dataset);
  const TakeElements take = [&](std::span<const std::uint8_t> bytes) { output.write(bytes); };
  StepDecoders steps(open.streams, context.name);
  if (open.box) {
    decode_region(steps, open.step, out.infos, *open.box, context, take, out.outcome);
  } else if (open.step) {
    decode_part(steps, *open.step, open.streams[*open.step], out.infos.front(), context, take, out.outcome);
  } else {
    for (std::size_t i = 0; i < open.streams.size(); ++i)
      decode_part(steps, i, open.streams[i], out.infos[i], context, take, out.outcome);
  }
  output.end();
  return out;
}

void report_holes(const Decoded& decoded, const std::string& name) {
  const auto& holes = decoded.outcome.holes;
  for (std::size_t i = 0; i < std::min(holes.size(), kHolesShown); ++i)
    print_note(fmt::format("{}: chunk {} of segment {} is lost: {}", name, holes[i].chunk, holes[i].segment,
                           holes[i].why.text()));
  if (!holes.empty())
    print_note(fmt::format("{}: {} chunks are lost and were filled with the fill value, NaN or 0; all others are right",
                           name, holes.size()));
}

Json holes_json(const std::vector<Hole>& holes) {
  Json out = Json::array();
  for (const Hole& hole : holes)
    out.push_back({{"segment", hole.segment},
                   {"chunk", hole.chunk},
                   {"begin", hole.begin},
                   {"extents", hole.extents},
                   {"why", hole.why.text()}});
  return out;
}

void report(const DecompressJob& job, const Decoded& decoded, std::uint64_t written, const DecompressArgs& args,
            const Device* device) {
  const StreamInfo& first = decoded.infos.front();
  FileReport out;
  out.input = job.input;
  out.output = job.output;
  out.input_bytes = decoded.stream_bytes;
  out.output_bytes = written;
  out.raw_bytes = decoded.outcome.elems * dtype_bytes(first.dtype);
  out.stream_bytes = decoded.stream_bytes;
  out.codec = first.codec_name;
  out.requested = first.requested;
  out.enforced = first.enforced;
  out.seconds = decoded.outcome.seconds;
  out.run = args.run;
  out.device = device_name(device, decoded.outcome.on_device);
  note_unused_device(args.run, device, decoded.outcome.on_device, job.input, first.codec_name);
  if (args.run.json) {
    Json line = to_json(out);
    line["dtype"] = dtype_name(first.dtype);
    line["shape"] = decoded.shape.extents();
    line["streams"] = decoded.infos.size();
    line["level"] = args.level;
    line["bytes_read"] = decoded.outcome.bytes_read;
    line["holes"] = holes_json(decoded.outcome.holes);
    print_json(line, job.output == "-");
  } else if (!args.run.quiet) {
    const std::string speed = speed_text(out.raw_bytes, out.seconds);
    print_message(fmt::format("{}: {} -> {} bytes  {} of {}  {}{}{}\n", job.input, decoded.stream_bytes, written,
                              decoded.shape.text(), dtype_name(first.dtype), first.codec_name,
                              speed.empty() ? "" : "  ", speed));
    if (args.run.verbose)
      print_message(
          fmt::format("{}: {} of {} bytes read\n", job.input, decoded.outcome.bytes_read, decoded.stream_bytes));
  }
}

Decoded decompress_into(ArrayOutput& output, const DecompressJob& job, const DecompressArgs& args, Device* device) {
  Progress progress(job.input == "-" ? "standard input" : job.input, args.run);
  DecodeContext context;
  context.name = job.input == "-" ? "standard input" : job.input;
  context.memory = memory_limit(args.run);
  context.keep_going = args.keep_going;
  context.check_faults = args.check_faults;
  context.level = args.level;
  context.execution.threads = args.run.threads;
  context.execution.device = device;
  context.execution.memory_limit = context.memory;
  context.execution.progress = progress.callback();
  const io::FileKind kind = job.output == "-" ? io::FileKind::raw : io::file_kind(job.output);
  // Salvage and regions look for the trailer, and other kinds of files want to know the number of steps first.
  const bool in_order = kind == io::FileKind::raw && args.region.empty() && !args.step && !args.keep_going;
  if (job.input == "-" && in_order) return decode_pipe_to(output, context);
  return decode_file_to(output, job, args, context, progress);
}

void finish(const DecompressJob& job, const Decoded& decoded, std::uint64_t written, const DecompressArgs& args,
            const Device* device, Exit& result) {
  report_holes(decoded, job.input);
  report(job, decoded, written, args, device);
  if (!decoded.outcome.holes.empty()) {
    // The output is there, but not all of the data: scripts must not take it for a success, and the input stays.
    if (result == Exit::ok) result = Exit::stream;
  } else if (args.output.remove_input && job.input != "-" && unlink(job.input.c_str()) != 0) {
    fail_errno(job.input, "remove it after decompressing");
  }
}

/// Names of files of other kinds than those that can be written get raw elements, which their readers do not take.
void note_foreign_extension(const DecompressJob& job, const DecompressArgs& args) {
  static constexpr std::string_view kForeign[] = {
      ".txt",  ".csv",  ".tsv",  ".json", ".tif", ".tiff", ".png",     ".jpg",         ".npz", ".mat", ".grb", ".grib",
      ".grb2", ".zarr", ".fits", ".vtk",  ".vti", ".nrrd", ".parquet", ".safetensors", ".pt",  ".zip", ".gz"};
  if (args.run.quiet || args.output.path.empty()) return;
  for (const std::string_view extension : kForeign)
    if (job.output.ends_with(extension))
      print_note(
          fmt::format("{}: gets the raw elements, without a header; .npy, .h5 and .nc are the other kinds that can "
                      "be written",
                      job.output));
}

/// `outcome` gets the sizes, and a code where the output is there without all of the data.
void decompress_one(const DecompressJob& job, const DecompressArgs& args, Device* device, FileOutcome& outcome) {
  if (job.output == "-") check_stdout(args.output.force);
  check_output(job.input, job.output, args.output.force);
  note_foreign_extension(job, args);
  if (args.many.any()) make_folders_for(job.output);
  ArrayOutput output(job.output, args.output.force, mode_like(job.input));
  output.take_time_of(job.input);
  const Decoded decoded = decompress_into(output, job, args, device);
  output.commit();
  finish(job, decoded, output.bytes(), args, device, outcome.code);
  outcome.raw_bytes = decoded.outcome.elems * dtype_bytes(decoded.infos.front().dtype);
  outcome.stored_bytes = decoded.stream_bytes;
}

/// Several streams as the arrays of one HDF5 or netCDF file, which appears when all are in it.
void decompress_together(const std::vector<FoundFile>& files, const DecompressArgs& args, Device* device,
                         Exit& result) {
  const std::string& path = args.output.path;
  for (const FoundFile& file : files) check_output(file.path, path, args.output.force);
  ArrayOutput output(path, args.output.force, mode_like(files.front().path));
  std::vector<io::ArrayToWrite> arrays;
  for (const FoundFile& file : files)
    if (file.path != "-") arrays.push_back(open_streams({file.path, path}, args).array);
  if (arrays.size() == files.size()) output.define(arrays);
  std::vector<Decoded> all;
  std::vector<std::uint64_t> written;
  for (const FoundFile& file : files) {
    const std::uint64_t before = output.bytes();
    all.push_back(decompress_into(output, {file.path, path}, args, device));
    written.push_back(output.bytes() - before);
  }
  output.commit();
  for (std::size_t i = 0; i < all.size(); ++i) finish({files[i].path, path}, all[i], written[i], args, device, result);
}

std::vector<DecompressJob> plan_jobs(const DecompressArgs& args, const std::vector<FoundFile>& files) {
  const std::string& wanted = args.output.path;
  const std::string folder = output_folder(wanted, args.many);
  if (files.size() > 1 && !wanted.empty() && folder.empty() && wanted != "-")
    fail(Exit::usage,
         fmt::format("-o {}: {} inputs need a folder that exists, or one .h5 or .nc file", wanted, files.size()));
  std::vector<DecompressJob> jobs;
  std::set<std::string> outputs;
  for (const FoundFile& file : files) {
    DecompressJob job{file.path, wanted};
    if (wanted.empty()) {
      job.output = restored_name(file.path);
    } else if (!folder.empty()) {
      if (file.path == "-") fail(Exit::usage, "standard input has no name for a file in a folder; give -o FILE");
      job.output = in_folder(folder, restored_name(file.below));
    }
    if (job.output != "-" && !outputs.insert(job.output).second)
      fail(Exit::usage, job.output + ": two inputs would be written to it; decompress them into different folders");
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Decompresses every job into a file of its own.
Exit decompress_all(std::vector<DecompressJob> jobs, std::uint64_t others, const DecompressArgs& args, Device* device) {
  ManyJobs work;
  if (args.many.skip_existing)
    work.left_alone = std::erase_if(jobs, [](const DecompressJob& job) { return is_there(job.output); });
  for (const DecompressJob& job : jobs) {
    work.inputs.push_back(job.input);
    work.in_one_process |= device != nullptr || job.input == "-" || job.output == "-";
  }
  work.work = [&](std::size_t i, const RunArgs& run, FileOutcome& outcome) {
    DecompressArgs own = args;
    own.run = run;
    decompress_one(jobs[i], own, device, outcome);
  };
  work.finished = [](std::size_t, const FileOutcome&) {};
  work.done_word = "decompressed";
  work.others = others;
  return run_jobs(work, args.many, args.run);
}

}  // namespace

Exit run_decompress(const DecompressArgs& args) {
  use_models(args.run.models);
  const auto device = open_device(args.run);
  const FoundFiles found =
      find_inputs(args.inputs, args.many, [](const std::string& path) { return path.ends_with(kStreamSuffix); });
  if (found.files.empty()) fail(Exit::usage, "no stream was found: folders are searched for .qn files");
  const io::FileKind kind = io::file_kind(args.output.path);
  const bool together = found.files.size() > 1 && !is_directory(args.output.path) &&
                        (kind == io::FileKind::hdf5 || kind == io::FileKind::netcdf);
  if (!together) return decompress_all(plan_jobs(args, found.files), found.others, args, device.get());
  Exit result = Exit::ok;
  decompress_together(found.files, args, device.get(), result);
  return result;
}

}  // namespace quern::cli

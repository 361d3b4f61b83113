// quern h5 pack and unpack: decides dataset by dataset what the filter is to do, h5repack does it.
#include <hdf5.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/exit_codes.h"
#include "cli/file_names.h"
#include "cli/file_report.h"
#include "cli/h5_file.h"
#include "cli/h5_repack.h"
#include "cli/h5_values.h"
#include "cli/h5_work.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kLeastElements = 1024;
constexpr std::uint64_t kChunkBytes = UINT64_C(4) << 20;
constexpr unsigned kMissingFlag = 0x400;

/// A dataset opened beside its property list, type and shape.
struct Dataset {
  std::string name;
  H5Id id, dcpl, type, space;
  std::vector<hsize_t> extents;

  Dataset(hid_t file, const std::string& path)
      : name(path),
        id(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose),
        dcpl(H5Dget_create_plist(id.get()), H5Pclose),
        type(H5Dget_type(id.get()), H5Tclose),
        space(H5Dget_space(id.get()), H5Sclose) {
    if (!id.ok()) fail(Exit::io, fmt::format("{} cannot be opened: {}", path, h5_reason()));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    extents.resize(rank > 0 ? static_cast<std::size_t>(rank) : 0);
    if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  }
  std::uint64_t elems() const {
    std::uint64_t out = 1;
    for (const hsize_t e : extents) out *= e;
    return out;
  }
};

/// Why a dataset stays as it is; not an error.
struct LeftAlone {
  std::string reason;
};

using Names = std::vector<std::string>;  ///< of one object; h5repack knows it by one of them, which is its own choice

struct Job {
  ErrorBound bound;
  std::vector<std::string> options;  ///< for h5repack
};

/// Worth the filter without being named: fields, not coordinates, counters or texts.
void check_worth(const Dataset& d) {
  if (H5Tget_class(d.type.get()) != H5T_FLOAT) throw LeftAlone{"no floating-point numbers"};
  if (H5Aexists(d.id.get(), "CLASS") > 0) throw LeftAlone{"a dimension scale"};
  if (d.extents.empty() || d.elems() < kLeastElements)
    throw LeftAlone{fmt::format("fewer than {} elements", kLeastElements)};
}

/// Slabs along the slowest axes, of at most a few MiB.
std::vector<hsize_t> chunk_for(const Dataset& d) {
  std::vector<hsize_t> chunk(d.extents.size());
  if (H5Pget_layout(d.dcpl.get()) == H5D_CHUNKED) {
    H5Pget_chunk(d.dcpl.get(), static_cast<int>(chunk.size()), chunk.data());
    return chunk;
  }
  std::transform(d.extents.begin(), d.extents.end(), chunk.begin(), [](hsize_t e) { return std::max<hsize_t>(e, 1); });
  std::uint64_t bytes = H5Tget_size(d.type.get());
  for (const hsize_t e : chunk) bytes *= e;
  for (std::size_t a = 0; a < chunk.size() && bytes > kChunkBytes;) {
    if (chunk[a] == 1) {
      ++a;
      continue;
    }
    bytes = bytes / chunk[a] * ((chunk[a] + 1) / 2);
    chunk[a] = (chunk[a] + 1) / 2;
  }
  return chunk;
}

bool is_nan_bits(std::uint64_t bits, DType dtype) {
  if (dtype == DType::f64) return (bits & ~(UINT64_C(1) << 63)) > UINT64_C(0x7FF) << 52;
  if (dtype == DType::f32) return (bits & 0x7FFFFFFF) > 0x7F800000;
  return false;
}

/// The missing value that the filter would not learn from the dataset's fill value: it is put among the words.
void declare_missing(const Dataset& d, const InputArray& array, FilterWords& words) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  H5Pfill_value_defined(d.dcpl.get(), &status);
  Vector<std::uint64_t> others = array.fill_bits;
  std::erase_if(others, [&](std::uint64_t bits) { return is_nan_bits(bits, array.meta.dtype); });
  if (status == H5D_FILL_VALUE_USER_DEFINED) {
    const H5Id native(H5Tget_native_type(d.type.get(), H5T_DIR_DEFAULT), H5Tclose);
    std::uint64_t fill = 0;
    if (H5Tget_size(native.get()) <= sizeof fill) H5Pget_fill_value(d.dcpl.get(), native.get(), &fill);
    std::erase(others, fill);
    if (!others.empty())
      throw LeftAlone{"it has a fill value and another missing value, and the filter keeps one of them"};
  }
  if (others.size() > 1) throw LeftAlone{"it has several missing values, and the filter keeps one of them"};
  if (others.empty()) return;
  words[0] |= kMissingFlag;
  words.resize(18, 0);
  words[16] = static_cast<unsigned>(others.front() >> 32);
  words[17] = static_cast<unsigned>(others.front() & 0xFFFFFFFF);
}

/// Creates the dataset without data in a file in memory: the filter says whether it takes it.
void try_filter(const Dataset& d, const std::vector<hsize_t>& chunk, const FilterWords& words) {
  const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), 1 << 16, false);
  const H5Id file(H5Fcreate("trial.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  const H5Id list(H5Pcopy(d.dcpl.get()), H5Pclose);
  const H5Id type(H5Tcopy(d.type.get()), H5Tclose);
  H5Premove_filter(list.get(), H5Z_FILTER_ALL);
  H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data());
  H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_INCR);
  H5Pset_filter(list.get(), QUERN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, words.size(), words.data());
  const hid_t made = H5Dcreate2(file.get(), "x", type.get(), d.space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT);
  if (made < 0) throw LeftAlone{h5_reason()};
  H5Dclose(made);
}

void check_names(const Names& names) {
  if (!std::all_of(names.begin(), names.end(), h5repack_can_name))
    throw LeftAlone{"h5repack cannot be told a name with , or :"};
}

Job plan_dataset(hid_t file, const Names& names, const H5Args& args) {
  const std::string& name = names.front();
  const Dataset d(file, name);
  if (h5_uses_quern(d.dcpl.get())) throw LeftAlone{"it is packed already"};
  if (args.datasets.empty()) check_worth(d);
  if (d.extents.empty()) throw LeftAlone{"a single value"};
  check_names(names);
  InputArray array;
  std::string why;
  if (!open_dataset(args.input, name, array, why)) throw LeftAlone{why};
  if (array.meta.unsigned_in_signed && args.bound->kind != BoundKind::lossless)
    throw LeftAlone{"it has unsigned numbers in a signed type (_Unsigned), which the filter would take as signed"};
  ErrorBound stored;
  if (!bound_in_file_units(*args.bound, array, stored, why)) throw LeftAlone{why};
  Job job;
  job.bound = absolute_bound(stored, array, args.run);
  FilterWords words = filter_words(args.codec, job.bound);
  if (job.bound.kind != BoundKind::lossless) declare_missing(d, array, words);
  const std::vector<hsize_t> chunk = chunk_for(d);
  try_filter(d, chunk, words);
  const std::string all_names = fmt::format("{}", fmt::join(names, ","));
  job.options = {"-f", all_names + ":" + repack_filter(words, false)};
  if (H5Pget_layout(d.dcpl.get()) != H5D_CHUNKED) {
    job.options.emplace_back("-l");
    job.options.push_back(fmt::format("{}:CHUNK={}", all_names, fmt::join(chunk, "x")));
  }
  return job;
}

struct Outcome {
  std::vector<std::string> options;
  Json changed = Json::array();
  Json left = Json::array();
};

void leave(Outcome& out, const H5Args& args, const std::string& name, const std::string& reason) {
  out.left.push_back({{"dataset", name}, {"reason", reason}});
  if (!args.datasets.empty() || args.run.verbose)
    print_note(fmt::format("{}: {} stays as it is: {}", args.input, name, reason));
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

/// Runs h5repack when there is something to do, and reports.
Exit finish(const H5Args& args, const Outcome& outcome, bool with_quern, const char* nothing) {
  if (outcome.changed.empty()) fail(Exit::usage, fmt::format("{}: {}", args.input, nothing));
  run_h5repack(outcome.options, args.input, args.output, [&](const std::string& path) {
    const H5Id file = h5_open(path);
    for (const Json& changed : outcome.changed) {
      const auto name = changed["dataset"].get<std::string>();
      if (h5_uses_quern(Dataset(file.get(), name).dcpl.get()) != with_quern)
        fail(Exit::io, fmt::format("{}: h5repack did not change {}; please report it", args.input, name));
    }
  });
  const std::uint64_t before = file_bytes(args.input);
  const std::uint64_t after = file_bytes(args.output.path);
  if (args.run.json) {
    print_json(Json{{"input", args.input},
                    {"output", args.output.path},
                    {"input_bytes", before},
                    {"output_bytes", after},
                    {"changed", outcome.changed},
                    {"left", outcome.left}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} datasets changed, {} left as they are; {} -> {} bytes", args.output.path,
                           outcome.changed.size(), outcome.left.size(), before, after));
  }
  return Exit::ok;
}

}  // namespace

Exit pack_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  Outcome outcome;
  for (const Names& names : h5_datasets(file.get(), args.datasets)) {
    const std::string& name = names.front();
    try {
      const Job job = plan_dataset(file.get(), names, args);
      outcome.options.insert(outcome.options.end(), job.options.begin(), job.options.end());
      outcome.changed.push_back({{"dataset", name}, {"bound", bound_json(job.bound.kind, job.bound.value)}});
      if (args.run.verbose)
        print_note(fmt::format("{}: {} under {}", args.input, name, bound_text(job.bound.kind, job.bound.value)));
    } catch (const LeftAlone& left) {
      leave(outcome, args, name, left.reason);
    }
  }
  return finish(args, outcome, true, "no dataset to pack; -v says why, --dataset NAME chooses one");
}

Exit unpack_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  Outcome outcome;
  for (const Names& names : h5_datasets(file.get(), args.datasets)) {
    try {
      if (!h5_uses_quern(Dataset(file.get(), names.front()).dcpl.get())) throw LeftAlone{"it does not use quern"};
      check_names(names);
      outcome.options.insert(outcome.options.end(), {"-f", fmt::format("{}:NONE", fmt::join(names, ","))});
      outcome.changed.push_back({{"dataset", names.front()}});
    } catch (const LeftAlone& left) {
      leave(outcome, args, names.front(), left.reason);
    }
  }
  return finish(args, outcome, false, "no dataset uses quern");
}

}  // namespace quern::cli

// From options and attributes to one job a dataset.
#include "cli/h5/pack_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/bounds/bounds_file.h"
#include "cli/h5/chunk_shape.h"
#include "cli/h5/copy/copy_dataset.h"
#include "cli/h5/file.h"
#include "cli/h5/missing.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

/// A dataset opened beside its property list, type and shape.
struct Dataset {
  H5Id id, dcpl, type, space;
  Extents extents;

  Dataset(hid_t file, haddr_t address)
      : id(h5_open_at(file, address)),
        dcpl(H5Dget_create_plist(id.get()), H5Pclose),
        type(H5Dget_type(id.get()), H5Tclose),
        space(H5Dget_space(id.get()), H5Sclose),
        extents(h5_extents(space.get())) {}
};

std::string requested_text(const ErrorBound& bound) {
  return bound.kind == BoundKind::lossless ? "lossless"
                                           : fmt::format("{}={}", bound_kind_name(bound.kind), bound.value);
}

LossyRecord record_of(const PackJob& job) {
  LossyRecord out;
  out.bound = job.physical();
  out.requested = requested_text(job.asked);
  if (job.past) out.accumulated = accumulated(*job.past, out.bound, job.name).value;
  return out;
}

/// Creates the dataset without values in a file in memory: the filter says whether it takes it.
void try_filter(const Dataset& d, const PackJob& job) {
  const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), 1 << 16, false);
  const H5Id file(H5Fcreate("trial.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  const H5Id type(H5Tcopy(d.type.get()), H5Tclose);
  const H5Id list = packed_list(d.dcpl.get(), job);
  const H5Id made(H5Dcreate_anon(file.get(), type.get(), d.space.get(), list.get(), H5P_DEFAULT), H5Dclose);
  if (!made.ok()) throw LeftAlone{h5_reason()};
}

/// The type as the file has it, where attributes say that its numbers mean another.
DType type_in_file(const io::ArrayMeta& meta) {
  if (!meta.unsigned_in_signed) return meta.dtype;
  switch (meta.dtype) {
    case DType::u8: return DType::i8;
    case DType::u16: return DType::i16;
    case DType::u32: return DType::i32;
    case DType::u64: return DType::i64;
    default: return meta.dtype;
  }
}

/// What no bound can change.
void check_layout(const Dataset& d) {
  if (h5_values_elsewhere(d.dcpl.get()))
    throw LeftAlone{"its values are in other files or datasets", "whose values are elsewhere"};
  if (H5Sget_simple_extent_type(d.space.get()) == H5S_NULL || H5Sget_simple_extent_npoints(d.space.get()) == 0)
    throw LeftAlone{"it has no values", "without values"};
  if (d.extents.empty()) throw LeftAlone{"it is a single value", "of a single value"};
}

class Planner {
 public:
  Planner(hid_t file, const H5Tree& tree, const H5Args& args)
      : file_(file), tree_(tree), args_(args), rules_(file, tree) {
    for (const std::string& name : args.datasets) name_dataset(name, {*args.bound, false});
    for (const VariableBound& bound : args.bounds) name_dataset(bound.variable, {bound.bound, true});
    if (!args.bounds_file.empty())
      for (const VariableBound& bound : read_bounds_file(args.bounds_file))
        name_dataset(bound.variable, {bound.bound, true});
  }

  std::vector<std::string> fields_without_bound() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < tree_.objects.size(); ++i) {
      if (tree_.objects[i].type != H5O_TYPE_DATASET) continue;
      const auto named = named_.find(i);
      if (named != named_.end() ? named->second.own : !args_.datasets.empty()) continue;
      const Dataset d(file_, tree_.objects[i].address);
      if (named == named_.end() && (h5_uses_quern(d.dcpl.get()) || rules_.why_no_field(i, d.id.get()))) continue;
      out.push_back(tree_.path(i));
    }
    return out;
  }

  PackPlan plan() {
    PackPlan out;
    for (std::size_t i = 0; i < tree_.objects.size(); ++i) {
      if (tree_.objects[i].type != H5O_TYPE_DATASET) continue;
      const auto named = named_.find(i);
      const std::string path = tree_.path(i);
      try {
        if (named == named_.end() && !args_.datasets.empty()) continue;
        out.jobs.push_back(plan_dataset(i, path, named == named_.end() ? nullptr : &named->second));
      } catch (LeftAlone& left) {
        out.left.push_back({path, std::move(left), named != named_.end()});
      }
    }
    return out;
  }

 private:
  struct Named {
    ErrorBound bound;
    bool own = false;  ///< not the one for all datasets
  };

  void name_dataset(const std::string& name, const Named& bound) {
    const std::size_t object = h5_find_dataset(file_, tree_, name);
    if (!named_.emplace(object, bound).second)
      fail(Exit::usage, fmt::format("{}: has a bound already; give each dataset one", name));
  }

  PackJob plan_dataset(std::size_t object, const std::string& path, const Named* named) const {
    const Dataset d(file_, tree_.objects[object].address);
    const bool packed = h5_uses_quern(d.dcpl.get());
    if (named == nullptr) {
      if (packed) throw LeftAlone{"it is packed already", "packed already"};
      if (auto why = rules_.why_no_field(object, d.id.get())) throw LeftAlone(*why);
      if (!args_.bound) throw LeftAlone{"no bound is given for it", "without a bound"};
    }
    check_layout(d);
    InputArray array;
    std::string why;
    if (!open_dataset(args_.input, path, array, why)) throw LeftAlone{why};
    PackJob job;
    job.object = object;
    job.name = path;
    job.asked = named != nullptr ? named->bound : *args_.bound;
    if (args_.precision && (named == nullptr || !named->own) &&
        !precise_bound(*args_.precision, array, args_.run, job.asked, why))
      throw LeftAlone{why, "of integers, which have no digits of their own"};
    job.scale = array.meta.packed ? array.meta.scale_factor : 1.0;
    job.dtype = type_in_file(array.meta);
    job.fill_bits = array.fill_bits;
    choose_chunk(d, job);
    const auto past = h5_lossy_past(d.id.get(), job.scale);
    if (packed && past) check_again(path, job, *past);
    if (array.meta.unsigned_in_signed && job.asked.kind != BoundKind::lossless)
      throw LeftAlone{"it has unsigned numbers in a signed type (_Unsigned), which the filter would take as signed",
                      "with unsigned numbers in a signed type"};
    if (!bound_in_file_units(job.asked, array, job.stored, why)) throw LeftAlone{why};
    choose_words(d, array, job);
    try_filter(d, job);
    if (past) job.past = past->bound;
    if (job.stored.kind == BoundKind::lossless) return job;
    if (past && named == nullptr && past->bound.kind != job.stored.kind)
      throw LeftAlone{"it was packed before under a bound of another kind, and the two do not add up",
                      "packed before under another kind of bound"};
    job.record = record_of(job);
    return job;
  }

  void choose_chunk(const Dataset& d, PackJob& job) const {
    const std::size_t width = H5Tget_size(d.type.get());
    job.chunk = h5_chunk(d.dcpl.get());
    job.was_chunked = !job.chunk.empty();
    if (!job.was_chunked) {
      job.chunk = h5_new_chunk(d.extents, width);
    } else if (args_.rechunk) {
      job.chunk = h5_merged_chunk(d.extents, job.chunk, width);
    }
  }

  /// A dataset that is packed and named: its values have an error, which a second bound would add to.
  void check_again(const std::string& path, const PackJob& job, const LossyPast& past) const {
    const std::string asked = requested_text(job.asked);
    if (past.requested == asked) throw LeftAlone{"it is packed under this bound already", "packed already"};
    if (args_.again) return;
    fail(Exit::usage,
         fmt::format("{}: {} is packed already, under {}; packing it once more adds the new bound to that one: give "
                     "--again if that is meant",
                     args_.input, path, bound_text(past.bound.kind, past.bound.value)));
  }

  /// The bound in stored numbers, and the filter's words for it.
  void choose_words(const Dataset& d, InputArray& array, PackJob& job) const {
    CodecArgs codec = args_.codec;
    job.stored = bound_of_values(job.stored, codec, array, args_.run);
    if (job.stored.kind == BoundKind::abs && job.stored.value == 0) job.stored.kind = BoundKind::lossless;
    job.words = filter_words(codec, job.stored, args_.rewritable ? FilterUse::by_others : FilterUse::write_once);
    if (job.stored.kind == BoundKind::lossless) return;
    const Vector<std::uint64_t> missing = h5_other_missing(d.dcpl.get(), d.type.get(), array);
    if (missing.size() > kMostMissing)
      throw LeftAlone{fmt::format("it has {} missing values, and the filter keeps {}", missing.size(), kMostMissing),
                      "with too many missing values"};
    declare_missing(missing, job.words);
  }

  hid_t file_;
  const H5Tree& tree_;
  const H5Args& args_;
  H5FieldRules rules_;
  std::unordered_map<std::size_t, Named> named_;
};

}  // namespace

void PackJob::change_bound(double in_stored_numbers) {
  stored.value = in_stored_numbers;
  const auto bits = std::bit_cast<std::uint64_t>(in_stored_numbers);
  words[3] = static_cast<unsigned>(bits >> 32);
  words[4] = static_cast<unsigned>(bits & 0xFFFFFFFF);
  record = record_of(*this);
}

ErrorBound PackJob::physical() const {
  if (stored.kind != BoundKind::abs || scale == 1) return stored;
  const double magnitude = std::fabs(scale);
  const double product = stored.value * magnitude;
  const bool rounded_down = std::fma(stored.value, magnitude, -product) > 0;
  return {BoundKind::abs, rounded_down ? std::nextafter(product, std::numeric_limits<double>::infinity()) : product};
}

H5Id packed_list(hid_t dcpl, const PackJob& job) {
  H5Id list(H5Pcopy(dcpl), H5Pclose);
  H5Premove_filter(list.get(), H5Z_FILTER_ALL);
  H5Eclear2(H5E_DEFAULT);
  h5_check(H5Pset_chunk(list.get(), static_cast<int>(job.chunk.size()), job.chunk.data()), "choose chunks");
  // Chunks that exist before they are written would be stored twice; edge chunks go through the filter, too.
  h5_check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_INCR), "choose when space is taken");
  unsigned options = 0;
  H5Pget_chunk_opts(list.get(), &options);
  if (options != 0) h5_check(H5Pset_chunk_opts(list.get(), 0), "choose chunks");
  h5_check(H5Pset_filter(list.get(), QUERN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, job.words.size(), job.words.data()),
           "set the filter");
  return list;
}

std::vector<std::string> fields_without_bound(hid_t file, const H5Tree& tree, const H5Args& args) {
  return Planner(file, tree, args).fields_without_bound();
}

PackPlan plan_pack(hid_t file, const H5Tree& tree, const H5Args& args) { return Planner(file, tree, args).plan(); }

}  // namespace quern::cli

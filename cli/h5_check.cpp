// quern h5 check: reads every chunk of every dataset that uses the filter.
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include <quern/dtype.h>
#include <quern/hdf5.h>
#include <quern/shape.h>

#include "cli/exit_codes.h"
#include "cli/file_report.h"
#include "cli/h5_file.h"
#include "cli/h5_work.h"
#include "cli/memory.h"

namespace quern::cli {
namespace {

using Extents = std::array<hsize_t, H5S_MAX_RANK>;

/// One dataset and the box of chunks it is made of.
struct Chunks {
  int rank = 0;
  Extents extents{};
  Extents chunk{};

  /// Moves to the next chunk in C order; false behind the last.
  bool next(Extents& origin) const {
    for (int a = rank; a-- > 0;) {
      origin[static_cast<std::size_t>(a)] += chunk[static_cast<std::size_t>(a)];
      if (origin[static_cast<std::size_t>(a)] < extents[static_cast<std::size_t>(a)]) return true;
      origin[static_cast<std::size_t>(a)] = 0;
    }
    return false;
  }
  bool empty() const {
    return std::find(extents.begin(), extents.begin() + rank, hsize_t{0}) != extents.begin() + rank;
  }
};

struct Tally {
  std::uint64_t datasets = 0;
  std::uint64_t chunks = 0;
  std::uint64_t damaged = 0;
  Json damage = Json::array();
};

/// Reads the part of one chunk that is inside the dataset; the reason when HDF5 or a filter refuses.
std::optional<std::string> read_chunk(hid_t dataset, hid_t type, hid_t space, const Chunks& chunks,
                                      const Extents& origin, Buffer& buffer) {
  Extents count{};
  hsize_t elems = 1;
  for (std::size_t a = 0; a < static_cast<std::size_t>(chunks.rank); ++a) {
    count[a] = std::min(chunks.chunk[a], chunks.extents[a] - origin[a]);
    elems *= count[a];
  }
  const H5Id memory(H5Screate_simple(1, &elems, nullptr), H5Sclose);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, origin.data(), nullptr, count.data(), nullptr);
  if (H5Dread(dataset, type, memory.get(), space, H5P_DEFAULT, buffer.data()) >= 0) return std::nullopt;
  return h5_reason();
}

std::string place_text(const Chunks& chunks, const Extents& origin) {
  return fmt::format("({})", fmt::join(origin.begin(), origin.begin() + chunks.rank, ", "));
}

void report_damage(const H5Args& args, const std::string& name, const std::string& place, const std::string& reason,
                   Tally& tally) {
  ++tally.damaged;
  tally.damage.push_back({{"dataset", name}, {"chunk", place}, {"reason", reason}});
  print_note(
      fmt::format("{}: {}, {}: {}", args.input, name, place.empty() ? "all chunks" : "chunk at " + place, reason));
}

/// HDF5 itself takes what a filter gives for as many bytes as type and chunk shape ask for, and would read beyond it.
bool settings_fit(hid_t dcpl, std::uint64_t chunk_bytes) {
  std::array<unsigned, 18> words{};
  std::size_t count = words.size();
  unsigned flags = 0, config = 0;
  if (H5Pget_filter_by_id2(dcpl, QUERN_HDF5_FILTER_ID, &flags, &count, words.data(), 0, nullptr, &config) < 0)
    return false;
  if (words[7] == 0) return true;  // an optional filter that could not serve this type: nothing of ours is stored
  if (words[6] > 255 || !is_known_dtype(static_cast<std::uint8_t>(words[6])) || words[7] > kMaxRank) return false;
  std::uint64_t bytes = dtype_bytes(static_cast<DType>(words[6]));
  for (std::size_t a = 0; a < words[7]; ++a) {
    const auto product = checked_multiply(bytes, words[8 + a]);
    if (!product) return false;
    bytes = *product;
  }
  return bytes == chunk_bytes;
}

void check_dataset(hid_t file, const std::string& name, const H5Args& args, Tally& tally) {
  // A cache of nothing: every chunk is decoded here, and memory stays at one chunk.
  const H5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access.get(), 1, 0, 1.0);
  const H5Id dataset(H5Dopen2(file, name.c_str(), access.get()), H5Dclose);
  if (!dataset.ok()) fail(Exit::io, fmt::format("{}: {} cannot be opened: {}", args.input, name, h5_reason()));
  const H5Id dcpl(H5Dget_create_plist(dataset.get()), H5Pclose);
  if (!h5_uses_quern(dcpl.get())) {
    if (!args.datasets.empty())
      fail(Exit::usage, fmt::format("{}: {} does not use the filter quern", args.input, name));
    return;
  }
  const H5Id type(H5Dget_type(dataset.get()), H5Tclose);
  const H5Id space(H5Dget_space(dataset.get()), H5Sclose);
  Chunks chunks;
  chunks.rank = H5Sget_simple_extent_dims(space.get(), chunks.extents.data(), nullptr);
  H5Pget_chunk(dcpl.get(), static_cast<int>(chunks.chunk.size()), chunks.chunk.data());
  ++tally.datasets;
  if (chunks.empty()) return;
  std::uint64_t bytes = H5Tget_size(type.get());
  for (int a = 0; a < chunks.rank; ++a) bytes *= chunks.chunk[static_cast<std::size_t>(a)];
  if (!settings_fit(dcpl.get(), bytes)) {
    report_damage(args, name, "", "the filter's settings do not fit the dataset's type and chunk shape", tally);
    return;
  }
  Buffer buffer(bytes, fmt::format("a chunk of {}", name));
  Extents origin{};
  do {
    ++tally.chunks;
    const auto reason = read_chunk(dataset.get(), type.get(), space.get(), chunks, origin, buffer);
    if (!reason) continue;
    report_damage(args, name, place_text(chunks, origin), *reason, tally);
  } while (chunks.next(origin));
}

}  // namespace

Exit check_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  Tally tally;
  for (const auto& names : h5_datasets(file.get(), args.datasets))
    check_dataset(file.get(), names.front(), args, tally);
  if (args.run.json) {
    print_json(Json{{"input", args.input},
                    {"datasets", tally.datasets},
                    {"chunks", tally.chunks},
                    {"damaged", tally.damaged},
                    {"damage", tally.damage}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} datasets with quern, {} chunks, {} damaged", args.input, tally.datasets,
                           tally.chunks, tally.damaged));
  }
  return tally.damaged == 0 ? Exit::ok : Exit::stream;
}

}  // namespace quern::cli

// quern h5 check: reads every chunk of every dataset that uses the filter.
#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include <quern/dtype.h>
#include <quern/hdf5.h>
#include <quern/shape.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/h5/boxes.h"
#include "cli/h5/chunk_shape.h"
#include "cli/h5/chunks.h"
#include "cli/h5/copy/tree.h"
#include "cli/h5/file.h"
#include "cli/h5/values.h"
#include "cli/h5/verb.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

constexpr std::size_t kDtypeWord = 6;
constexpr std::size_t kRankWord = 7;
constexpr std::size_t kExtentsWord = 8;
constexpr unsigned kWriteOnceBit = 0x20;

/// One dataset and the box of chunks it is made of.
struct Chunks {
  Extents extents;
  Extents chunk;

  /// Moves to the next chunk in C order; false behind the last.
  bool next(Extents& origin) const {
    for (std::size_t a = extents.size(); a-- > 0;) {
      origin[a] += chunk[a];
      if (origin[a] < extents[a]) return true;
      origin[a] = 0;
    }
    return false;
  }
  bool empty() const { return std::find(extents.begin(), extents.end(), hsize_t{0}) != extents.end(); }
};

struct Tally {
  std::uint64_t datasets = 0;
  std::uint64_t chunks = 0;
  std::uint64_t damaged = 0;
  Json damage = Json::array();
  Json settings = Json::array();
};

/// Chunks of a dataset under a lossy bound whose stream keeps every bit: they were written again after packing.
struct ExactChunks {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

void count_exact(hid_t dataset, const Extents& origin, ExactChunks& exact) {
  const std::uint64_t bytes = h5_chunk_bytes(dataset, origin);
  if (bytes == 0) return;
  H5StoredChunk chunk;
  h5_read_chunk(dataset, origin, bytes, chunk);
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  if (quern_inspect(chunk.bytes.data(), chunk.bytes.size(), &info) != QUERN_OK) return;
  if (info.requested_kind != QUERN_BOUND_LOSSLESS) return;
  ++exact.count;
  exact.bytes += bytes;
}

/// Reads the part of one chunk that is inside the dataset; the reason when HDF5 or a filter refuses.
std::optional<std::string> read_chunk(hid_t dataset, hid_t type, hid_t space, const Chunks& chunks,
                                      const Extents& origin, Buffer& buffer) {
  Extents count(origin.size());
  hsize_t elems = 1;
  for (std::size_t a = 0; a < count.size(); ++a) {
    count[a] = std::min(chunks.chunk[a], chunks.extents[a] - origin[a]);
    elems *= count[a];
  }
  const H5Id memory(H5Screate_simple(1, &elems, nullptr), H5Sclose);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, origin.data(), nullptr, count.data(), nullptr);
  if (H5Dread(dataset, type, memory.get(), space, H5P_DEFAULT, buffer.data()) >= 0) return std::nullopt;
  return h5_reason();
}

std::string place_text(const Extents& origin) { return fmt::format("({})", fmt::join(origin, ", ")); }

void report_damage(const H5Args& args, const std::string& name, const std::string& place, const std::string& reason,
                   Tally& tally) {
  ++tally.damaged;
  tally.damage.push_back({{"dataset", name}, {"chunk", place}, {"reason", reason}});
  print_note(
      fmt::format("{}: {}, {}: {}", args.input, name, place.empty() ? "all chunks" : "chunk at " + place, reason));
}

/// HDF5 itself takes what a filter gives for as many bytes as type and chunk shape ask for, and would read beyond it.
bool settings_fit(const std::vector<unsigned>& words, std::uint64_t chunk_bytes) {
  if (words.size() < kExtentsWord || words[kRankWord] == 0)
    return true;  // an optional filter that could not serve this type: nothing of ours is stored
  const unsigned dtype = words[kDtypeWord];
  if (dtype > 255 || !is_known_dtype(static_cast<std::uint8_t>(dtype)) || words[kRankWord] > kMaxRank ||
      words.size() < kExtentsWord + words[kRankWord])
    return false;
  std::uint64_t bytes = dtype_bytes(static_cast<DType>(dtype));
  for (std::size_t a = 0; a < words[kRankWord]; ++a) {
    const auto product = checked_multiply(bytes, words[kExtentsWord + a]);
    if (!product) return false;
    bytes = *product;
  }
  return bytes == chunk_bytes;
}

/// What the words ask the filter for.
Json settings_of(const std::string& name, const std::vector<unsigned>& words) {
  if (words.size() < QUERN_HDF5_REQUEST_WORDS) return Json{{"dataset", name}, {"words", words}};
  const double value = std::bit_cast<double>(std::uint64_t{words[3]} << 32 | words[4]);
  const auto kind = static_cast<BoundKind>(words[2] <= 3 ? words[2] : 0);
  return Json{{"dataset", name},
              {"codec", codec_name(words[1])},
              {"bound", bound_json(kind, value)},
              {"write_once", (words[5] & kWriteOnceBit) != 0},
              {"words", words}};
}

void note_settings(const H5Args& args, const Json& settings) {
  if (!args.run.verbose || args.run.quiet || args.run.json || !settings.contains("codec")) return;
  const Json& bound = settings["bound"];
  const auto kind = bound_kind_of(bound["kind"].get<std::string>()).value_or(BoundKind::lossless);
  print_note(
      fmt::format("{}: {} under {} (stored numbers), codec {}{}", args.input, settings["dataset"].get<std::string>(),
                  bound_text(kind, bound["value"].is_number() ? bound["value"].get<double>() : 0.0),
                  settings["codec"].get<std::string>(), settings["write_once"].get<bool>() ? ", written once" : ""));
}

void note_exact(const H5Args& args, const std::string& name, const ExactChunks& exact, Tally& tally) {
  tally.settings.back()["exact_chunks"] = exact.count;
  tally.settings.back()["exact_bytes"] = exact.bytes;
  if (exact.count == 0 || args.run.quiet || args.run.json) return;
  print_note(
      fmt::format("{}: {}: {} chunks were written again after packing and keep every bit, in {} bytes; pack the "
                  "original with --rewritable to keep such chunks small",
                  args.input, name, exact.count, exact.bytes));
}

void check_dataset(hid_t file, haddr_t address, const std::string& name, const H5Args& args, Tally& tally) {
  const H5Id dataset = h5_open_at(file, address);
  const H5Id dcpl(H5Dget_create_plist(dataset.get()), H5Pclose);
  if (!h5_uses_quern(dcpl.get())) {
    if (!args.datasets.empty())
      fail(Exit::usage, fmt::format("{}: {} does not use the filter quern", args.input, name));
    return;
  }
  const H5Id type(H5Dget_type(dataset.get()), H5Tclose);
  const H5Id space(H5Dget_space(dataset.get()), H5Sclose);
  const Chunks chunks{h5_extents(space.get()), h5_chunk(dcpl.get())};
  const std::vector<unsigned> words = h5_words(dcpl.get());
  tally.settings.push_back(settings_of(name, words));
  note_settings(args, tally.settings.back());
  ++tally.datasets;
  if (chunks.empty()) return;
  const std::uint64_t bytes = h5_bytes_of_chunk(chunks.chunk, H5Tget_size(type.get()));
  if (!settings_fit(words, bytes)) {
    report_damage(args, name, "", "the filter's settings do not fit the dataset's type and chunk shape", tally);
    return;
  }
  Buffer buffer(bytes, fmt::format("a chunk of {}", name));
  Extents origin(chunks.extents.size(), 0);
  const bool lossy = words.size() > 2 && words[2] != QUERN_BOUND_LOSSLESS;
  ExactChunks exact;
  do {
    ++tally.chunks;
    if (lossy) count_exact(dataset.get(), origin, exact);
    const auto reason = read_chunk(dataset.get(), type.get(), space.get(), chunks, origin, buffer);
    if (!reason) continue;
    report_damage(args, name, place_text(origin), *reason, tally);
  } while (chunks.next(origin));
  if (lossy) note_exact(args, name, exact, tally);
}

}  // namespace

Exit check_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  Tally tally;
  const H5Tree tree = h5_tree(file.get());
  std::vector<std::size_t> chosen;
  for (const std::string& name : args.datasets) chosen.push_back(h5_find_dataset(file.get(), tree, name));
  for (std::size_t i = 0; i < tree.objects.size() && args.datasets.empty(); ++i)
    if (tree.objects[i].type == H5O_TYPE_DATASET) chosen.push_back(i);
  for (const std::size_t i : chosen) check_dataset(file.get(), tree.objects[i].address, tree.path(i), args, tally);
  if (args.run.json) {
    print_json(Json{{"input", args.input},
                    {"datasets", tally.datasets},
                    {"chunks", tally.chunks},
                    {"damaged", tally.damaged},
                    {"damage", tally.damage},
                    {"settings", tally.settings}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} datasets with quern, {} chunks, {} damaged", args.input, tally.datasets,
                           tally.chunks, tally.damaged));
  }
  return tally.damaged == 0 ? Exit::ok : Exit::stream;
}

}  // namespace quern::cli

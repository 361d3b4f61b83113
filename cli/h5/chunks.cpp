// HDF5's calls for raw chunks.
#include "cli/h5/chunks.h"

#include "cli/h5/file.h"

namespace quern::cli {
namespace {

std::size_t refuse_to_work(unsigned /*flags*/, std::size_t /*count*/, const unsigned* /*words*/, std::size_t /*bytes*/,
                           std::size_t* /*capacity*/, void** /*buffer*/) {
  return 0;
}

/// Looking every possible chunk up is quick unless most were never written; HDF5 counts through its index for each
/// chunk that is asked for by number.
constexpr std::uint64_t kSparse = 16;

bool advance(Extents& at, const Extents& extents, const Extents& chunk) {
  for (std::size_t a = at.size(); a-- > 0;) {
    at[a] += chunk[a];
    if (at[a] < extents[a]) return true;
    at[a] = 0;
  }
  return false;
}

std::uint64_t places(const Extents& extents, const Extents& chunk) {
  std::uint64_t out = 1;
  for (std::size_t a = 0; a < extents.size(); ++a)
    if (__builtin_mul_overflow(out, extents[a] / chunk[a] + (extents[a] % chunk[a] != 0 ? 1 : 0), &out))
      return UINT64_MAX;
  return out;
}

}  // namespace

void h5_for_chunks(hid_t dataset, const std::function<bool(const Extents& origin, std::uint64_t bytes)>& use) {
  const H5Id space(H5Dget_space(dataset), H5Sclose);
  const H5Id dcpl(H5Dget_create_plist(dataset), H5Pclose);
  const Extents extents = h5_extents(space.get());
  const Extents chunk = h5_chunk(dcpl.get());
  hsize_t stored = 0;
  h5_check(H5Dget_num_chunks(dataset, space.get(), &stored), "count the chunks of a dataset");
  if (stored == 0) return;
  Extents at(extents.size(), 0);
  if (places(extents, chunk) / kSparse <= stored) {
    do {
      const std::uint64_t bytes = h5_chunk_bytes(dataset, at);
      if (bytes != 0 && !use(at, bytes)) return;
    } while (advance(at, extents, chunk));
    return;
  }
  for (hsize_t i = 0; i < stored; ++i) {
    hsize_t bytes = 0;
    haddr_t address = HADDR_UNDEF;
    unsigned mask = 0;
    h5_check(H5Dget_chunk_info(dataset, space.get(), i, at.data(), &mask, &address, &bytes), "find a chunk");
    if (!use(at, bytes)) return;
  }
}

std::uint64_t h5_chunk_bytes(hid_t dataset, const Extents& origin) {
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  h5_check(H5Dget_chunk_info_by_coord(dataset, origin.data(), &mask, &address, &bytes), "find a chunk");
  return address == HADDR_UNDEF ? 0 : bytes;
}

void h5_read_chunk(hid_t dataset, const Extents& origin, std::uint64_t bytes, H5StoredChunk& out) {
  out.bytes.resize(static_cast<std::size_t>(bytes));
  h5_check(H5Dread_chunk(dataset, H5P_DEFAULT, origin.data(), &out.skipped_filters, out.bytes.data()),
           "read a stored chunk");
}

void h5_write_chunk(hid_t dataset, const Extents& origin, const H5StoredChunk& chunk) {
  h5_check(H5Dwrite_chunk(dataset, H5P_DEFAULT, chunk.skipped_filters, origin.data(), chunk.bytes.size(),
                          chunk.bytes.data()),
           "write a chunk (is the disk full?)");
}

void h5_move_chunks(hid_t from, hid_t to) {
  H5StoredChunk chunk;
  h5_for_chunks(from, [&](const Extents& origin, std::uint64_t bytes) {
    h5_read_chunk(from, origin, bytes, chunk);
    h5_write_chunk(to, origin, chunk);
    return true;
  });
}

void h5_stand_in_for_filters(hid_t dcpl) {
  for (int i = 0; i < H5Pget_nfilters(dcpl); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t words = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &words, nullptr, 0, nullptr, &config);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    const H5Z_class2_t stand_in{H5Z_CLASS_T_VERS, filter, 1, 1, "stand-in", nullptr, nullptr, refuse_to_work};
    h5_check(H5Zregister(&stand_in), "stand in for a filter that is not there");
  }
  H5Eclear2(H5E_DEFAULT);
}

}  // namespace quern::cli

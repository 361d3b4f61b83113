// Boxes of values go through a file in memory, where quern_hdf5_write_with() fills whole datasets on many threads;
// their chunks are then moved as they are.
#include "cli/h5/pack_write.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/h5/boxes.h"
#include "cli/h5/chunk_shape.h"
#include "cli/h5/chunks.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kBoxBytes = UINT64_C(64) << 20;

/// Values at a time: enough chunks for all threads, a small part of the memory that may be used.
std::uint64_t box_bytes(const PackJob& job, const RunArgs& run) {
  const std::uint64_t chunk = h5_bytes_of_chunk(job.chunk, dtype_bytes(job.dtype));
  const std::uint64_t wanted = std::max(kBoxBytes, 4 * chunk * thread_count(run));
  return std::min(wanted, memory_limit(run) / 8);
}

/// About what HDF5's index takes for a dataset that had none; a node has room for 64 chunks.
std::uint64_t new_index_bytes(const PackJob& job) {
  if (job.was_chunked) return 0;
  constexpr std::uint64_t kEntries = 64;
  return (kEntries + 1) * (8 + 8 * (job.chunk.size() + 1)) + kEntries * 8 + 24;
}

/// A dataset of one box's shape in a file in memory.
class Workshop {
 public:
  Workshop(hid_t type, hid_t list) : type_(H5Tcopy(type), H5Tclose), list_(list) {
    const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    h5_check(H5Pset_fapl_core(access.get(), std::size_t{1} << 22, false), "keep a file in memory");
    file_ = H5Id(H5Fcreate("box.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  }
  H5Id pack(const Extents& extents, DType dtype, const void* values, std::size_t threads) const {
    const H5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    H5Id out(H5Dcreate_anon(file_.get(), type_.get(), space.get(), list_, H5P_DEFAULT), H5Dclose);
    if (!out.ok()) h5_fail("make a dataset in memory");
    quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
    desc.threads = static_cast<std::uint32_t>(threads);
    if (quern_hdf5_write_with(out.get(), static_cast<quern_dtype>(dtype), values, &desc) < 0)
      fail(Exit::resource, "a part of a dataset cannot be packed: " + h5_reason());
    return out;
  }

 private:
  H5Id file_;
  H5Id type_;
  hid_t list_;
};

/// Moves a box's chunks to their places. Where the original has chunks of the same shape, those that were never written
/// there are not written either. Returns the bytes.
std::uint64_t move_box(hid_t box_dataset, const H5Box& box, hid_t from, bool same_chunks, hid_t to) {
  std::uint64_t moved = 0;
  H5StoredChunk chunk;
  h5_for_chunks(box_dataset, [&](const Extents& origin, std::uint64_t bytes) {
    Extents place = origin;
    for (std::size_t a = 0; a < place.size(); ++a) place[a] += box.origin[a];
    if (same_chunks && h5_chunk_bytes(from, place) == 0) return true;
    h5_read_chunk(box_dataset, origin, bytes, chunk);
    h5_write_chunk(to, place, chunk);
    moved += bytes;
    return true;
  });
  return moved;
}

[[noreturn]] void leave_larger(const PackJob& job) {
  if (job.was_chunked && h5_bytes_of_chunk(job.chunk, dtype_bytes(job.dtype)) < kTinyChunkBytes)
    throw LeftAlone{fmt::format("its chunks of {} bytes are too small to get smaller; --rechunk merges them",
                                h5_bytes_of_chunk(job.chunk, dtype_bytes(job.dtype))),
                    "that would not get smaller (--rechunk merges small chunks)"};
  throw LeftAlone{"it would not get smaller", "that would not get smaller"};
}

}  // namespace

std::uint64_t h5_value_bytes(hid_t dataset) {
  const H5Id type(H5Dget_type(dataset), H5Tclose);
  const H5Id space(H5Dget_space(dataset), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  return count <= 0 ? 0 : static_cast<std::uint64_t>(count) * H5Tget_size(type.get());
}

H5Id write_packed(hid_t from, hid_t file, hid_t type, const PackJob& job, const H5Args& args, const BytesDone& done) {
  const H5Id dcpl(H5Dget_create_plist(from), H5Pclose);
  const H5Id space(H5Dget_space(from), H5Sclose);
  const H5Id list = packed_list(dcpl.get(), job);
  const H5Id machine(h5_machine_type(type), H5Tclose);
  const bool same_chunks = h5_chunk(dcpl.get()) == job.chunk;
  const std::uint64_t before = H5Dget_storage_size(from);
  const std::uint64_t all_bytes = h5_value_bytes(from);
  std::uint64_t after = new_index_bytes(job);

  const std::size_t width = H5Tget_size(type);
  H5Boxes boxes(h5_extents(space.get()), job.chunk, width, box_bytes(job, args.run));
  Buffer values(boxes.largest_elems() * width, job.name);
  H5Id out;
  for (H5Box box; boxes.next(box);) {
    h5_read_box(from, machine.get(), box, values.data());
    const Workshop workshop(type, list.get());
    const H5Id packed = workshop.pack(box.extents, job.dtype, values.data(), thread_count(args.run));
    const std::uint64_t box_size = box.elems() * width;
    if (!out.ok()) {
      // Decided before anything is written that would leave a hole in the file, where one box shows it.
      const bool shows = box_size == all_bytes || h5_bytes_of_chunk(job.chunk, width) < kTinyChunkBytes;
      const double share = static_cast<double>(box_size) / static_cast<double>(all_bytes);
      const auto packed_size = static_cast<double>(after + H5Dget_storage_size(packed.get()));
      if (shows && packed_size >= share * static_cast<double>(before)) leave_larger(job);
      out = H5Id(H5Dcreate_anon(file, type, space.get(), list.get(), H5P_DEFAULT), H5Dclose);
      if (!out.ok()) h5_fail("make the packed dataset " + job.name);
    }
    after += move_box(packed.get(), box, from, same_chunks, out.get());
    if (after >= before) leave_larger(job);
    done(box_size);
  }
  return out;
}

H5Id write_to_target(hid_t from, hid_t file, hid_t type, PackJob& job, const H5Args& args, const BytesDone& done) {
  constexpr int kRounds = 6;
  constexpr int kRaises = 2;
  constexpr double kSpareDb = 0.3;
  const auto silent = [](std::uint64_t) {};
  H5Id out = write_packed(from, file, type, job, args, done);
  std::optional<double> met;  // the largest bound that was seen to reach the PSNR
  for (int round = 0; job.stored.kind == BoundKind::abs; ++round) {
    double factor = 1;
    if (job.asked.kind == BoundKind::psnr) {
      const auto psnr = check_packed(from, out.get(), job, args, silent).psnr_db;
      const bool missed = psnr && *psnr < job.asked.value;
      if (!missed) met = std::max(met.value_or(0), job.stored.value);
      if (missed && met && round >= kRounds) {
        job.change_bound(*met);
        out = H5Id();
        return write_packed(from, file, type, job, args, silent);
      }
      // Chunks by themselves may exceed the PSNR, too.
      const bool to_spare = round < kRaises && psnr && *psnr > job.asked.value + kSpareDb;
      if (missed || to_spare) factor = std::pow(10, (*psnr - job.asked.value - 0.05) / 20);
      // Where steps of the type are wider than those of the bound, many bounds give one PSNR.
      if (missed && !met && round >= kRounds / 2) factor = std::min(factor, 0.5);
    } else if (job.asked.kind == BoundKind::ratio) {
      const double ratio =
          static_cast<double>(h5_value_bytes(from)) / static_cast<double>(H5Dget_storage_size(out.get()));
      if (ratio < job.asked.value) factor = std::min(4.0, 1.01 * std::pow(job.asked.value / ratio, 1.2));
    }
    if (factor == 1 || round >= kRounds) break;
    job.change_bound(job.stored.value * factor);
    out = H5Id();
    out = write_packed(from, file, type, job, args, silent);
  }
  return out;
}

PackedQuality check_packed(hid_t from, hid_t to, const PackJob& job, const H5Args& args, const BytesDone& done) {
  const H5Id type(H5Dget_type(from), H5Tclose);
  const H5Id space(H5Dget_space(from), H5Sclose);
  const H5Id machine(h5_machine_type(type.get()), H5Tclose);
  const std::size_t width = H5Tget_size(type.get());
  H5Boxes boxes(h5_extents(space.get()), job.chunk, width, box_bytes(job, args.run));
  Buffer original(boxes.largest_elems() * width, job.name);
  Buffer packed(boxes.largest_elems() * width, job.name);
  PieceCheck total;
  for (H5Box box; boxes.next(box);) {
    h5_read_box(from, machine.get(), box, original.data());
    h5_read_box(to, machine.get(), box, packed.data());
    const PieceCheck piece =
        check_piece(original.data(), packed.data(), job.dtype, box.elems(), job.stored, job.fill_bits, args.run);
    if (piece.violations != 0)
      fail(Exit::bound, fmt::format("{}: {} values miss the bound; the output was not kept, please report this",
                                    job.name, piece.violations));
    if (piece.valid != 0) {
      total.min = total.valid == 0 ? piece.min : std::min(total.min, piece.min);
      total.max = total.valid == 0 ? piece.max : std::max(total.max, piece.max);
    }
    total.valid += piece.valid;
    total.squares += piece.squares;
    total.max_error = std::max(total.max_error, piece.max_error);
    done(box.elems() * width);
  }
  PackedQuality out;
  out.max_error = total.max_error * std::fabs(job.scale);
  if (total.squares > 0)
    out.psnr_db =
        20 * std::log10(total.max - total.min) - 10 * std::log10(total.squares / static_cast<double>(total.valid));
  return out;
}

}  // namespace quern::cli

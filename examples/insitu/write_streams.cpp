// Way 2: the C interface on every rank, one file of streams a step through MPI-IO.
#include <algorithm>
#include <cstdio>

#include "examples/insitu/writers.h"

namespace {

void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, reason, &length);
  fail("cannot " + what + ": " + reason);
}

/// MPI counts in int: more than 1 GiB a rank goes in rounds, as many for every rank.
void write_collectively(MPI_File file, std::uint64_t offset, const std::vector<unsigned char>& bytes, MPI_Comm ranks) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  std::uint64_t rounds = (bytes.size() + kMost - 1) / kMost;
  MPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_UINT64_T, MPI_MAX, ranks);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t from = std::min<std::uint64_t>(round * kMost, bytes.size());
    const auto count = static_cast<int>(std::min<std::uint64_t>(kMost, bytes.size() - from));
    const std::uint64_t place = offset + from;
    MPI_Status status;
    check_mpi(
        MPI_File_write_at_all(file, static_cast<MPI_Offset>(place), bytes.data() + from, count, MPI_BYTE, &status),
        "write streams");
    int written = 0;
    MPI_Get_count(&status, MPI_BYTE, &written);
    // ROMIO leaves the status of a rank that writes nothing as it was.
    if (count > 0 && written != count) fail("cannot write streams: the disk took only a part of them");
  }
}

/// `table`: for every rank its first plane, its planes, and the sizes of its streams.
std::string make_index(const Block& block, const Step& step, const std::vector<Field>& fields,
                       const std::vector<std::uint64_t>& table) {
  char time[32];
  std::snprintf(time, sizeof time, "%.17g", step.time);
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  std::string index = "{\"step\":" + text(step.number) + ",\"time\":" + time + ",\"shape\":[" + text(block.global[0]) +
                      "," + text(block.global[1]) + "," + text(block.global[2]) + "],\"streams\":[";
  std::uint64_t offset = 0;
  for (std::size_t at = 0; at < table.size(); at += 2 + fields.size()) {
    for (std::size_t i = 0; i < fields.size() && table[at + 1] > 0; ++i) {
      const std::uint64_t size = table[at + 2 + i];
      index += std::string(offset > 0 ? ",\n" : "\n") + "{\"field\":\"" + fields[i].name +
               "\",\"first\":" + text(table[at]) + ",\"planes\":" + text(table[at + 1]) +
               ",\"offset\":" + text(offset) + ",\"bytes\":" + text(size) + "}";
      offset += size;
    }
  }
  char tail[32];
  std::snprintf(tail, sizeof tail, "%020llu\n", static_cast<unsigned long long>(offset));
  return index + "]}\n" + tail;
}

}  // namespace

StreamSeries::StreamSeries(MPI_Comm ranks, const Block& block, Bound bound) : ranks_(ranks), block_(block) {
  if (quern_context_create(nullptr, &context_) != QUERN_OK || quern_params_create(&params_) != QUERN_OK ||
      quern_params_set_bound(params_, bound.kind, bound.value) != QUERN_OK)
    fail(std::string("cannot use this bound: ") + quern_last_error(nullptr));
}

StreamSeries::~StreamSeries() {
  for (quern_session* const session : sessions_) quern_session_destroy(session);
  quern_params_destroy(params_);
  quern_context_destroy(context_);
}

void StreamSeries::compress(const std::vector<Field>& fields, std::vector<unsigned char>& bytes,
                            std::vector<std::uint64_t>& sizes) {
  const std::uint64_t extents[] = {block_.planes, block_.global[1], block_.global[2]};
  sessions_.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (sessions_[i] == nullptr && quern_session_create(nullptr, 0, &sessions_[i]) != QUERN_OK)
      fail(std::string("cannot begin a session: ") + quern_last_error(nullptr));
    quern_array array;
    std::uint64_t room = 0, size = 0;
    quern_array_init(&array, QUERN_F64, 3, extents, const_cast<double*>(fields[i].values.data()));
    if (quern_compress_bound(&array, params_, &room) != QUERN_OK) fail("cannot compress an array of this shape");
    const std::size_t before = bytes.size();
    bytes.resize(before + room);
    if (quern_session_compress(context_, sessions_[i], params_, &array, bytes.data() + before, room, &size, nullptr) !=
        QUERN_OK)
      fail("cannot compress " + fields[i].name + ": " + quern_last_error(context_));
    bytes.resize(before + size);
    sizes.push_back(size);
  }
}

StreamsWritten StreamSeries::write(const std::string& path, const Step& step, const std::vector<Field>& fields) {
  const double start = MPI_Wtime();
  std::vector<unsigned char> bytes;
  std::vector<std::uint64_t> row{block_.first, block_.planes};
  if (block_.planes > 0) compress(fields, bytes, row);
  row.resize(2 + fields.size(), 0);
  const double compress_seconds = MPI_Wtime() - start;

  // Where this rank's bytes begin: after those of all ranks before it.
  int rank = 0, count = 1;
  MPI_Comm_rank(ranks_, &rank);
  MPI_Comm_size(ranks_, &count);
  const std::uint64_t size = bytes.size();
  std::uint64_t offset = 0, total = 0;
  MPI_Exscan(&size, &offset, 1, MPI_UINT64_T, MPI_SUM, ranks_);
  MPI_Allreduce(&size, &total, 1, MPI_UINT64_T, MPI_SUM, ranks_);
  if (rank == 0) offset = 0;  // MPI_Exscan leaves rank 0's result undefined
  std::vector<std::uint64_t> table(rank == 0 ? row.size() * static_cast<std::size_t>(count) : 0);
  const int columns = static_cast<int>(row.size());
  MPI_Gather(row.data(), columns, MPI_UINT64_T, table.data(), columns, MPI_UINT64_T, 0, ranks_);

  // The file has its name when it is complete.
  const std::string unfinished = path + ".part";
  MPI_File file;
  check_mpi(MPI_File_open(ranks_, unfinished.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
            "create " + unfinished);
  check_mpi(MPI_File_set_size(file, 0), "empty " + unfinished);
  write_collectively(file, offset, bytes, ranks_);
  const std::string index = rank == 0 ? make_index(block_, step, fields, table) : "";
  write_collectively(file, total, {index.begin(), index.end()}, ranks_);
  check_mpi(MPI_File_close(&file), "close " + unfinished);
  if (rank == 0 && std::rename(unfinished.c_str(), path.c_str()) != 0) fail("cannot rename " + unfinished);
  return {total, compress_seconds};
}

// Parts, hostile: heads, indexes and whole parts whose checksums are right give records and values that the manifest
// names, or a status; scanning finds no record outside the file.
#include "checkpoint/restore/verify.h"
#include "tests/fuzz/checkpoint_input.h"

namespace {

using namespace quern;
using namespace quern::checkpoint;

constexpr std::uint64_t kMostMemory = UINT64_C(8) << 20;

void read_head(std::span<const std::uint8_t> body) {
  auto rest = body;
  const auto head = read_tensor_head(rest);
  if (!head.ok()) return;
  QUERN_FUZZ_CHECK(rest.size() <= body.size());
  const auto taken = body.first(body.size() - rest.size());
  const Vector<std::uint8_t> again = make_tensor_head(*head);
  QUERN_FUZZ_CHECK(std::equal(taken.begin(), taken.end(), again.begin(), again.end()));
}

void read_records(fuzz::Feed& feed) {
  const std::uint64_t begin = kPartHeaderBytes + kRecordAlignment * feed.raw<std::uint16_t>();
  const auto records = read_index(feed.rest(), begin);
  if (!records.ok()) return;
  std::uint64_t at = kPartHeaderBytes;
  for (const Record& record : *records) {
    QUERN_FUZZ_CHECK(record.offset == at && record.end() > at);
    at = record.end();
  }
  QUERN_FUZZ_CHECK(at == begin);
  const Vector<std::uint8_t> again = make_index(*records);
  QUERN_FUZZ_CHECK(std::equal(again.begin(), again.end(), feed.rest().begin(), feed.rest().end()));
}

/// A part that is not sealed: only scanning gets anywhere.
void scan(std::span<const std::uint8_t> bytes) {
  testing::SimulatedDisk disk;
  auto file = disk.create("part");
  QUERN_FUZZ_CHECK(file.ok());
  const Vector<std::uint8_t> header(kPartHeaderBytes);
  QUERN_FUZZ_CHECK(write_fully(**file, 0, header).ok() && write_fully(**file, header.size(), bytes).ok());
  const auto records = scan_part(**file);
  QUERN_FUZZ_CHECK(records.ok());
  for (const Record& record : *records) QUERN_FUZZ_CHECK(record.end() <= kPartHeaderBytes + bytes.size());
}

/// A sealed part in the place of a checkpoint's, which its manifest knows.
void restore(std::size_t checkpoint, std::span<const std::uint8_t> list) {
  static fuzz::SmallStore small;
  const CheckpointName& name = small.names[checkpoint];
  const Store store = small.store();
  Report report;
  auto manifest = store.read(name, report);
  QUERN_FUZZ_CHECK(manifest.ok() && manifest->parts.size() == 1);
  const auto part = fuzz::sealed_part(part_identity(name, 0), list, manifest->parts[0]);
  const auto sealed = write_manifest(*manifest, report);
  QUERN_FUZZ_CHECK(sealed.ok());
  auto& manifest_file = small.disk.bytes_of(std::string(store.manifest_path(name)));
  auto& part_file = small.disk.bytes_of(std::string(store.data_folder(name.id)) + "/part-0000");
  const auto kept_manifest = manifest_file;
  const auto kept_part = part_file;
  manifest_file.assign(sealed->begin(), sealed->end());
  part_file.assign(part.begin(), part.end());
  fuzz::restore_all(store, name);
  SerialRunner runner;
  (void)verify_checkpoint(store, name, true, runner);
  manifest_file = kept_manifest;
  part_file = kept_part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const std::uint8_t what = feed.byte() % 7;
  const fuzz::AllocationWatch watch;
  switch (what) {
    case 0: read_head(feed.rest()); break;
    case 1: read_records(feed); break;
    case 2: scan(feed.rest()); break;
    default: restore(what - 3u, feed.rest()); break;
  }
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory + 64 * size);
  return 0;
}

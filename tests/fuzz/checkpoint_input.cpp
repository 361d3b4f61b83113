// A small store, lists of records and their sealing.
#include "tests/fuzz/checkpoint_input.h"

#include "checkpoint/save/save.h"
#include "libcompress/format/writer.h"
#include "tests/faults/small_store.h"

namespace quern::fuzz {

using namespace checkpoint;

SmallStore::SmallStore() {
  Report report;
  SaveOptions options;
  options.step = 1;
  QUERN_FUZZ_CHECK(testing::save_small(store(), options, report).ok());
  options.step = 2;
  options.base = 1;
  QUERN_FUZZ_CHECK(testing::save_small(store(), options, report).ok());
  options.step = 3;
  options.base.reset();
  QUERN_FUZZ_CHECK(testing::save_small_lossy(store(), options, report).ok());
  options.step = 4;
  options.base = 3;
  QUERN_FUZZ_CHECK(testing::save_small_lossy(store(), options, report).ok());
  auto listed = store().list(report);
  QUERN_FUZZ_CHECK(listed.ok() && listed->size() == 4);
  names = std::move(*listed);
}

void append_record(const Record& record, std::span<const std::uint8_t> body, Vector<std::uint8_t>& list) {
  Writer writer(list);
  writer.u8(static_cast<std::uint8_t>(record.kind));
  writer.u8(record.mode);
  writer.u16(static_cast<std::uint16_t>(record.tensor));
  writer.u16(static_cast<std::uint16_t>(record.chunk));
  writer.u32(record.raw_bytes);
  writer.u16(static_cast<std::uint16_t>(body.size()));
  writer.bytes(body);
}

Vector<std::uint8_t> sealed_part(const PartIdentity& identity, std::span<const std::uint8_t> list, PartInfo& info) {
  Vector<std::uint8_t> part(kPartHeaderBytes);
  write_part_header(identity, std::span(part).first<kPartHeaderBytes>());
  Vector<Record> records;
  Feed feed(list);
  while (!feed.rest().empty()) {
    Record record;
    record.kind = static_cast<RecordKind>(1 + feed.byte() % 3);
    record.mode = feed.byte();
    record.tensor = feed.raw<std::uint16_t>();
    record.chunk = feed.raw<std::uint16_t>();
    record.raw_bytes = feed.raw<std::uint32_t>();
    const auto body = feed.take(feed.raw<std::uint16_t>());
    record.body_bytes = static_cast<std::uint32_t>(body.size());
    record.offset = part.size();
    std::array<std::uint8_t, kRecordHeaderBytes> header{};
    write_record_header(record, body, header);
    part.insert(part.end(), header.begin(), header.end());
    part.insert(part.end(), body.begin(), body.end());
    part.resize(static_cast<std::size_t>(record.end()), 0);
    records.push_back(record);
  }
  const Vector<std::uint8_t> index = make_index(records);
  info.index_checksum = index_checksum(index);
  std::array<std::uint8_t, kPartTrailerBytes> trailer{};
  write_part_trailer({info.index_checksum, index.size()}, trailer);
  part.insert(part.end(), index.begin(), index.end());
  part.insert(part.end(), trailer.begin(), trailer.end());
  info.bytes = part.size();
  return part;
}

void restore_all(const Store& store, const CheckpointName& name) {
  SerialRunner runner;
  Restorer restorer(store, runner);
  Report report;
  const auto manifest = restorer.manifest(name, report);
  if (!manifest.ok()) return;
  AlignedBuffer values;
  for (std::size_t i = 0; i < (*manifest)->tensors.size(); ++i) {
    if (!restorer.tensor(name, i, values, report).ok()) continue;
    const auto place = restorer.resolve(name, i, report);
    QUERN_FUZZ_CHECK(place.ok());
    const auto there = restorer.manifest(place->checkpoint, report);
    QUERN_FUZZ_CHECK(there.ok());
    const ManifestTensor& tensor = (*there)->tensors[place->tensor];
    QUERN_FUZZ_CHECK(values.size() == tensor.what.bytes());
    QUERN_FUZZ_CHECK(content_hash(values.span()) == tensor.restored());
  }
  Vector<std::uint8_t> blob;
  for (std::size_t i = 0; i < (*manifest)->blobs.size(); ++i)
    if (restorer.blob(name, i, blob, report).ok())
      QUERN_FUZZ_CHECK(content_hash(blob) == (*manifest)->blobs[i].content);
}

}  // namespace quern::fuzz

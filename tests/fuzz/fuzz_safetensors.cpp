// safetensors headers and shard indexes, hostile: refused, or their tensors tile the data and the header comes out byte
// for byte.
#include "checkpoint/safetensors/safetensors.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::checkpoint;

constexpr std::uint64_t kMostMemory = UINT64_C(1) << 20;
constexpr std::uint64_t kForEachByte = 400;  // what parsed JSON takes beside its text

void read_header(std::string_view text, std::uint64_t data_bytes) {
  Report report;
  const fuzz::AllocationWatch watch;
  const auto header = parse_safetensors_header(text, data_bytes, report);
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory + kForEachByte * text.size());
  if (!header.ok()) return;
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : header->tensors) {
    QUERN_FUZZ_CHECK(tensor.begin == at && tensor.end >= at && tensor.end - tensor.begin == tensor.what.bytes());
    at = tensor.end;
  }
  QUERN_FUZZ_CHECK(at == data_bytes && header->data_bytes() == data_bytes);
  QUERN_FUZZ_CHECK(std::string_view(header->text) == text);
  if (header->form != HeaderForm::verbatim) QUERN_FUZZ_CHECK(make_header_text(*header) == text);
  // A header of the same tensors laid out anew is read as the same tensors.
  SafetensorsHeader fresh;
  fresh.tensors = header->tensors;
  fresh.has_metadata = header->has_metadata;
  fresh.metadata = header->metadata;
  lay_out(fresh);
  const auto again = parse_safetensors_header(fresh.text, data_bytes, report);
  QUERN_FUZZ_CHECK(again.ok(), std::string(report.problem));
  QUERN_FUZZ_CHECK(again->tensors.size() == header->tensors.size());
  for (std::size_t i = 0; i < again->tensors.size(); ++i)
    QUERN_FUZZ_CHECK(again->tensors[i].name == header->tensors[i].name &&
                     again->tensors[i].what.shape == header->tensors[i].what.shape &&
                     again->tensors[i].what.type == header->tensors[i].what.type);
  QUERN_FUZZ_CHECK(again->metadata == header->metadata);
}

void read_index(std::string_view text) {
  Report report;
  const auto index = parse_shard_index(text, report);
  if (!index.ok()) return;
  const String written = make_shard_index(*index, 12345);
  const auto again = parse_shard_index(written, report);
  QUERN_FUZZ_CHECK(again.ok(), std::string(report.problem));
  QUERN_FUZZ_CHECK(again->files == index->files);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const bool index = feed.byte() % 2 != 0;
  const std::uint64_t data_bytes = feed.raw<std::uint32_t>();
  const std::string_view text(reinterpret_cast<const char*>(feed.rest().data()), feed.rest().size());
  if (index) {
    read_index(text);
  } else {
    read_header(text, data_bytes);
  }
  return 0;
}

// Writes the seeds of the targets safetensors, manifest and part.
// usage: make_checkpoint_corpus FOLDER. Run again after a change of the format, and commit what it writes.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "checkpoint/safetensors/safetensors.h"
#include "libcompress/format/writer.h"
#include "tests/fuzz/checkpoint_input.h"

namespace {

using namespace quern;
using namespace quern::checkpoint;
using Bytes = Vector<std::uint8_t>;

bool write(const std::filesystem::path& root, const char* target, const std::string& name, const Bytes& bytes) {
  std::filesystem::create_directories(root / target);
  std::ofstream out(root / target / name, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(out.flush());
}

Bytes seed(std::uint8_t what, std::span<const std::uint8_t> bytes) {
  Bytes out{what};
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Bytes header_seed(std::uint32_t data_bytes, std::string_view text, bool index = false) {
  Bytes out;
  Writer writer(out);
  writer.u8(index ? 1 : 0);
  writer.u32(data_bytes);
  writer.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return out;
}

bool write_headers(const std::filesystem::path& root) {
  return write(root, "safetensors", "compact",
               header_seed(40, R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                               R"("b":{"dtype":"BF16","shape":[8],"data_offsets":[24,40]}})")) &&
         write(root, "safetensors", "spaced",
               header_seed(8, R"({"__metadata__": {"step": "400", "q\"": "\u00e9\n"}, )"
                              R"("x": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}    )")) &&
         write(root, "safetensors", "verbatim",
               header_seed(6, R"({ "x":{"shape":[6],"dtype":"U8","data_offsets":[0,6]},"e":{"dtype":"F16",)"
                              R"("shape":[0,4],"data_offsets":[6,6]}})")) &&
         write(root, "safetensors", "empty", header_seed(0, "{}")) &&
         write(root, "safetensors", "index",
               header_seed(
                   0, R"({"metadata":{"total_size":40},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})",
                   true));
}

bool write_store(const std::filesystem::path& root) {
  fuzz::SmallStore small;
  const Store store = small.store();
  Report report;
  for (std::size_t i = 0; i < small.names.size(); ++i) {
    const CheckpointName& name = small.names[i];
    const std::string number = std::to_string(name.step);
    const auto manifest = store.read(name, report);
    if (!manifest.ok()) return false;
    const String text = manifest_text(*manifest);
    if (!write(root, "manifest", "step" + number, Bytes(text.begin(), text.end()))) return false;
    const auto part = PartReader::open(small.disk, join({store.data_folder(name.id), "/part-0000"}),
                                       part_identity(name, 0), manifest->parts[0], report);
    if (!part.ok()) return false;
    Bytes list;
    Bytes body;
    for (std::size_t r = 0; r < part->records().size(); ++r) {
      if (!part->read(r, body, report).ok()) return false;
      fuzz::append_record(part->records()[r], body, list);
      if (r == 0 && !write(root, "part", "head" + number, seed(0, body))) return false;
    }
    Bytes index;
    Writer writer(index);
    writer.u8(1);
    const std::uint64_t end = part->records().back().end();
    writer.u16(static_cast<std::uint16_t>((end - kPartHeaderBytes) / kRecordAlignment));
    writer.bytes(make_index(part->records()));
    PartInfo info;
    const Bytes whole = fuzz::sealed_part(part_identity(name, 0), list, info);
    if (!write(root, "part", "index" + number, index) ||
        !write(root, "part", "bytes" + number, seed(2, std::span(whole).subspan(kPartHeaderBytes))) ||
        !write(root, "part", "records" + number, seed(static_cast<std::uint8_t>(3 + i), list)))
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_checkpoint_corpus FOLDER\n";
    return 1;
  }
  if (!write_headers(argv[1]) || !write_store(argv[1])) {
    std::cerr << "make_checkpoint_corpus: a seed could not be made or written\n";
    return 1;
  }
  return 0;
}

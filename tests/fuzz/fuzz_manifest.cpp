// Manifests, hostile: the text is refused, or it survives writing and reading, and a store that has it gives the values
// it names or a status, in memory that the text and the store account for.
#include "checkpoint/restore/verify.h"
#include "tests/fuzz/checkpoint_input.h"

namespace {

using namespace quern;
using namespace quern::checkpoint;

/// What parsed JSON takes beside its text, and what a small store needs.
constexpr std::uint64_t kForEachByte = 400;
constexpr std::uint64_t kMostMemory = UINT64_C(8) << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::SmallStore small;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Report report;
  const fuzz::AllocationWatch watch;
  const auto manifest = parse_manifest_text(text, report);
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory + kForEachByte * size);
  if (!manifest.ok()) {
    QUERN_FUZZ_CHECK(!report.problem.empty());
    return 0;
  }
  const String again = manifest_text(*manifest);
  const auto parsed = parse_manifest_text(again, report);
  QUERN_FUZZ_CHECK(parsed.ok(), std::string(report.problem));
  QUERN_FUZZ_CHECK(manifest_text(*parsed) == again);
  const auto bytes = write_manifest(*manifest, report);
  QUERN_FUZZ_CHECK(bytes.ok());
  QUERN_FUZZ_CHECK(read_manifest(*bytes, report).ok());

  const Store store = small.store();
  const auto name = std::find(small.names.begin(), small.names.end(), manifest->name);
  if (name == small.names.end()) return 0;
  auto& file = small.disk.bytes_of(std::string(store.manifest_path(*name)));
  const auto kept = file;
  file.assign(bytes->begin(), bytes->end());
  {
    const fuzz::AllocationWatch restoring;
    fuzz::restore_all(store, *name);
    SerialRunner runner;
    (void)verify_checkpoint(store, *name, true, runner);
    QUERN_FUZZ_CHECK(restoring.peak() <= kMostMemory + kForEachByte * size);
  }
  file = kept;
  return 0;
}

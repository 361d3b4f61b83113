// A small scan through the codec: made, written, read in part, compared. usage: example_scan [FILE.qn]
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include <quern/records.h>

#include "examples/codec/record_codec.h"

namespace {

using namespace quern;

constexpr std::uint64_t kPoints = 20000;
constexpr double kBound = 0.005;  // metres

template <class T>
std::span<const std::uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

RecordSection section(const char* name, DType dtype, std::uint64_t item_elems, ErrorBound bound) {
  RecordSection out;
  out.name = name;
  out.dtype = dtype;
  out.items = kPoints;
  out.item_elems = item_elems;
  out.requested = bound;
  return out;
}

/// Writes the whole stream where the command was told to.
bool save(const char* path, std::span<const std::uint8_t> stream) {
  std::FILE* const file = std::fopen(path, "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(stream.data(), 1, stream.size(), file) == stream.size();
  return std::fclose(file) == 0 && written;
}

Status run(const char* path) {
  std::vector<float> xyz;
  std::vector<std::uint16_t> intensity;
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    const double angle = static_cast<double>(i) * 0.001;
    for (const double c : {10 * std::cos(angle), 10 * std::sin(angle), static_cast<double>(i % 16) * 0.2})
      xyz.push_back(static_cast<float>(c));
    intensity.push_back(static_cast<std::uint16_t>(800 + i % 97));
  }
  RecordLayout layout;
  layout.items = kPoints;
  layout.segment_items = 4096;
  layout.frames = {12000, 8000};  // two sweeps
  layout.sections = {section("position", DType::f32, 3, {BoundKind::abs, kBound}),
                     section("intensity", DType::u16, 1, {})};
  const SectionData data[] = {{bytes_of(xyz), {}}, {bytes_of(intensity), {}}};

  RecordOptions options;
  options.codec = &codec::packing::record_codec();
  std::vector<std::uint8_t> stream;
  VectorSink sink(stream);
  Execution execution;
  execution.threads = 0;
  QUERN_ASSIGN_OR_RETURN(const RecordReport report, compress_records(layout, data, options, execution, sink));
  std::printf("%llu points, %llu bytes as %llu\n", static_cast<unsigned long long>(kPoints),
              static_cast<unsigned long long>(report.input_bytes),
              static_cast<unsigned long long>(report.output_bytes));
  if (path != nullptr && !save(path, stream)) return Status(StatusCode::io_error, "the file cannot be written");

  const RecordCodec* const codecs[] = {&codec::packing::record_codec()};
  const RecordRegistry registry(codecs);
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const auto reader, RecordReader::open(source, registry, execution));
  // The second sweep alone.
  std::vector<float> back(3 * layout.frames[1]);
  QUERN_RETURN_IF_ERROR(
      reader->read_items(0, layout.frames[0], layout.frames[1],
                         {reinterpret_cast<std::uint8_t*>(back.data()), back.size() * sizeof(float)}));
  for (std::size_t i = 0; i < back.size(); ++i)
    if (!(std::fabs(static_cast<double>(back[i]) - static_cast<double>(xyz[3 * layout.frames[0] + i])) <= kBound))
      return Status(StatusCode::bound_not_met, "coordinate {0} misses the bound", static_cast<std::int64_t>(i));
  std::printf("the second sweep is within %g of what was measured\n", kBound);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : nullptr);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  return 1;
}

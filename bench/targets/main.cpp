// What the estimator saves: each target is searched with it and without it, each choice of a codec is held against
// encoding with all. Prints CSV. Usage: bench_targets NAME_SHAPE.TYPE[=FILL]... (raw files of f32, those with a fill
// value, or others)
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <quern/compress.h>
#include <quern/estimate.h>

namespace {

using namespace quern;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Field {
  std::string name;
  std::vector<char> bytes;
  ArrayView view;
  Vector<std::uint64_t> fill_bits;
};

Field read_field(std::string path) {
  Field field;
  if (const std::size_t equals = path.find('='); equals != std::string::npos) {
    field.fill_bits.push_back(std::bit_cast<std::uint32_t>(std::strtof(path.c_str() + equals + 1, nullptr)));
    path.resize(equals);
  }
  field.name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = field.name.rfind('.');
  const std::size_t bar = field.name.rfind('_');
  const auto shape = Shape::parse(field.name.substr(bar + 1, dot - bar - 1));
  const auto dtype = parse_dtype(field.name.substr(dot + 1));
  std::ifstream file(path, std::ios::binary);
  field.bytes.assign(std::istreambuf_iterator<char>(file), {});
  if (!shape.ok() || !dtype || field.bytes.size() != shape->elems() * dtype_bytes(*dtype)) {
    std::fprintf(stderr, "%s: is no NAME_SHAPE.TYPE of that size\n", path.c_str());
    std::exit(1);
  }
  field.view = {field.bytes.data(), *dtype, *shape};
  return field;
}

struct Count final : ByteSink {
  Status write(std::span<const std::uint8_t>) override { return {}; }
};

void line(const Field& field, const char* way, const ErrorBound& asked, const CompressOptions& options,
          const Registry& registry) {
  Count sink;
  const double began = processor_seconds();
  const auto made = compress(field.view, options, registry, Execution{}, sink);
  const double seconds = processor_seconds() - began;
  std::printf("%s,%s,%g,%s,", field.name.c_str(), bound_kind_name(asked.kind), asked.value, way);
  if (made.ok()) {
    std::printf("%s,%u,%u,%llu,%.9g,%.4f,%.4f\n", made->codec.c_str(), made->encodings, made->sample_encodings,
                static_cast<unsigned long long>(made->output_bytes), made->enforced.value, made->psnr_db.value_or(0),
                seconds);
  } else {
    std::printf("none,0,0,0,0,0,%.4f\n", seconds);
  }
  std::fflush(stdout);
}

void search_targets(const Field& field, const Registry& without) {
  for (const ErrorBound& target :
       {ErrorBound{BoundKind::psnr, 40}, ErrorBound{BoundKind::psnr, 60}, ErrorBound{BoundKind::psnr, 80},
        ErrorBound{BoundKind::ratio, 10}, ErrorBound{BoundKind::ratio, 50}, ErrorBound{BoundKind::ratio, 200}}) {
    CompressOptions options;
    options.bound = target;
    options.fill_bits = field.fill_bits;
    line(field, "trial", target, options, without);
    line(field, "estimate", target, options, builtin_codecs());
  }
}

void choose_codecs(const Field& field) {
  for (const double bound : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6}) {
    CompressOptions options;
    options.bound = {BoundKind::rel, bound};
    options.fill_bits = field.fill_bits;
    for (const ArrayCodec* codec : builtin_codecs().all()) {
      CompressOptions one = options;
      one.codec = codec->info().name;
      if (codec->info().tier == CodecTier::archive) one.bound = {BoundKind::lossless, 0.0};
      line(field, codec->info().name, options.bound, one, builtin_codecs());
    }
    line(field, "auto", options.bound, options, builtin_codecs());
    EstimateOptions asked;
    asked.bounds = {options.bound};
    asked.fill_bits = field.fill_bits;
    asked.speeds = false;
    const double began = processor_seconds();
    const auto report = builtin_estimator().estimate(field.view, asked, Execution{});
    const double seconds = processor_seconds() - began;
    if (!report.ok()) continue;
    for (const Estimate& e : report->estimates)
      std::printf("%s,rel,%g,estimate,%s,%.6g,%.6g,%.6g,0,0,%.4f\n", field.name.c_str(), bound, e.codec.c_str(),
                  e.ratio.low, e.ratio.value, e.ratio.high, seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Registry without(builtin_codecs().all());
  std::printf("field,kind,target,way,codec,encodings,sample_encodings,bytes,bound,psnr_db,seconds\n");
  for (int i = 1; i < argc; ++i) {
    const Field field = read_field(argv[i]);
    search_targets(field, without);
    choose_codecs(field);
  }
}

// Speed of the bounded modes as a save uses them, beside zstd -3 of the same bytes: plan and encode, which gives what
// comes back, and the check of that; decoding, as a load does. One thread; processor time, so that neighbours on the
// machine matter less; median of the rounds, and half the distance of the quartiles. Every form of a round runs before
// the next round begins. Usage: tensor_lossy_speed PREFIX... ; PREFIX.w, .m and .v hold binary32 values of weights,
// exp_avg and exp_avg_sq, and the last part of PREFIX is the shape, as in run/emb.8192x1024.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <zstd.h>

#include "checkpoint/save/bound_check.h"
#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/tensor.h"

namespace {

using namespace quern;
using namespace quern::codec::tensor;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kRounds = 9;
constexpr double kLogBound = 0.05;
constexpr double kUpdateBound = 0.05;
constexpr double kWeightBound = 1e-3;  // standard deviations

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Calls something and returns the seconds that it took.
template <class Call>
double seconds_of(const Call& call) {
  const double begin = processor_seconds();
  call();
  return processor_seconds() - begin;
}

Bytes read_all(const std::string& path) {
  Bytes bytes;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::fseek(file, 0, SEEK_END);
  bytes.resize(static_cast<std::size_t>(std::ftell(file)));
  std::rewind(file);
  const bool whole = std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
  std::fclose(file);
  if (!whole) std::exit(1);
  return bytes;
}

TensorShape shape_of(const std::string& prefix) {
  const std::string text = prefix.substr(prefix.rfind('.') + 1);
  std::vector<std::uint64_t> extents;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char* end = nullptr;
    extents.push_back(std::strtoull(text.c_str() + at, &end, 10));
    at = static_cast<std::size_t>(end - text.c_str());
  }
  const auto shape = TensorShape::try_make(extents);
  if (!shape) {
    std::fprintf(stderr, "%s does not end with a shape\n", prefix.c_str());
    std::exit(2);
  }
  return *shape;
}

struct Spread {
  double median = 0;
  double half_quartiles = 0;
};
Spread spread_of(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return {rates[rates.size() / 2], (rates[rates.size() * 3 / 4] - rates[rates.size() / 4]) / 2};
}

/// One tensor in one mode.
struct Subject {
  const char* name;
  Mode mode;
  double bound;
  const Bytes* values;
  Bytes companion;
  EncodedTensor encoded;
  Bytes decoded;
  std::vector<double> encode, decode, check, checked, zstd, unzstd;
  std::size_t zstd_bytes = 0;
};

void fail(const char* what, const char* name) {
  std::fprintf(stderr, "%s: %s\n", name, what);
  std::exit(1);
}

void run_round(const TensorDescription& description, TensorMemory& memory, Subject& subject) {
  SerialRunner runner;
  TensorRequest request;
  request.mode = subject.mode;
  request.bound = subject.bound;
  request.bound_in_deviations = false;
  TensorInputs inputs;
  inputs.values = *subject.values;
  inputs.companion = subject.companion;
  const double megabytes = static_cast<double>(subject.values->size()) / 1e6;
  const double encode = seconds_of([&] {
    if (!encode_tensor(description, request, inputs, runner, memory, subject.encoded, subject.decoded).ok())
      fail("does not encode", subject.name);
  });
  inputs.values = {};
  Bytes restored(subject.values->size());
  const double decode = seconds_of([&] {
    if (!decode_tensor(description, subject.encoded, inputs, restored, runner, memory).ok())
      fail("does not decode", subject.name);
  });
  if (restored != subject.decoded) fail("decodes to something else", subject.name);
  const double check = seconds_of([&] {
    if (!checkpoint::check_bound(subject.mode, subject.bound, *subject.values, subject.decoded, subject.companion,
                                 runner)
             .kept)
      fail("misses its bound", subject.name);
  });
  Bytes packed(ZSTD_compressBound(kChunkBytes));
  double zstd = 0;
  double unzstd = 0;
  subject.zstd_bytes = 0;
  Bytes unpacked(kChunkBytes);
  for (std::size_t at = 0; at < subject.values->size(); at += kChunkBytes) {
    const std::size_t raw = std::min(kChunkBytes, subject.values->size() - at);
    std::size_t size = 0;
    zstd +=
        seconds_of([&] { size = ZSTD_compress(packed.data(), packed.size(), subject.values->data() + at, raw, 3); });
    unzstd += seconds_of([&] { ZSTD_decompress(unpacked.data(), unpacked.size(), packed.data(), size); });
    subject.zstd_bytes += size;
  }
  subject.encode.push_back(megabytes / encode);
  subject.decode.push_back(megabytes / decode);
  subject.check.push_back(megabytes / check);
  subject.checked.push_back(megabytes / (encode + check));
  subject.zstd.push_back(megabytes / zstd);
  subject.unzstd.push_back(megabytes / unzstd);
}

void print(const char* prefix, const Subject& subject) {
  const double raw = static_cast<double>(subject.values->size());
  const Spread encode = spread_of(subject.encode);
  const Spread checked = spread_of(subject.checked);
  const Spread decode = spread_of(subject.decode);
  const Spread zstd = spread_of(subject.zstd);
  std::printf(
      "%-24s %-4s | encode %6.1f +-%4.1f | decode %6.1f +-%4.1f | check %7.1f | all %6.1f +-%4.1f | "
      "zstd -3 %6.1f +-%4.1f, out %6.1f | encode/zstd %.2f all/zstd %.2f | ratio %.3f, zstd %.3f\n",
      prefix, subject.name, encode.median, encode.half_quartiles, decode.median, decode.half_quartiles,
      spread_of(subject.check).median, checked.median, checked.half_quartiles, zstd.median, zstd.half_quartiles,
      spread_of(subject.unzstd).median, encode.median / zstd.median, checked.median / zstd.median,
      raw / static_cast<double>(subject.encoded.total_bytes()), raw / static_cast<double>(subject.zstd_bytes));
}

void measure(const std::string& prefix) {
  const TensorDescription description{ElementType::f32, shape_of(prefix)};
  const Bytes weights = read_all(prefix + ".w");
  const Bytes first = read_all(prefix + ".m");
  const Bytes second = read_all(prefix + ".v");
  for (const Bytes* const bytes : {&weights, &first, &second})
    if (bytes->size() != description.bytes()) fail("a file does not fill the shape", prefix.c_str());
  std::vector<Subject> subjects(3);
  subjects[0].name = "logq", subjects[0].mode = Mode::logq, subjects[0].bound = kLogBound;
  subjects[0].values = &second;
  subjects[1].name = "updq", subjects[1].mode = Mode::updq, subjects[1].bound = kUpdateBound;
  subjects[1].values = &first;
  subjects[2].name = "ebq", subjects[2].mode = Mode::ebq, subjects[2].values = &weights;
  subjects[2].bound = kWeightBound * standard_deviation(weights);
  for (Subject& subject : subjects) subject.decoded.resize(second.size());
  TensorMemory memory;
  for (std::size_t round = 0; round < kRounds; ++round)
    for (Subject& subject : subjects) {
      if (subject.mode == Mode::updq) subject.companion = subjects[0].decoded;
      run_round(description, memory, subject);
    }
  const std::string label = prefix.substr(prefix.rfind('/') + 1);
  for (const Subject& subject : subjects) print(label.c_str(), subject);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tensor_lossy_speed PREFIX...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return 0;
}

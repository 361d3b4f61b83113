// Arrays of every size, element type and field, and the subjects on each.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "bench/gpu/subjects.h"

namespace quern::bench {
namespace {

using kernels::TileShape;

constexpr std::uint64_t kSmall = 100'000'000;

std::vector<TileShape> tiles_for(const Options& options, std::uint64_t bytes) {
  if (!options.tiles.empty()) return options.tiles;
  if (bytes < kSmall) return {TileShape::plane};
  if (bytes == UINT64_C(512) << 20) return {TileShape::block, TileShape::line};
  return {TileShape::block};
}

/// Extents of an array of about that many elements. A plane is as wide as those of climate models, a block's sides are
/// 512 or what a cube has.
std::array<std::uint64_t, 3> extents_for(TileShape tile, std::uint64_t elems) {
  constexpr std::uint64_t kPlaneWidth = 3600, kMostSide = 512;
  if (tile == TileShape::line) return {1, 1, elems};
  if (tile == TileShape::plane) {
    std::uint64_t width = kPlaneWidth;
    while (width > 1 && width * width > 4 * elems) width /= 2;
    return {1, std::max<std::uint64_t>(1, elems / width), width};
  }
  std::uint64_t side = kMostSide;
  while (side > 1 && side * side * side > elems) side /= 2;
  return {std::max<std::uint64_t>(1, elems / (side * side)), side, side};
}

/// Whether a codec whose chunks the host encodes first is timed on an array: where it is asked for by name, else on one
/// kind.
bool wants_jobs_of(const char* codec, const Session& session, const BenchArray& array) {
  if (!session.options().subjects.empty()) return session.wants(codec);
  return array.element == kernels::Element::f32 && array.tile == TileShape::block &&
         array.bytes() == UINT64_C(512) << 20;
}

void run_subjects(Session& session, const BenchArray& array) {
  if (session.wants("range")) bench_range(session, array);
  if (session.wants("lorenzo")) bench_lorenzo(session, array);
  if (session.wants("mask")) bench_mask(session, array);
  if (wants_jobs_of("interp", session, array)) {
    bench_interp(session, array);
    bench_interp_encode(session, array);
  }
  if (wants_jobs_of("stencil", session, array)) {
    bench_stencil(session, array);
    bench_stencil_encode(session, array);
    bench_stencil_steps(session, array);
  }
  if (session.wants("arrays")) bench_arrays(session, array);
  if (session.wants("batches")) bench_batches(session, array);
}

std::vector<char> read_file(const Options& options) {
  std::ifstream file(options.field, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::uint64_t wanted = kernels::element_bytes(options.elements.front());
  for (const std::uint64_t n : options.shape) wanted *= n;
  if (!file || bytes.size() != wanted || wanted == 0)
    throw std::runtime_error(options.field + " could not be read, or does not hold --shape values");
  return bytes;
}

/// The file's array, repeated along its first axis; as rank 3, leading extents 1.
void run_file(Session& session, std::uint64_t bytes) {
  const Options& options = session.options();
  const std::vector<char> file = read_file(options);
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::copy_backward(options.shape.begin(), options.shape.end(), extents.end());
  const std::uint64_t times = std::max<std::uint64_t>(1, bytes / file.size());
  extents[3 - options.shape.size()] *= times;
  DeviceArray<std::uint8_t> values(times * file.size());
  check(cudaMemcpy(values.data(), file.data(), file.size(), cudaMemcpyHostToDevice), "copy to the device");
  Stream stream;
  check(repeat_async(values.data(), file.size(), values.bytes(), stream), "repeat_async");
  stream.wait();
  std::vector<TileShape> tiles = options.tiles;
  if (tiles.empty())
    tiles = {options.shape.size() == 3   ? TileShape::block
             : options.shape.size() == 2 ? TileShape::plane
                                         : TileShape::line};
  for (const TileShape tile : tiles)
    run_subjects(session, {options.elements.front(), tile, extents, options.field, options.bound, values.data()});
}

/// False when time ran out before all was done.
bool run_fields(Session& session, std::uint64_t bytes) {
  for (const kernels::Element element : session.options().elements)
    for (const TileShape tile : tiles_for(session.options(), bytes))
      for (const FieldKind& kind : kFieldKinds) {
        if (session.out_of_time()) return false;
        BenchArray array{element,   tile,       extents_for(tile, bytes / kernels::element_bytes(element)),
                         kind.name, kind.bound, nullptr};
        if (!session.has_room(array.bytes())) continue;
        DeviceArray<std::uint8_t> values(array.bytes());
        Stream stream;
        check(fill_field_async(element, kind, array.extents, values.data(), stream), "fill_field_async");
        stream.wait();
        array.values = values.data();
        run_subjects(session, array);
      }
  return true;
}

int run(const Options& options) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIP: no device on this machine");
    return 77;
  }
  Session session(options);
  for (const std::uint64_t bytes : options.bytes)
    if (session.has_room(2 * bytes)) session.time_copy(bytes);
  bool complete = true;
  for (const std::uint64_t bytes : options.bytes) {
    if (options.field.empty()) {
      complete = complete && run_fields(session, bytes);
    } else if (session.has_room(bytes)) {
      run_file(session, bytes);
    }
  }
  Members end;
  session.report().line("end", end.flag("complete", complete).number("seconds", session.seconds()));
  std::printf("%s: %s, %.0f s\n", options.out.c_str(), complete ? "complete" : "time ran out", session.seconds());
  return 0;
}

}  // namespace
}  // namespace quern::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(quern::bench::kUsage, stdout);
    return 0;
  }
  try {
    return quern::bench::run(quern::bench::parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu: %s\n", error.what());
    return 1;
  }
}

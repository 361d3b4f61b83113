// Golden files of codec stencil with networks in its levels, the model in the stream.
#include <algorithm>
#include <cstdlib>

#include <quern/models.h>

#include "models/sha256.h"
#include "tests/golden/groups.h"
#include "tests/golden/values.h"
#include "tests/unit_models/level_models.h"

namespace quern::golden {
namespace {

models::LevelModel golden_model(std::uint8_t axes) {
  models::LevelModel model;
  model.axes = axes;
  model.record = R"({"golden": true})";
  for (std::size_t c = 1; c < std::size_t{1} << axes; c *= 2) model.classes[c] = models::test::larger_of_two();
  // Of the last class of two axes far points: at (1, -1) and (0, -3).
  if (axes == 2) model.classes[3] = models::test::larger_of(20, 6, 17);
  return model;
}

double corner(std::uint64_t z, std::uint64_t y, std::uint64_t x) {
  return static_cast<double>(swing(60, (z * 64 + y) * 64 + x, 300));
}

/// Points between two of the coarser level along one axis are the larger of them. Those of a plane that are odd along
/// both axes are the larger of two that are farther away; others are the one before them.
double ridge(const std::array<std::uint64_t, 3>& at, const std::array<std::uint64_t, 3>& extents) {
  std::array<std::uint64_t, 3> below = at;
  std::array<std::uint64_t, 3> above = at;
  int odd = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    if (at[a] % 2 == 0) continue;
    ++odd;
    --below[a];
    above[a] = std::min(at[a] + 1, (extents[a] - 1) / 2 * 2);
  }
  const double first = corner(below[0], below[1], below[2]);
  if (extents[0] == 1 && odd == 2 && at[1] + 1 < extents[1] && at[2] >= 3)
    return std::max(corner(0, at[1] + 1, at[2] - 1), ridge({0, at[1], at[2] - 3}, extents));
  return odd == 1 ? std::max(first, corner(above[0], above[1], above[2])) : first;
}

GoldenFile file_of(const char* name, const char* feature, testing::OwnedArray array, std::uint8_t axes, double bound,
                   const char* edges = "auto") {
  ModelList list;
  const Result<ModelId> added = list.add(models::write_level_model(golden_model(axes)));
  if (!added.ok()) std::abort();
  models::Digest digest{};
  std::copy(added->begin(), added->end(), digest.begin());
  const std::string id = models::hex(digest).substr(0, 2 * added->size());
  GoldenFile file =
      one(name, feature, std::move(array),
          with(BoundKind::abs, bound, "stencil",
               {{"layout", "levels"}, {"model", String(id.begin(), id.end())}, {"embed", "yes"}, {"edges", edges}}));
  VectorSink sink(file.written);
  const CodecsWithModels codecs(list);
  if (!compress(file.streams[0].array.view(), file.streams[0].options, codecs.registry(), {}, sink).ok())
    file.written.clear();
  return file;
}

}  // namespace

void add_network_files(std::vector<GoldenFile>& files) {
  testing::OwnedArray plane = values_of(DType::f32, {32, 45}, [](std::uint64_t i) {
    return ridge({0, i / 45, i % 45}, {1, 32, 45});
  });
  for (const std::uint64_t at : {0, 77, 78, 79, 900, 901}) set_bits(plane, at, 0x7FC00001);
  files.push_back(file_of("stencil_networks_f32", "networks for two axes in the stream, and a mask", plane, 2, 4));
  files.push_back(file_of("stencil_networks_i16", "networks for three axes in the stream",
                          values_of(DType::i16, {10, 11, 13},
                                    [](std::uint64_t i) {
                                      return ridge({i / 143, i / 13 % 11, i % 13}, {10, 11, 13});
                                    }),
                          3, 5));
  files.push_back(file_of("stencil_networks_edges", "networks beside groups that are not linear, and a mask",
                          std::move(plane), 2, 4, "on"));
}

}  // namespace quern::golden

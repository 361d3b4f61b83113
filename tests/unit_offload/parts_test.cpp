// Layout, manifest, and where subgroups go.
#include <gtest/gtest.h>

#include "offload/folders.h"
#include "offload/layout.h"
#include "offload/manifest.h"
#include "offload/members.h"
#include "offload/schedule/make_schedule.h"
#include "tests/faults/simulated_disk.h"

namespace quern::testing {
namespace {

using namespace offload;

Manifest small_manifest() {
  Manifest manifest;
  for (const std::uint64_t values : {40000u, 0u, 100u}) manifest.region_values.push_back(values);
  manifest.state = {11, 12};
  manifest.subgroup_values = 16384;
  manifest.form = {4, false};
  manifest.seed = 99;
  manifest.step = 12;
  manifest.stamp = 300;
  manifest.folders = 2;
  for (std::uint32_t g = 0; g < 4; ++g) manifest.groups.push_back({g % 2, 290 + g, g * 900, {g, 7}});
  return manifest;
}

TEST(OffloadLayout, Regions_AreCutIntoSubgroupsThatBeginAtBlocks) {
  const std::uint64_t regions[] = {40000, 0, 100, 16384};
  const auto groups = cut_subgroups(regions, 16384);
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 5u);
  std::uint64_t values = 0;
  for (const Subgroup& group : *groups) {
    EXPECT_EQ(group.first_value % kernels::kAtRestBlock, 0u);
    values += group.values;
  }
  EXPECT_EQ(values, 56484u);
  EXPECT_EQ((*groups)[2].values, 40000u - 32768);
  EXPECT_EQ((*groups)[3].region, 2u);
  EXPECT_EQ((*groups)[3].first_value, 40192u);
  for (const std::uint64_t size : {UINT64_C(0), UINT64_C(100), UINT64_C(1) << 60})
    EXPECT_FALSE(cut_subgroups(regions, size).ok());
  const std::uint64_t huge[] = {UINT64_C(1) << 48, UINT64_C(1) << 48};
  EXPECT_FALSE(cut_subgroups(huge, UINT64_C(1) << 40).ok());
  const std::uint64_t too_many[] = {16384, kMostSubgroups * 16384};
  EXPECT_EQ(cut_subgroups(too_many, 16384).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(cut_subgroups(too_many, UINT64_C(1) << 30)->size(), 65u);
}

TEST(OffloadManifest, WrittenAndRead_IsTheSame) {
  EXPECT_EQ(write_manifest(small_manifest())[8], 1) << "what the first version reads";
  Manifest manifest = small_manifest();
  manifest.groups[1].packed_bytes = 4711;
  const auto bytes = write_manifest(manifest);
  const auto back = parse_manifest(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(write_manifest(*back), bytes);
  EXPECT_EQ(bytes[8], 2);
  EXPECT_EQ(back->groups[1].packed_bytes, 4711u);
  EXPECT_EQ(back->groups[3].hash.high, 3u);
  EXPECT_EQ(back->form.bits, 4u);
  EXPECT_FALSE(back->form.finest);
}

TEST(OffloadManifest, EveryFlippedBitAndEveryCut_IsRefused) {
  auto bytes = write_manifest(small_manifest());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_manifest(std::span(bytes).first(size)).ok()) << size;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(parse_manifest(bytes).ok()) << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
  }
}

TEST(OffloadManifest, AnythingUnderATrueSeal_IsAnswered) {
  // Damage that the seal does not show, as somebody with bad intentions would write it.
  const auto good = write_manifest(small_manifest());
  std::mt19937 random(3);
  for (int run = 0; run < 20000; ++run) {
    auto bytes = good;
    bytes.resize(bytes.size() - 16);
    for (unsigned k = 0; k <= random() % 3; ++k)
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<std::uint8_t>(random());
    const auto hash = storage::content_hash(bytes);
    for (const std::uint64_t half : {hash.low, hash.high})
      for (int b = 0; b < 8; ++b) bytes.push_back(static_cast<std::uint8_t>(half >> (8 * b)));
    const auto parsed = parse_manifest(bytes);
    if (!parsed.ok()) continue;
    EXPECT_EQ(parsed->groups.size(), cut_subgroups(parsed->region_values, parsed->subgroup_values)->size());
    for (const auto& group : parsed->groups) EXPECT_LT(group.folder, parsed->folders);
  }
}

TEST(OffloadMembers, WrittenReadAndDamaged) {
  auto bytes = write_member({{5, 6}, 2, 3});
  const auto back = parse_member(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_TRUE(back->state == (storage::ContentHash{5, 6}) && back->number == 2 && back->count == 3);
  EXPECT_FALSE(parse_member(write_member({{5, 6}, 3, 3})).ok()) << "beyond the last";
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(parse_member(bytes).ok()) << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
  }
}

TEST(OffloadFolders, Subgroups_AreSpreadInProportionToTheSlowerDirection) {
  SimulatedDisk disk;
  std::vector<std::unique_ptr<Folder>> folders;
  for (const char* const name : {"a", "b"}) {
    FolderOptions options;
    options.path = name;
    folders.push_back(std::make_unique<Folder>(disk, options, false));
  }
  const auto rates = [&] {
    std::vector<offload::PathRates> out;
    for (const auto& folder : folders) out.push_back({folder->use().read_rate, folder->use().write_rate});
    return out;
  };
  offload::PathShares equal(rates());
  std::size_t first = 0;
  for (int i = 0; i < 100; ++i) first += equal.place(1000) == 0 ? 1 : 0;
  EXPECT_EQ(first, 50u) << "nothing is known of them yet";
  // a reads fast and writes at a fifth of b's rate.
  folders[0]->add(false, 1000000, 1, 1.005);
  folders[0]->add(true, 1000000, 1, 1.1);
  folders[1]->add(false, 1000000, 1, 1.02);
  folders[1]->add(true, 1000000, 1, 1.02);
  offload::PathShares spread(rates());
  first = 0;
  for (int i = 0; i < 600; ++i) first += spread.place(1000) == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(first), 100, 1);
  EXPECT_EQ(folders[0]->use().bytes_written, 1000000u);
}

TEST(OffloadFolders, Rates_OfFoldersThatAreLittleUsed_GrowSlowly) {
  SimulatedDisk disk;
  FolderOptions options;
  options.path = "a";
  Folder folder(disk, options, false);
  double now = 100;
  // 1 MB after another, each 10 ms.
  for (int i = 0; i < 50; ++i, now += 0.01) folder.add(true, 1000000, now, now + 0.01);
  EXPECT_NEAR(folder.use().write_rate, 1e8, 1e6);
  // Each after a pause of 10 ms, in 2 ms: a limit has saved up for it.
  for (int i = 0; i < 200; ++i, now += 0.012) folder.add(true, 1000000, now + 0.01, now + 0.012);
  EXPECT_GT(folder.use().write_rate, 1.05e8);
  EXPECT_LT(folder.use().write_rate, 1.5e8);
  // Slower for certain, whatever it did before: in 50 ms.
  for (int i = 0; i < 200; ++i, now += 0.1) folder.add(true, 1000000, now + 0.05, now + 0.1);
  EXPECT_NEAR(folder.use().write_rate, 2e7, 2e6);
  // Faster for certain: 1 MB each 5 ms, pauses included.
  for (int i = 0; i < 400; ++i, now += 0.005) folder.add(true, 1000000, now + 0.004, now + 0.005);
  EXPECT_NEAR(folder.use().write_rate, 2e8, 2e7);
  EXPECT_EQ(folder.use().read_rate, 0);
}

TEST(OffloadFolders, ARate_OfOneReadAStep_GrowsAgain) {
  SimulatedDisk disk;
  FolderOptions options;
  options.path = "a";
  Folder folder(disk, options, false);
  double now = 100;
  // While something else used the device: 16 MB in a second.
  for (int i = 0; i < 20; ++i, now += 10) folder.add(false, 16000000, now, now + 1);
  EXPECT_NEAR(folder.use().read_rate, 1.6e7, 1e5);
  // In 10 ms, each after a pause of 10 s.
  for (int i = 0; i < 400; ++i, now += 10) folder.add(false, 16000000, now, now + 0.01);
  EXPECT_GT(folder.use().read_rate, 1.3e9);
  EXPECT_LT(folder.use().read_rate, 1.61e9);
  // One that does not become faster keeps its rate.
  for (int i = 0; i < 20; ++i, now += 10) folder.add(false, 16000000, now, now + 0.5);
  for (int i = 0; i < 400; ++i, now += 10) folder.add(false, 16000000, now, now + 0.5);
  EXPECT_NEAR(folder.use().read_rate, 3.2e7, 1e6);
}

}  // namespace
}  // namespace quern::testing

// Parity of histories: every pattern of lost and damaged files up to the number that parity covers comes back bit for
// bit; more is refused and nothing is changed. Sets follow the files that come and go.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory_resource>

#include "lidar/history/parity.h"
#include "storage/parity/erasure.h"
#include "storage/parity/parity_files.h"
#include "tests/unit_lidar_drive/street.h"

namespace quern::lidar {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Contents = std::map<std::string, Bytes>;

class HistoryParity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  }

  Result<GuardedHistory> guard(std::optional<ParityNumbers> numbers = std::nullopt) {
    street.report = {};
    QUERN_ASSIGN_OR_RETURN(const auto lock, street.history->lock(street.report));
    return guard_history(*street.history, numbers, street.report);
  }
  ParityCheck check(bool mend) {
    street.report = {};
    auto done = check_parity(*street.history, mend, street.report);
    EXPECT_TRUE(done.ok()) << street.report.problem;
    return done.ok() ? std::move(done).value() : ParityCheck();
  }
  Contents contents() {
    Contents out;
    for (const std::string& file : street.disk.all_files())
      if (file.find("/epochs/") != std::string::npos || file.find("/segments/") != std::string::npos ||
          file.find("/parity/") != std::string::npos)
        out[file] = street.disk.bytes_of(file);
    return out;
  }
  void add_days(std::int64_t first, std::int64_t last) {
    for (std::int64_t day = first; day <= last; ++day)
      ASSERT_TRUE(street.add(wall(50'000 + 5'000 * day)).ok()) << street.report.problem;
  }

  GuardedFile guarded(const std::string& path) {
    return {String(std::string_view(path).substr(kRoot.size() + 1)), street.disk.bytes_of(path).size()};
  }
  /// A set with right checksums over whatever these files hold. Returns the path of its parity file.
  std::string write_set(const ParityList& list) {
    const String name = storage::join({"parity/", storage::hex(parity_name(list)), "-00"});
    Vector<storage::ParityFile> files;
    Vector<std::uint64_t> sizes;
    for (const GuardedFile& file : list.files) {
      files.push_back({file.name, storage::join({kRoot, "/", file.name}), "streets/tmp/unused"});
      sizes.push_back(file.bytes);
    }
    files.push_back({name, storage::join({kRoot, "/", name}), street.history->parity_temporary(0)});
    const storage::ParityGroup group(street.disk, std::move(files), std::move(sizes), {write_parity_header(list, 0)},
                                     {0x9B, 'Q', 'H', 'Q', '\r', '\n', 0x1A, '\n'});
    (void)street.disk.make_folder(street.history->parity_folder());
    EXPECT_TRUE(storage::replace_parity_files(group, street.report).ok()) << street.report.problem;
    return std::string(std::string_view(storage::join({kRoot, "/", name})));
  }

  Street street;
};

TEST_F(HistoryParity, EveryPattern_IsMendedOrRefused) {
  add_days(1, 2);
  constexpr std::uint32_t kParity = 2;
  ASSERT_TRUE(guard(ParityNumbers{4, kParity}).ok()) << street.report.problem;
  const Contents whole = contents();
  ASSERT_EQ(whole.size(), 6U);
  EXPECT_TRUE(check(false).damage.empty());
  std::vector<std::string> paths;
  for (const auto& [path, bytes] : whole) paths.push_back(path);
  std::size_t mended = 0, refused = 0;
  for (std::uint32_t round = 4; round < 4U << paths.size(); ++round) {
    const std::uint32_t pattern = round / 4;
    const auto count = static_cast<std::uint32_t>(std::popcount(pattern));
    if (count > kParity + 1) continue;
    // Files are lost, flipped, cut or longer, in turn.
    std::uint32_t kind = round;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if ((pattern >> i & 1) == 0) continue;
      auto& bytes = street.disk.bytes_of(paths[i]);
      switch (kind++ % 4) {
        case 0: ASSERT_TRUE(street.disk.remove(paths[i]).ok()); break;
        case 1: bytes[bytes.size() / 2] ^= 0x10; break;
        case 2: bytes.resize(bytes.size() / 3); break;
        default: bytes.push_back(7); break;
      }
    }
    const Contents before = contents();
    const auto sets = parity_sets(*street.history, street.report).value();
    const bool has_list = !sets.empty() && sets[0].list;
    if (has_list) {
      EXPECT_EQ(check(false).damage.size(), count) << pattern;
    }
    EXPECT_EQ(contents(), before) << pattern;
    const ParityCheck done = check(true);
    if (!has_list) {
      // Both parity files lost their headers, and nobody knows the set: of whole files it is made again.
      EXPECT_EQ(contents(), before) << pattern;
      if (count == kParity) {
        ASSERT_TRUE(guard(ParityNumbers{4, kParity}).ok()) << street.report.problem;
        EXPECT_EQ(contents(), whole) << pattern;
      }
    } else if (count <= kParity) {
      EXPECT_EQ(contents(), whole) << pattern;
      EXPECT_EQ(done.mended.size(), count) << pattern;
      EXPECT_TRUE(done.damage.empty()) << pattern;
      ++mended;
    } else if (!done.damage.empty()) {
      EXPECT_EQ(contents(), before) << pattern;
      ++refused;
    } else {
      // A file that is only longer has lost no column.
      EXPECT_EQ(contents(), whole) << pattern;
    }
    for (const auto& [path, bytes] : contents()) ASSERT_TRUE(street.disk.remove(path).ok());
    for (const auto& [path, bytes] : whole) {
      auto file = street.disk.create(path);
      ASSERT_TRUE(file.ok() && storage::write_fully(**file, 0, bytes).ok());
    }
    street.history->forget_segments();
    if (HasFailure()) break;
  }
  EXPECT_GE(mended, 4 * (6U + 14U));
  EXPECT_GT(refused, 10U);
}

TEST_F(HistoryParity, EveryFlippedByte_ComesBack) {
  add_days(1, 1);
  ASSERT_TRUE(guard(ParityNumbers{2, 2}).ok()) << street.report.problem;
  const Contents whole = contents();
  std::size_t flips = 0;
  for (const auto& [path, bytes] : whole)
    for (std::size_t at = 0; at < bytes.size(); ++at, ++flips) {
      street.flip(path, at);
      EXPECT_EQ(check(true).mended.size(), 1U) << path << " " << at;
      ASSERT_EQ(contents(), whole) << path << " " << at;
    }
  EXPECT_GE(flips, 300U);
}

TEST_F(HistoryParity, Sets_FollowTheFiles) {
  add_days(1, 3);
  auto made = guard(ParityNumbers{4, 1});
  ASSERT_TRUE(made.ok()) << street.report.problem;
  EXPECT_EQ(made->files, 6U);
  EXPECT_EQ(made->made_sets, 2U);
  EXPECT_EQ(guard()->made_sets, 0U);
  add_days(4, 4);
  EXPECT_EQ(check(false).unguarded, 2U);
  made = guard();
  ASSERT_TRUE(made.ok()) << street.report.problem;
  EXPECT_EQ(made->numbers.data, 4U);
  EXPECT_EQ(made->made_sets, 1U);  // the full set stays
  EXPECT_EQ(check(false).unguarded, 0U);
  EXPECT_EQ(street.files_in("parity").size(), 2U);
  // Other numbers make all sets anew.
  made = guard(ParityNumbers{3, 2});
  ASSERT_TRUE(made.ok()) << street.report.problem;
  EXPECT_EQ(made->made_sets, 3U);
  EXPECT_EQ(street.files_in("parity").size(), 6U);
  // What goes takes the sets with it that guard it; the others still hold.
  CollectHistory options;
  options.keep = 2;
  street.report = {};
  {
    const auto lock = street.history->lock(street.report);
    const auto collected = collect_history(*street.history, options, street.report);
    ASSERT_TRUE(collected.ok()) << street.report.problem;
    EXPECT_EQ(collected->removed.size(), 2U);
    EXPECT_EQ(check(false).unguarded, collected->without_parity);
  }
  EXPECT_TRUE(check(false).damage.empty());
  ASSERT_TRUE(guard().ok()) << street.report.problem;
  EXPECT_EQ(check(false).unguarded, 0U);
  EXPECT_EQ(drop_parity(*street.history, street.report).value(), 2U);
  EXPECT_TRUE(street.files_in("parity").empty());
}

TEST_F(HistoryParity, DamagedFiles_AreNotGuarded) {
  add_days(1, 1);
  street.flip(street.files_in("segments")[0], 30);
  EXPECT_EQ(guard().status().code(), StatusCode::corrupt);
  EXPECT_NE(street.report.problem.find("is damaged"), String::npos) << street.report.problem;
  EXPECT_TRUE(street.files_in("parity").empty());
  street.flip(street.files_in("segments")[0], 30);
  ASSERT_TRUE(guard().ok()) << street.report.problem;
  // What is lost is not forgotten by making parity again.
  ASSERT_TRUE(street.disk.remove(street.files_in("segments")[0]).ok());
  EXPECT_EQ(guard().status().code(), StatusCode::corrupt);
  EXPECT_EQ(check(true).mended.size(), 1U);
  EXPECT_TRUE(guard().ok()) << street.report.problem;
}

TEST_F(HistoryParity, OfOtherBytes_ReplacesNothing) {
  add_days(1, 1);
  const std::string segment = street.files_in("segments")[0], epoch = street.files_in("epochs")[0];
  for (const std::string& victim : {segment, epoch}) {
    street.flip(victim, 33);
    const std::string parity = write_set({2, 1, {guarded(segment), guarded(epoch)}});
    street.flip(victim, 33);
    const Contents whole = contents();
    for (const bool mend : {false, true}) {
      const ParityCheck told = check(mend);
      EXPECT_TRUE(told.mended.empty());
      ASSERT_EQ(told.damage.size(), 1U);
      EXPECT_NE(told.damage[0].find("does not fit"), String::npos) << told.damage[0];
      EXPECT_EQ(contents(), whole);
    }
    // What is lost does not come back as something else.
    const auto bytes = street.disk.bytes_of(victim);
    ASSERT_TRUE(street.disk.remove(victim).ok());
    const Contents before = contents();
    const ParityCheck told = check(true);
    EXPECT_TRUE(told.mended.empty());
    EXPECT_EQ(told.damage.size(), 1U);
    EXPECT_EQ(contents(), before);
    EXPECT_TRUE(street.files_in("tmp").empty());
    auto file = street.disk.create(victim);
    ASSERT_TRUE(file.ok() && storage::write_fully(**file, 0, bytes).ok());
    ASSERT_TRUE(street.disk.remove(parity).ok());
  }
  // A set that says another size, with its checksums and without.
  GuardedFile shorter = guarded(segment);
  --shorter.bytes;
  const std::string parity = write_set({1, 1, {shorter}});
  for (int round = 0; round < 2; ++round) {
    const Contents whole = contents();
    const ParityCheck told = check(true);
    EXPECT_TRUE(told.mended.empty());
    ASSERT_FALSE(told.damage.empty());
    EXPECT_NE(told.damage[0].find("does not fit"), String::npos) << told.damage[0];
    EXPECT_EQ(contents(), whole);
    street.flip(parity, street.disk.bytes_of(parity).size() - 24);
  }
  EXPECT_EQ(drop_parity(*street.history, street.report).value(), 1U);
  ASSERT_TRUE(guard(ParityNumbers{2, 1}).ok()) << street.report.problem;
  EXPECT_TRUE(check(false).damage.empty());
}

TEST_F(HistoryParity, OfNoReadableHeader_IsToldAndMadeAnew) {
  add_days(1, 1);
  ASSERT_TRUE(guard(ParityNumbers{2, 1}).ok()) << street.report.problem;
  street.flip(street.files_in("parity")[0], 20);
  street.flip(street.files_in("parity")[0], 0);
  const ParityCheck told = check(true);
  ASSERT_EQ(told.damage.size(), 1U);
  EXPECT_NE(told.damage[0].find("no header holds"), String::npos) << told.damage[0];
  ASSERT_TRUE(guard(ParityNumbers{2, 1}).ok()) << street.report.problem;
  EXPECT_TRUE(check(false).damage.empty());
  EXPECT_EQ(street.files_in("parity").size(), 1U);
}

TEST_F(HistoryParity, LargeFiles_HaveSeveralStripes) {
  Street& s = street;
  Vector<std::uint8_t> large((std::size_t{5} << 19) + 77);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint8_t>(i * i >> 7);
  s.write_segment({large});
  add_days(1, 1);
  ASSERT_TRUE(guard(ParityNumbers{3, 2}).ok()) << s.report.problem;
  const Contents whole = contents();
  // Each stripe has lost columns of all large files: the segment and two of parity.
  for (const std::size_t at : {std::size_t{1000}, std::size_t{1} << 20, large.size()})
    for (const auto& [path, bytes] : whole)
      if (at < bytes.size()) street.flip(path, at);
  const Contents damaged = contents();
  EXPECT_EQ(check(true).damage.size(), 3U);
  EXPECT_EQ(contents(), damaged);
  for (const auto& [path, bytes] : whole) street.disk.bytes_of(path) = bytes;
  std::size_t column = 0;
  for (const auto& [path, bytes] : whole)
    if (bytes.size() > large.size()) street.flip(path, 1000 + (column++ << 20));  // another stripe of each
  EXPECT_EQ(column, 3U);
  EXPECT_EQ(check(true).mended.size(), 3U);
  EXPECT_EQ(contents(), whole);
}

TEST(ParityHeader_OfAnyBytes, IsRefusedOrTheSame) {
  ParityList list{5, 3, {}};
  list.files.push_back({"segments/0123456789abcdef0123456789abcdef", 12'345});
  list.files.push_back({"epochs/000000000007-0123456789abcdef0123456789abcdef", 99});
  const auto bytes = write_parity_header(list, 2);
  std::uint8_t index = 0;
  const auto read = read_parity_header(bytes, index);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(index, 2);
  EXPECT_EQ(write_parity_header(*read, index), bytes);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto flipped = bytes;
    flipped[at] ^= 4;
    EXPECT_FALSE(read_parity_header(flipped, index).ok()) << at;
    EXPECT_FALSE(read_parity_header(std::span(bytes).first(at), index).ok()) << at;
  }
  const auto refused = [&](ParityList wrong, std::uint8_t number) {
    EXPECT_FALSE(read_parity_header(write_parity_header(wrong, number), index).ok());
  };
  refused(list, 3);
  for (const char* const name :
       {"segments/../../etc/passwd", "history", "parity/0123456789abcdef0123456789abcdef-00",
        "epochs/1-0123456789abcdef0123456789abcdef", "", "segments/0123456789abcdef0123456789abcdef"}) {
    ParityList wrong = list;
    wrong.files[1].name = name;
    refused(wrong, 0);
  }
  for (const auto& [data, parity] : {std::pair(0U, 1U), std::pair(1U, 0U), std::pair(1U, 2U), std::pair(60U, 5U)}) {
    ParityList wrong = list;
    wrong.data = data;
    wrong.parity = parity;
    refused(wrong, 0);
  }
}

/// Counts what is held, and the most of it.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  std::size_t most() const { return most_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    held_ += bytes;
    most_ = std::max(most_, held_);
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    held_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::size_t held_ = 0;
  std::size_t most_ = 0;
};

TEST(ParityFile_ThatIsSparse, TakesNoMemoryForWhatItOnlyClaims) {
  namespace fs = std::filesystem;
  const fs::path path = fs::temp_directory_path() / ("quern-sparse-parity-" + std::to_string(getpid()));
  const std::string lost = path.string() + "-data";
  CountedMemory memory;
  const MemoryScope scope(&memory);
  // 4 TiB, whose table would be 64 MiB.
  const storage::ParityGroup group(storage::system_files(),
                                   {{"data", String(lost), "unused"}, {"parity", String(path.string()), "unused"}},
                                   {UINT64_C(1) << 42}, {{1, 2, 3, 4}}, {'Q', 0, 0, 0, 0, 0, 0, 1});
  ASSERT_EQ(group.table_bytes(), UINT64_C(1) << 26);
  // Growing a file beyond such a limit is a signal, not an error.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
    GTEST_SKIP() << "the size of files is limited";
  struct Removed {
    const fs::path& path;
    ~Removed() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  } const removed{path};
  std::ofstream(path) << "head";
  std::error_code failed;
  fs::resize_file(path, group.parity_file_bytes(), failed);
  storage::Report report;
  if (!failed) {
    const auto found = storage::check_parity_files(group, std::nullopt, true, report);
    ASSERT_TRUE(found.ok()) << report.problem;
    EXPECT_FALSE(found->has_value());
    EXPECT_LT(memory.most(), std::size_t{1} << 20);
  }
  if (failed) GTEST_SKIP() << "no file of 4 TiB can be made here: " << failed.message();
}

}  // namespace
}  // namespace quern::lidar

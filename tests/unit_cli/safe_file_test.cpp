// Output files: complete or absent, with the right permissions.
#include "cli/files/safe_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

class SafeFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "quern-safe-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(int fd, const std::string& text) {
    ASSERT_TRUE(write_all(fd, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  }
  static Exit code_of(const std::string& file, const SafeFile::Options& options) {
    try {
      SafeFile unused(file, options);
      return Exit::ok;
    } catch (const CliError& error) {
      return error.code();
    }
  }

  fs::path folder_;
};

TEST_F(SafeFileTest, Commit_MakesTheFileAppear) {
  SafeFile file(path("x"), {});
  put(file.descriptor(), "hello");
  EXPECT_FALSE(fs::exists(path("x")));
  file.commit();
  EXPECT_EQ(read(path("x")), "hello");
  EXPECT_EQ(count(), 1u);
}

TEST_F(SafeFileTest, WithoutCommit_NothingStays) {
  { SafeFile file(path("x"), {}); }
  EXPECT_EQ(count(), 0u);
}

TEST_F(SafeFileTest, ExistingFile_IsKeptUnlessReplaced) {
  std::ofstream(path("x")) << "old";
  chmod(path("x").c_str(), 0604);
  EXPECT_EQ(code_of(path("x"), {}), Exit::io);
  {
    SafeFile file(path("x"), {.replace = true});
    put(file.descriptor(), "new");
    EXPECT_EQ(read(path("x")), "old");
    file.commit();
  }
  EXPECT_EQ(read(path("x")), "new");
  struct stat info {};
  ASSERT_EQ(stat(path("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0604u & ~umask(umask(022)) & 0777u);
}

TEST_F(SafeFileTest, FileThatAppearsMeanwhile_IsNotOverwritten) {
  SafeFile file(path("x"), {});
  std::ofstream(path("x")) << "theirs";
  EXPECT_THROW(file.commit(), CliError);
  EXPECT_EQ(read(path("x")), "theirs");
}

TEST_F(SafeFileTest, SymbolicLink_StaysALink) {
  std::ofstream(path("real")) << "old";
  fs::create_symlink(path("real"), path("link"));
  SafeFile file(path("link"), {.replace = true});
  put(file.descriptor(), "new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("real")), "new");
}

TEST_F(SafeFileTest, DirectoryOrMissingFolder_IsRefused) {
  EXPECT_EQ(code_of(folder_, {}), Exit::io);
  EXPECT_EQ(code_of(path("no/x"), {}), Exit::io);
}

TEST_F(SafeFileTest, Device_IsWrittenDirectly) {
  SafeFile file("/dev/null", {});
  EXPECT_TRUE(file.is_direct());
  put(file.descriptor(), "gone");
  file.commit();
}

TEST_F(SafeFileTest, NameOnly_LeavesCreationToOthers) {
  SafeFile file(path("x"), {.name_only = true});
  EXPECT_EQ(count(), 0u);
  std::ofstream(file.temporary_path()) << "made elsewhere";
  file.commit();
  EXPECT_EQ(read(path("x")), "made elsewhere");
}

TEST_F(SafeFileTest, ModeLike_KeepsPrivateInputsPrivate) {
  std::ofstream(path("secret")) << "s";
  chmod(path("secret").c_str(), 0400);
  EXPECT_EQ(mode_like(path("secret")), 0600u);
  chmod(path("secret").c_str(), 0755);
  EXPECT_EQ(mode_like(path("secret")), 0644u);
  EXPECT_EQ(mode_like("-"), 0666u);
}

TEST_F(SafeFileTest, SpoolFile_HasNoName) {
  setenv("TMPDIR", folder_.c_str(), 1);
  SpoolFile file;
  const std::uint8_t bytes[] = {1, 2, 3};
  file.write(bytes);
  EXPECT_EQ(count(), 0u);
  const Mapping mapping = file.map();
  EXPECT_EQ(mapping.bytes().size(), 3u);
  EXPECT_EQ(mapping.bytes()[2], 3);
  setenv("TMPDIR", path("nowhere").c_str(), 1);
  EXPECT_THROW(SpoolFile(), CliError);
  unsetenv("TMPDIR");
}

}  // namespace
}  // namespace quern::cli

// Bounds files and output names.
#include "cli/bounds/bounds_file.h"

#include <gtest/gtest.h>

#include "cli/args/exit_codes.h"
#include "cli/files/file_names.h"

namespace quern::cli {
namespace {

TEST(BoundsFile, Lines_AreRead) {
  const auto bounds = parse_bounds("# all\ntemp abs 0.01 # kelvin\n\n  wind\trel 1e-3\r\nmask lossless\n", "f");
  ASSERT_EQ(bounds.size(), 3u);
  EXPECT_EQ(bounds[0].variable, "temp");
  EXPECT_EQ(bounds[0].bound.kind, BoundKind::abs);
  EXPECT_EQ(bounds[0].bound.value, 0.01);
  EXPECT_EQ(bounds[1].bound.kind, BoundKind::rel);
  EXPECT_EQ(bounds[2].bound.kind, BoundKind::lossless);
}

TEST(BoundsFile, Mistakes_NameTheLine) {
  for (const char* text : {"\ntemp", "\ntemp abs", "\ntemp abs nan", "\ntemp abs -1", "\ntemp cube 1", "\nt abs 1 2",
                           "t abs 1\nt rel 1"}) {
    try {
      (void)parse_bounds(text, "bounds.txt");
      ADD_FAILURE() << text;
    } catch (const CliError& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      EXPECT_NE(std::string(error.what()).find("bounds.txt line 2"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW((void)parse_bounds("# nothing\n", "f"), CliError);
}

TEST(FileNames, Variables_GetFilesOfTheirOwn) {
  EXPECT_EQ(variable_output("dir.x/model.nc", "temp"), "dir.x/model.temp.qn");
  EXPECT_EQ(variable_output("model", "/ocean/temp"), "model.ocean.temp.qn");
  EXPECT_EQ(variable_output("dir.x/model", "t"), "dir.x/model.t.qn");
  EXPECT_EQ(variable_output("dir/.nc", "t"), "dir/.nc.t.qn");
}

TEST(FileNames, RestoredName_NeedsTheSuffix) {
  EXPECT_EQ(restored_name("a/b.f32.qn"), "a/b.f32");
  EXPECT_EQ(restored_name("-"), "-");
  EXPECT_THROW((void)restored_name("a/b.f32"), CliError);
  EXPECT_THROW((void)restored_name("a/.qn"), CliError);
}

TEST(FileNames, Folders_TakeOneSlash) {
  EXPECT_EQ(in_folder("out", "x"), "out/x");
  EXPECT_EQ(in_folder("out/", "x"), "out/x");
  EXPECT_EQ(base_name("a/b"), "b");
  EXPECT_EQ(base_name("b"), "b");
}

}  // namespace
}  // namespace quern::cli

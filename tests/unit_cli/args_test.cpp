// Command lines and what becomes of them. No file is touched.
#include "cli/args/args.h"

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace quern::cli {
namespace {

const std::vector<std::string> kCodecs{"mill", "press", "sieve"};

struct Parsed {
  int code = -1;
  Command command;
  std::string message;
};

Parsed parse(std::vector<std::string> words) {
  std::vector<const char*> argv{"quern"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  Parsed out;
  out.code = parse_only(static_cast<int>(argv.size()), argv.data(), kCodecs, out.command, out.message);
  return out;
}

void expect_refused(const std::vector<std::string>& words, const std::string& part) {
  const Parsed parsed = parse(words);
  EXPECT_EQ(parsed.code, 1);
  EXPECT_NE(parsed.message.find(part), std::string::npos) << parsed.message << "\n  lacks: " << part;
  EXPECT_EQ(parsed.message.find('\n'), std::string::npos) << parsed.message;
}

TEST(Args, CompressAsTheScoreboardCallsIt_IsRead) {
  const Parsed p = parse({"compress", "--set",  "a=1", "--codec", "stencil",    "--fill", "1e+20", "--fill",
                          "-999.0",   "-t",     "f32", "-s",      "50x100x100", "--abs",  "0.01",  "-T",
                          "2",        "--json", "-f",  "-o",      "x.qn",       "x.raw"});
  ASSERT_EQ(p.code, 0) << p.message;
  ASSERT_EQ(p.command.verb, Verb::compress);
  const CompressArgs& c = p.command.compress;
  EXPECT_EQ(c.inputs, std::vector<std::string>{"x.raw"});
  EXPECT_EQ(c.output.path, "x.qn");
  EXPECT_TRUE(c.output.force);
  EXPECT_TRUE(c.run.json);
  EXPECT_EQ(c.run.threads, 2u);
  EXPECT_EQ(c.data.dtype, DType::f32);
  EXPECT_EQ(c.data.shape->text(), "50x100x100");
  EXPECT_EQ(c.data.fills, (std::vector<std::string>{"1e+20", "-999.0"}));
  EXPECT_EQ(c.codec.codec, "stencil");
  EXPECT_EQ(c.codec.settings, (Settings{{"a", "1"}}));
  EXPECT_EQ(c.bound->kind, BoundKind::abs);
  EXPECT_EQ(c.bound->value, 0.01);
}

TEST(Args, DecompressAsTheScoreboardCallsIt_IsRead) {
  const Parsed p = parse({"decompress", "-T", "1", "--json", "-f", "-o", "x.raw", "x.qn"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.decompress.inputs, std::vector<std::string>{"x.qn"});
  EXPECT_EQ(p.command.decompress.output.path, "x.raw");
}

TEST(Args, Defaults_AreTheContract) {
  const Parsed p = parse({"compress", "--lossless", "x_4.f32"});
  ASSERT_EQ(p.code, 0) << p.message;
  const CompressArgs& c = p.command.compress;
  EXPECT_EQ(c.codec.codec, "auto");
  EXPECT_EQ(c.codec.goal, "ratio");
  EXPECT_TRUE(c.codec.find_repeated);
  EXPECT_EQ(c.run.threads, 1u);
  EXPECT_EQ(c.run.device, DeviceKind::cpu);
  EXPECT_TRUE(c.output.path.empty());
  EXPECT_FALSE(c.output.force);
  EXPECT_FALSE(c.data.column_major);
}

TEST(Args, EveryBoundKind_IsRead) {
  const std::pair<const char*, BoundKind> kinds[] = {{"--abs", BoundKind::abs},
                                                     {"--rel", BoundKind::rel},
                                                     {"--pwrel", BoundKind::pwrel},
                                                     {"--psnr", BoundKind::psnr},
                                                     {"--ratio", BoundKind::ratio}};
  for (const auto& [option, kind] : kinds) {
    const double value = kind == BoundKind::ratio ? 2.5 : 0.5;
    const Parsed p = parse({"compress", option, kind == BoundKind::ratio ? "2.5" : "0.5", "x"});
    ASSERT_EQ(p.code, 0) << p.message;
    EXPECT_EQ(p.command.compress.bound->kind, kind);
    EXPECT_EQ(p.command.compress.bound->value, value);
  }
}

TEST(Args, NotExactlyOneBound_IsRefused) {
  expect_refused({"compress", "x"}, "exactly one of --abs");
  expect_refused({"compress", "--abs", "1", "--rel", "1", "x"}, "--abs and --rel: give exactly one");
  expect_refused({"compress", "--lossless", "--psnr", "60", "x"}, "exactly one");
  expect_refused({"compress", "--abs", "1", "--abs", "2", "x"}, "--abs");
}

TEST(Args, BadBoundValues_AreRefused) {
  expect_refused({"compress", "--ratio", "0.5", "x"}, "--ratio 0.5: must be at least 1");
  expect_refused({"compress", "--abs", "nan", "x"}, "not a number");
  expect_refused({"compress", "--abs", "inf", "x"}, "finite");
  expect_refused({"compress", "--abs", "1e999", "x"}, "finite");
  expect_refused({"compress", "--abs", "-1", "x"}, "negative");
  expect_refused({"compress", "--abs", "-0.0", "x"}, "negative");
  expect_refused({"compress", "--rel", "1e-3x", "x"}, "not a number");
  expect_refused({"compress", "--rel", " 1", "x"}, "not a number");
  expect_refused({"compress", "--rel", "0x1p-3", "x"}, "not a number");
  expect_refused({"compress", "--rel", "", "x"}, "not a number");
  expect_refused({"compress", "--pwrel", "1", "x"}, "below 1");
}

TEST(Args, UnknownThings_AreRefusedWithHelpNamed) {
  expect_refused({"--frobnicate"}, "see quern --help");
  expect_refused({"squash", "x"}, "squash");
  expect_refused({"compress", "--abs", "1", "--frobnicate", "x"}, "--frobnicate");
  expect_refused({"compress", "--abs", "1", "--frobnicate", "x"}, "see quern compress --help");
  expect_refused({"compress", "--abs", "1", "-t", "f33", "x"}, "unknown type");
  expect_refused({"compress", "--abs", "1", "--goal", "fun", "x"}, "--goal fun");
  expect_refused({"compress", "--abs", "1", "--order", "Z", "x"}, "--order Z");
  expect_refused({"compress", "--abs", "1", "--device", "tpu", "x"}, "--device tpu");
  expect_refused({"compress", "--abs", "1", "--progress", "maybe", "x"}, "--progress maybe");
  expect_refused({"list", "cats"}, "list codecs or list devices");
  expect_refused({"completion", "csh"}, "bash, zsh or fish");
}

TEST(Args, NoWords_GetHelpThatNobodyAskedFor) {
  const Parsed none = parse({});
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.command.verb, Verb::print);
  EXPECT_FALSE(none.command.asked);
  EXPECT_TRUE(parse({"help"}).command.asked);
  EXPECT_EQ(none.command.text, parse({"help"}).command.text);
  EXPECT_EQ(parse({"help", "bench"}).command.text, parse({"bench", "--help"}).command.text);
  EXPECT_EQ(parse({"version"}).command.text, parse({"--version"}).command.text);
}

TEST(Args, LevelsOfOtherPrograms_AreAnswered) {
  expect_refused({"compress", "-9", "--abs", "1", "x"}, "-9: there are no levels");
  expect_refused({"decompress", "-1", "x"}, "-1: there are no levels");
  EXPECT_EQ(parse({"compress", "--abs", "1", "--fill", "-9", "x"}).code, 0);
  expect_refused({"nosuch", "--help"}, "nosuch is no verb");
}

TEST(Args, ShapesAndTypesOfOtherPrograms_AreRead) {
  const Parsed p = parse({"compress", "--abs", "1", "-t", "float32", "-s", "3,4,5", "x"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.compress.data.dtype, DType::f32);
  EXPECT_EQ(p.command.compress.data.shape->text(), "3x4x5");
  expect_refused({"compress", "--abs", "1", "-s", "3", "4", "x"}, "as in -s 3x4 (");
  EXPECT_EQ(parse({"compress", "--abs", "1", "-s", "3", "x", "4"}).code, 0) << "a file of that name";
}

TEST(Args, NewestAsBase_IsRead) {
  const Parsed p = parse({"checkpoint", "save", "x", "--store", "a", "--step", "5", "--base", "newest"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_TRUE(p.command.checkpoint.base_newest);
  EXPECT_FALSE(p.command.checkpoint.base);
  expect_refused({"checkpoint", "save", "x", "--store", "a", "--step", "5", "--base", "new"}, "--base new");
}

TEST(Args, BadShapesAndCounts_AreRefused) {
  expect_refused({"compress", "--abs", "1", "-s", "1x2x3x4x5x6x7x8x9", "x"}, "9 axes");
  expect_refused({"compress", "--abs", "1", "-s", "10x", "x"}, "shape cannot be read");
  expect_refused({"compress", "--abs", "1", "-s", "99999999999x99999999999", "x"}, "64-bit");
  expect_refused({"compress", "--abs", "1", "-T", "-1", "x"}, "-T -1");
  expect_refused({"compress", "--abs", "1", "-T", "2.5", "x"}, "-T 2.5");
  expect_refused({"compress", "--abs", "1", "--memory", "0", "x"}, "--memory 0");
  expect_refused({"compress", "--abs", "1", "--skip", "-8", "x"}, "--skip -8");
  expect_refused({"compress", "--abs", "1", "--set", "novalue", "x"}, "key=value");
  expect_refused({"compress", "--rel", "1", "--range", "5", "x"}, "MIN:MAX");
  expect_refused({"compress", "--rel", "1", "--range", "5:1", "x"}, "larger than MAX");
  expect_refused({"compress", "--abs", "1", "--fill", "many", "x"}, "not a number");
}

TEST(Args, Verify_TakesAWordBehindAnEqualsSign) {
  const Parsed all = parse({"compress", "--abs", "1", "--verify", "x.raw"});
  ASSERT_EQ(all.code, 0) << all.message;
  EXPECT_TRUE(all.command.compress.verify);
  EXPECT_EQ(all.command.compress.inputs, std::vector<std::string>{"x.raw"});
  const Parsed fault = parse({"compress", "--abs", "1", "--codec", "press", "--verify=fault", "x.raw"});
  ASSERT_EQ(fault.code, 0) << fault.message;
  EXPECT_FALSE(fault.command.compress.verify);
  EXPECT_EQ(fault.command.compress.codec.settings, (Settings{{"verify", "fault"}}));
  const Parsed back = parse({"decompress", "--verify=fault", "x.qn"});
  ASSERT_EQ(back.code, 0) << back.message;
  EXPECT_TRUE(back.command.decompress.check_faults);
  expect_refused({"compress", "--abs", "1", "--verify=fault", "x.raw"}, "name a codec");
  expect_refused({"compress", "--abs", "1", "--verify=twice", "x.raw"}, "--verify=twice");
  expect_refused({"decompress", "--verify", "x.qn"}, "--verify=fault");
}

TEST(Args, MissingFiles_AreRefused) {
  expect_refused({"compress", "--abs", "1"}, "missing after compress");
  expect_refused({"verify", "one", "two", "three"}, "ORIGINAL IN");
  expect_refused({"compare", "a", "b", "c"}, "A B");
  expect_refused({"decompress", ""}, "empty");
  expect_refused({"compress", "--abs", "1", "-", "-"}, "only once");
}

/// Whether it holds records, which have no original, is seen when it is opened.
TEST(Args, VerifyOfOneFile_IsAStreamWithoutAnOriginal) {
  const Parsed p = parse({"verify", "scan.qn"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.verify.original, "");
  EXPECT_EQ(p.command.verify.stream, "scan.qn");
}

TEST(Args, ContradictingOutputs_AreRefused) {
  expect_refused({"compress", "--abs", "1", "-c", "-o", "y", "x"}, "-c and -o y");
  expect_refused({"compress", "--abs", "1", "-c", "--rm", "x"}, "--rm");
  expect_refused({"compress", "--abs", "1", "--append", "x"}, "-o OUT");
  expect_refused({"compress", "--abs", "1", "--append", "-o", "-", "x"}, "not standard output");
  expect_refused({"compress", "--bounds", "b", "--dataset", "t", "x.nc"}, "--bounds and --dataset");
  expect_refused({"decompress", "--level", "2", "--rm", "x.qn"}, "--level and --rm");
  expect_refused({"decompress", "--level", "64", "x.qn"}, "--level");
  EXPECT_EQ(parse({"decompress", "--level", "2", "x.qn"}).code, 0);
}

TEST(Args, DashAndNegativeValues_AreNotOptions) {
  Parsed p = parse({"compress", "--abs", "1", "-t", "f32", "-s", "4", "-", "-o", "-"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.compress.inputs, std::vector<std::string>{"-"});
  EXPECT_EQ(p.command.compress.output.path, "-");
  p = parse({"compress", "--rel", "1e-3", "--range", "-5:-1", "--fill", "-9999", "x"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.compress.range->min, -5);
  EXPECT_EQ(p.command.compress.range->max, -1);
  p = parse({"compress", "--lossless", "--", "-odd-name"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.compress.inputs, std::vector<std::string>{"-odd-name"});
}

TEST(Args, FileNamedLikeAVerb_IsAFile) {
  const Parsed p = parse({"info", "compress"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.info.inputs, std::vector<std::string>{"compress"});
}

TEST(Args, RepeatableOptions_DoNotSwallowFiles) {
  const Parsed p = parse({"bench", "--codec", "lorenzo,stencil", "--rel", "1e-2", "a", "b"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.bench.inputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.command.bench.codecs, (std::vector<std::string>{"lorenzo", "stencil"}));
  EXPECT_EQ(p.command.bench.rel, std::vector<double>{1e-2});
}

TEST(Args, Devices_AreRead) {
  Parsed p = parse({"info", "--device", "cuda:3", "x"});
  ASSERT_EQ(p.code, 0) << p.message;
  EXPECT_EQ(p.command.info.run.device, DeviceKind::cuda);
  EXPECT_EQ(p.command.info.run.device_index, 3u);
  expect_refused({"info", "--device", "cuda:x", "x"}, "cuda:");
}

TEST(Args, HelpOfEveryVerb_HasOptionsAndExamples) {
  for (const char* verb : {"compress", "decompress", "info", "verify", "compare", "bench", "list", "doctor"}) {
    const Parsed p = parse({verb, "--help"});
    ASSERT_EQ(p.code, 0) << p.message;
    EXPECT_EQ(p.command.verb, Verb::print);
    EXPECT_NE(p.command.text.find("Example"), std::string::npos) << verb;
    EXPECT_NE(p.command.text.find(std::string("quern ") + verb), std::string::npos) << verb;
  }
  EXPECT_NE(parse({"--help"}).command.text.find("Exit codes"), std::string::npos);
  EXPECT_EQ(parse({"--version"}).command.text, "quern " QUERN_VERSION "\n");
}

TEST(Args, Completion_KnowsEveryVerbAndItsOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Parsed p = parse({"completion", shell});
    ASSERT_EQ(p.code, 0) << p.message;
    for (const char* word : {"decompress", "pwrel", "keep-going", "html", "doctor", "codecs"})
      EXPECT_NE(p.command.text.find(word), std::string::npos) << shell << " lacks " << word;
  }
}

TEST(Args, Texts_NameTheCodecsThatTheyAreGiven) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_NE(parse({"completion", shell}).command.text.find("auto mill press sieve"), std::string::npos) << shell;
  EXPECT_NE(parse({"bench", "--help"}).command.text.find("as in mill,press;"), std::string::npos);
}

TEST(Args, RandomWords_NeverThrow) {
  const unsigned seed = 20240917;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> words{
      "compress", "decompress", "info",  "verify",  "compare",  "bench",  "list",    "--abs", "--rel",  "1",
      "nan",      "-s",         "4x4",   "-t",      "f32",      "--fill", "-o",      "-",     "--",     "--json",
      "-T0",      "-Tq",        "--set", "a=b",     "=",        "",       "--help",  "x.raw", "-qv",    "--bounds",
      "--rm",     "-c",         "-z",    "codecs",  "--region", ":,",     "--level", "\n",    "\x01",   "--abs=",
      "--abs=2",  "-o=",        "help",  "version", "-V",       "-9",     "-k",      "3,4",   "float32"};
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> line;
    for (std::size_t n = random() % 7; n > 0; --n) line.push_back(words[random() % words.size()]);
    Parsed p;
    ASSERT_NO_THROW(p = parse(line));
    ASSERT_TRUE(p.code == 0 || p.code == 1);
    ASSERT_EQ(p.code == 1, !p.message.empty());
    ASSERT_EQ(p.message.find('\n'), std::string::npos);
  }
  Command command;
  std::string message;
  EXPECT_EQ(parse_only(0, nullptr, kCodecs, command, message), 0);
  EXPECT_FALSE(command.asked) << "as without words";
}

}  // namespace
}  // namespace quern::cli

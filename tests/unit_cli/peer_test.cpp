// Templates of peers: words, placeholders, what is refused.
#include "cli/peers/peer.h"

#include <gtest/gtest.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

using Words = std::vector<std::string>;

PeerFiles files() { return {"/tmp/a b'.raw", "/tmp/$(x).bin", "/tmp/y.out", "f32", {"50", "100", "80"}, "0.001"}; }

void expect_refused(const std::string& text, const std::string& part) {
  try {
    parse_peer(text);
    FAIL() << text;
  } catch (const CliError& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\n  lacks: " << part;
  }
}

TEST(Peer, TwoCommands_AreCutIntoWords) {
  const Peer peer = parse_peer("name=sz3: sz3 -f -i {input} -z {stream} -M ABS {bound} ;; sz3 -z {stream} -o {output}");
  EXPECT_EQ(peer.name, "sz3");
  ASSERT_EQ(peer.ways.size(), 1U);
  EXPECT_EQ(peer.ways[0].compress, (Words{"sz3", "-f", "-i", "{input}", "-z", "{stream}", "-M", "ABS", "{bound}"}));
  EXPECT_EQ(peer.ways[0].decompress, (Words{"sz3", "-z", "{stream}", "-o", "{output}"}));
}

TEST(Peer, StepsOfPowersOfTwo_AreSaidBehindTheName) {
  const Peer peer = parse_peer("name=fixed steps=2: tool {input} {stream} {output} {bound}");
  EXPECT_EQ(peer.name, "fixed");
  EXPECT_TRUE(peer.power_steps);
  EXPECT_FALSE(parse_peer("name=free: tool {input} {stream} {output} {bound}").power_steps);
  expect_refused("name=fixed steps=3: tool {input} {stream} {output} {bound}", "name=NAME steps=2:");
}

TEST(Peer, Quotes_KeepWordsTogether) {
  const Peer peer = parse_peer(R"(name=x: 'my tool' "a b" c\ d '' {input}{stream}{output} --e={bound})");
  EXPECT_EQ(peer.ways[0].compress, (Words{"my tool", "a b", "c d", "", "{input}{stream}{output}", "--e={bound}"}));
  EXPECT_TRUE(peer.ways[0].decompress.empty());
}

TEST(Peer, FileNames_StayOneWordWhateverTheyHold) {
  const Words words = filled({"tool", "{input}", "-z={stream}", "{output}"}, files());
  EXPECT_EQ(words, (Words{"tool", "/tmp/a b'.raw", "-z=/tmp/$(x).bin", "/tmp/y.out"}));
}

TEST(Peer, Shapes_AreSaidInEachOrder) {
  EXPECT_EQ(filled({"{shape}", "-{rank}", "{dims}", "{extents}", "{type}", "{bits}", "{letter}", "{bound}"}, files()),
            (Words{"50x100x80", "-3", "80", "100", "50", "50", "100", "80", "f32", "32", "f", "0.001"}));
  EXPECT_EQ(filled({"--dims={dims}"}, files()), (Words{"--dims=80 100 50"}));
}

TEST(Peer, BracesOfOthers_StayAsTheyAre) {
  EXPECT_EQ(filled({"{}", "{a: 1}", "{Input}", "{", "{input"}, files()),
            (Words{"{}", "{a: 1}", "{Input}", "{", "{input"}));
}

TEST(Peer, Letter_IsForFloatsAlone) {
  PeerFiles other = files();
  other.type = "i16";
  EXPECT_THROW(filled({"{letter}"}, other), CliError);
  EXPECT_EQ(filled({"{bits}"}, other), (Words{"16"}));
}

TEST(Peer, WrongTemplates_AreRefusedWithWhatIsMissing) {
  expect_refused("sz4", "name=NAME: COMPRESS ;; DECOMPRESS");
  expect_refused("name=: x", "a name has");
  expect_refused("name=A b: x", "behind the name only");
  expect_refused("name=x: cp {input} {stream} {bound}", "{output} is missing");
  expect_refused("name=x: cp {input} {stream} {bound} ;; cp {output}", "{stream} is missing");
  expect_refused("name=x: cp {input} {stream} ;; cp {stream} {output}", "{bound} is missing");
  expect_refused("name=x: cp {input} {stream} {output} {bound} {tolerance}", "{tolerance} is no placeholder");
  expect_refused("name=x: cp 'a {input} {stream} {output} {bound}", "a quote ' is not closed");
}

}  // namespace
}  // namespace quern::cli

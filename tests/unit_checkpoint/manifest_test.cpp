// Manifests: what is written comes back, hostile ones are refused, and a thousand tensors take little.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {
namespace {

Manifest sample(std::size_t tensors) {
  Manifest out;
  out.name = {400, "0123456789abcdef0123456789abcdef"};
  out.library = "0.1.0";
  out.base = CheckpointName{300, "base"};
  out.references.push_back({300, "base"});
  out.parts.push_back({123456, 42});
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < tensors; ++i) {
    ManifestTensor tensor;
    tensor.name = join({"model.layers.", decimal(i / 9), ".mlp.proj.", decimal(i % 9), ".weight"});
    tensor.what = {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{512, 128 + i % 3})};
    tensor.role = i % 3 == 0 ? "param" : i % 3 == 1 ? "exp_avg" : "exp_avg_sq";
    tensor.mode = Mode::delta;
    tensor.base = TensorPlace{1, static_cast<std::uint32_t>(i)};
    tensor.depth = 1;
    tensor.stored_bytes = 150000 + random() % 1000;
    tensor.key_bytes = 210000 + random() % 1000;
    tensor.chain_bytes = tensor.stored_bytes;
    tensor.content = {random(), random()};
    tensor.record = i == 0 ? 0 : out.tensors.back().record + out.tensors.back().records();
    out.tensors.push_back(std::move(tensor));
  }
  ManifestFile file;
  file.name = "state.safetensors";
  file.form = HeaderForm::spaced;
  file.has_metadata = true;
  file.metadata.emplace_back("step", "400 \"\\\n");
  file.tensors = static_cast<std::uint32_t>(tensors);
  out.files.push_back(std::move(file));
  return out;
}

TEST(Manifest, Text_ComesBack) {
  Manifest manifest = sample(5);
  manifest.tensors[3].base.reset();
  manifest.tensors[3].depth = 0;
  manifest.tensors[3].mode = Mode::updq;
  manifest.tensors[3].bound = 0.05;
  manifest.tensors[3].companion = 4;
  manifest.tensors[3].decoded = ContentHash{1, 2};
  manifest.tensors[4].alias = TensorPlace{0, 3};
  manifest.tensors[2].is_piece = true;
  manifest.tensors[2].whole = *Shape::try_make(std::vector<std::uint64_t>{1024, 130});
  manifest.tensors[2].box = {{512, 0}, {1024, 130}, 2};
  manifest.tensors[0].what = {ElementType::u8, *Shape::try_make(std::vector<std::uint64_t>{12})};
  manifest.tensors[0].declared = DeclaredType{"F4", {2, 12}};
  manifest.blobs.push_back({"rng", 3U << 20, 0, 9, {7, 8}});
  const String text = manifest_text(manifest);
  Report report;
  const auto parsed = parse_manifest_text(text, report);
  ASSERT_TRUE(parsed.ok()) << report.problem;
  EXPECT_EQ(manifest_text(*parsed), text);
  EXPECT_EQ(parsed->tensors[3].bound, 0.05);
  EXPECT_EQ(parsed->tensors[2].box.begin[0], 512U);
  const auto bytes = write_manifest(manifest, report);
  ASSERT_TRUE(bytes.ok());
  const auto read = read_manifest(*bytes, report);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(manifest_text(*read), text);
}

TEST(Manifest, OfAThousandTensors_IsSmall) {
  Report report;
  const auto bytes = write_manifest(sample(1000), report);
  ASSERT_TRUE(bytes.ok());
  RecordProperty("bytes", static_cast<int>(bytes->size()));
  EXPECT_LE(bytes->size(), 40000U);
}

TEST(Manifest, EveryFlippedBit_IsRefused) {
  Report report;
  const auto bytes = write_manifest(sample(3), report);
  ASSERT_TRUE(bytes.ok());
  for (std::size_t bit = 0; bit < bytes->size() * 8; ++bit) {
    Vector<std::uint8_t> damaged = *bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(read_manifest(damaged, report).ok()) << bit;
  }
  for (std::size_t length = 0; length < bytes->size(); ++length)
    EXPECT_FALSE(read_manifest(std::span(*bytes).first(length), report).ok()) << length;
}

TEST(Manifest, HostileText_IsRefusedOrConsistent) {
  Manifest manifest = sample(4);
  manifest.tensors[2].alias = TensorPlace{0, 1};
  manifest.tensors[1].companion = 0;
  const std::string good(manifest_text(manifest));
  std::mt19937 random(3);
  std::size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0: text[at] = static_cast<char>('0' + random() % 10); break;
      case 1: text.erase(at, 1 + random() % 3); break;
      case 2: text.insert(at, std::to_string(random())); break;
      default: text[at] = static_cast<char>(random());
    }
    Report report;
    const auto parsed = parse_manifest_text(text, report);
    if (!parsed.ok()) continue;
    ++accepted;
    for (std::size_t i = 0; i < parsed->tensors.size(); ++i) {
      const ManifestTensor& tensor = parsed->tensors[i];
      if (tensor.alias) {
        EXPECT_LE(tensor.alias->checkpoint, parsed->references.size());
        EXPECT_TRUE(tensor.alias->checkpoint != 0 || tensor.alias->tensor < i);
        continue;
      }
      EXPECT_LT(tensor.part, parsed->parts.size());
      if (tensor.base) {
        EXPECT_GE(tensor.base->checkpoint, 1U);
        EXPECT_LE(tensor.base->checkpoint, parsed->references.size());
      }
      if (tensor.companion) {
        EXPECT_LT(*tensor.companion, parsed->tensors.size());
      }
    }
  }
  EXPECT_GT(accepted, 0U);
}

TEST(Manifest, FromANewerVersion_SaysSo) {
  Report report;
  auto bytes = write_manifest(sample(1), report);
  ASSERT_TRUE(bytes.ok());
  (*bytes)[10] = 9;  // minor version
  const ContentHash seal = content_hash(std::span(*bytes).first(bytes->size() - 16));
  for (std::size_t i = 0; i < 8; ++i) {
    (*bytes)[bytes->size() - 16 + i] = static_cast<std::uint8_t>(seal.low >> (8 * i));
    (*bytes)[bytes->size() - 8 + i] = static_cast<std::uint8_t>(seal.high >> (8 * i));
  }
  const auto read = read_manifest(*bytes, report);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::unsupported_version);
  EXPECT_NE(std::string(report.problem).find("newer"), std::string::npos);
}

}  // namespace
}  // namespace quern::checkpoint

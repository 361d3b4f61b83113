// Model files: whole ones come back, others are refused with the right reason.
#include <gtest/gtest.h>

#include <functional>

#include <quern/codec.h>

#include "kernels/common/bits.h"
#include "models/sha256.h"
#include "surrogate/estimator.h"
#include "surrogate/inputs.h"
#include "surrogate/model.h"
#include "surrogate/runs.h"
#include "tests/unit_surrogate/patch_models.h"

namespace quern::surrogate {
namespace {

std::vector<std::uint8_t> shipped() {
  const auto bytes = builtin_model();
  return {bytes.begin(), bytes.end()};
}

TEST(Sha256, KnownTexts_HaveTheirDigests) {
  const auto digest = [](const std::string& text) {
    return models::hex(models::sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  };
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Model, ThatShips_IsForTheCodecsOfThisBuild) {
  const auto model = read_model(builtin_model());
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_LE(builtin_model().size(), 300'000U);
  EXPECT_EQ(model->inputs_version, kInputsVersion);
  EXPECT_EQ(model->inputs, input_count());
  for (const ArrayCodec* codec : builtin_codecs().all()) {
    if (!is_estimated(*codec)) continue;
    const CodecModel* known = model->by_name(codec->info().name);
    ASSERT_NE(known, nullptr) << codec->info().name;
    EXPECT_EQ(known->version, codec->info().version)
        << codec->info().name << ": its streams changed; make new runs and a new model (scripts/train_surrogate.sh)";
  }
}

TEST(Model, WrittenAgain_HasTheSameBytes) {
  const auto model = read_model(builtin_model());
  ASSERT_TRUE(model.ok());
  const auto again = write_model(*model);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), builtin_model().begin(), builtin_model().end()));
}

/// The model that ships with the first expert of each codec alone: what version 1 holds.
Model with_one_expert() {
  Model model = read_model(builtin_model()).value();
  model.half_weights = false;
  model.deep.reset();
  for (CodecModel& codec : model.codecs) {
    codec.experts.resize(1);
    codec.gate = {};
  }
  return model;
}

/// And with a peer of two experts: what version 2 holds.
Model with_a_peer() {
  Model model = with_one_expert();
  CodecModel peer = model.codecs.front();
  peer.codec = "sz3";
  peer.version = 0;
  peer.foreign = true;
  peer.types = 1U << static_cast<unsigned>(DType::f32);
  peer.experts.push_back(peer.experts.front());
  for (float& weight : peer.experts.back().last.bias) weight += 1;
  peer.gate.rows = 2;
  peer.gate.columns = model.inputs;
  peer.gate.weights.assign(2 * model.inputs, 0.0F);
  peer.gate.bias = {0, 0};
  model.codecs.push_back(std::move(peer));
  return model;
}

TEST(Model, OfVersion1_StaysReadable) {
  const Model model = with_one_expert();
  const auto bytes = write_model(model);
  EXPECT_EQ(bytes[8], 1);
  const auto back = read_model(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  const std::vector<double> inputs(model.inputs, 0.5);
  EXPECT_EQ(predict(back->codecs.front(), inputs).targets[kRate].middle,
            predict(model.codecs.front(), inputs).targets[kRate].middle);
}

TEST(Model, WithPeersAndExperts_ComesBack) {
  const auto bytes = write_model(with_a_peer());
  EXPECT_EQ(bytes[8], 2);
  const auto back = read_model(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  const CodecModel& peer = back->codecs.back();
  EXPECT_TRUE(peer.foreign);
  EXPECT_EQ(peer.experts.size(), 2U);
  const auto again = write_model(*back);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

TEST(Model, AnEvenGate_GivesTheMeanOfItsExperts) {
  const Model model = with_a_peer();
  const std::vector<double> inputs(model.inputs, 0.5);
  const Prediction one = predict(model.codecs.front(), inputs);
  const Prediction two = predict(model.codecs.back(), inputs);
  for (std::size_t t = 0; t < kTargets; ++t) EXPECT_NEAR(two.targets[t].middle, one.targets[t].middle + 0.5, 1e-6) << t;
}

TEST(Model, OfVersion2_CutOrTurned_IsRefused) {
  const auto whole = write_model(with_a_peer());
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 7)
    EXPECT_FALSE(read_model(std::span(whole).first(size)).ok()) << size;
  Model model = with_a_peer();
  model.codecs.back().gate.rows = 1;
  model.codecs.back().gate.weights.resize(model.inputs);
  model.codecs.back().gate.bias.resize(1);
  EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
  model = with_a_peer();
  model.codecs.back().experts.clear();
  EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
}

/// What version 3 holds: weights of binary16, a peer with steps of powers of two, deep features.
Model with_deep_features() {
  Model model = with_a_peer();
  model.half_weights = true;
  const auto round = [](Layer& layer) {
    for (float& w : layer.weights) w = kernels::half_to_float(kernels::float_to_half(w));
  };
  for (CodecModel& codec : model.codecs) {
    for (Layer& layer : codec.hidden) round(layer);
    for (Head& head : codec.experts) {
      round(head.last);
      round(head.direct);
    }
  }
  model.codecs.back().power_steps = true;
  model.deep = test::idle_deep_part(model);
  return model;
}

TEST(Model, OfVersion3_ComesBack) {
  const Model model = with_deep_features();
  const auto bytes = write_model(model);
  EXPECT_EQ(bytes[8], 3);
  EXPECT_LT(bytes.size(), 2 * write_model(with_a_peer()).size());
  const auto back = read_model(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_TRUE(back->codecs.back().power_steps);
  EXPECT_FALSE(back->codecs.front().power_steps);
  ASSERT_TRUE(back->deep.has_value());
  EXPECT_FALSE(back->deep->usual);
  EXPECT_EQ(back->codecs.front().hidden[0].weights, model.codecs.front().hidden[0].weights);
  const auto again = write_model(*back);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

TEST(Model, OfVersion3_CutOrTurned_IsRefused) {
  const auto whole = write_model(with_deep_features());
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 7)
    EXPECT_FALSE(read_model(std::span(whole).first(size)).ok()) << size;
  // The networks of the other form of patches.
  Model model = with_deep_features();
  std::swap(model.deep->patches.squares, model.deep->patches.cubes);
  EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
  // Networks of other codecs, of another version or with other steps.
  const std::function<void(std::vector<CodecModel>&)> changes[] = {
      [](auto& codecs) { codecs.pop_back(); }, [](auto& codecs) { codecs.back().codec = "zfp"; },
      [](auto& codecs) { ++codecs.front().version; }, [](auto& codecs) { codecs.back().power_steps = false; },
      [](auto& codecs) { codecs.front().foreign = true; }};
  for (const auto& change : changes) {
    model = with_deep_features();
    change(model.deep->codecs);
    EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
  }
  // Networks that take no deep features.
  model = with_deep_features();
  model.deep->codecs = model.codecs;
  EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
}

/// Bytes that were changed, under a seal that fits: what a hostile file would do.
std::vector<std::uint8_t> sealed(std::vector<std::uint8_t> bytes) {
  const models::Digest seal = models::sha256(std::span(bytes).first(bytes.size() - 32));
  std::copy(seal.begin(), seal.end(), bytes.end() - 32);
  return bytes;
}

TEST(Model, OfVersion3_WithUnknownFlagsOrWeights_IsRefused) {
  Model model = with_deep_features();
  model.record.clear();
  const auto made = write_model(model);
  // Magic, version, kind, two counts, two bounds, an empty record.
  const std::size_t flags = 8 + 2 + 2 + 4 + 4 + 8 + 8 + 1;
  ASSERT_EQ(made[flags], 3);
  std::vector<std::uint8_t> bytes(made.begin(), made.end());
  for (const std::uint8_t wrong : {4, 8, 0x83}) {
    bytes[flags] = wrong;
    EXPECT_EQ(read_model(sealed(bytes)).status().code(), StatusCode::corrupt) << int{wrong};
  }
  model.codecs.front().hidden[0].weights[0] = 1e6F;  // infinity in binary16
  EXPECT_EQ(read_model(write_model(model)).status().code(), StatusCode::corrupt);
}

TEST(Model, CutAnywhere_IsRefused) {
  const std::vector<std::uint8_t> whole = shipped();
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 7)
    EXPECT_FALSE(read_model(std::span(whole).first(size)).ok()) << size;
}

TEST(Model, AnyChangedByte_IsRefused) {
  std::vector<std::uint8_t> bytes = shipped();
  for (std::size_t i = 0; i < bytes.size(); i += 1 + i / 5) {
    bytes[i] ^= 0x10;
    EXPECT_FALSE(read_model(bytes).ok()) << i;
    bytes[i] ^= 0x10;
  }
}

TEST(Model, OfANewerVersion_SaysSo) {
  std::vector<std::uint8_t> bytes = shipped();
  bytes[8] = kModelVersion + 1;
  EXPECT_EQ(read_model(bytes).status().code(), StatusCode::unsupported_version);
}

TEST(Model, SealedButNonsense_IsRefused) {
  // Fields changed and sealed anew: what a hostile file would do.
  for (std::size_t at = 8; at < 400; ++at) {
    std::vector<std::uint8_t> bytes = shipped();
    bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 0xFF);
    const models::Digest seal = models::sha256(std::span(bytes).first(bytes.size() - 32));
    std::copy(seal.begin(), seal.end(), bytes.end() - 32);
    const auto model = read_model(bytes);  // any status, no crash
    if (model.ok()) {
      EXPECT_GT(model->inputs, 0U);
    }
  }
}

TEST(Runs, ALine_ComesBackAsItWas) {
  surrogate::Run run;
  run.input = "a,b\nc.f32";
  run.sha256 = std::string(64, 'a');
  run.dtype = "f32";
  run.shape = "3x4";
  run.codec = "stencil";
  run.bound_rel = 1e-3;
  run.stream_bytes = 77;
  run.ssim = 0.25;
  run.power_steps = true;
  run.inputs = {1.5, -2, 0};
  const auto back = parse_run(run_line(run));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->input, "a_b_c.f32");
  EXPECT_EQ(back->inputs, run.inputs);
  EXPECT_EQ(back->ssim, run.ssim);
  EXPECT_TRUE(back->power_steps);
  EXPECT_FALSE(back->psnr_db.has_value());
  EXPECT_EQ(back->stream_bytes, 77U);
}

TEST(Runs, CutLines_AreNoRuns) {
  surrogate::Run run;
  run.sha256 = std::string(64, 'a');
  const std::string line = run_line(run);
  EXPECT_TRUE(parse_run(line).has_value());
  EXPECT_FALSE(parse_run(line.substr(0, line.size() / 2)).has_value());
  EXPECT_FALSE(parse_run("").has_value());
  EXPECT_FALSE(parse_run(runs_header()).has_value());
  EXPECT_FALSE(parse_run(line + ",more").has_value());
}

}  // namespace
}  // namespace quern::surrogate

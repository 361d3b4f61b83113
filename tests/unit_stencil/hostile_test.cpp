// Bytes that nobody wrote: cut, altered and random chunks, params that do not fit. Only statuses may come of them; the
// sanitizer build makes sure of the rest.
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {
namespace {

std::vector<std::unique_ptr<Coding>> samples() {
  std::vector<std::unique_ptr<Coding>> list;
  const Shape volume = shape_of({9, 20, 33});
  auto values = waves(volume, 21);
  values[100] = std::nan("");
  list.push_back(std::make_unique<Coding>(DType::f32, volume, as_bytes<float>(values), 1e-2));
  Bytes special(volume.elems(), 0);
  for (std::size_t i = 0; i < special.size(); i += 3) special[i] = 1;
  list.push_back(std::make_unique<Coding>(DType::f64, volume, as_bytes<double>(waves(volume, 22)), 1e-5,
                                          Settings{{"layout", "3d:1,2"}}, special));
  const Shape line = shape_of({3000});
  list.push_back(std::make_unique<Coding>(DType::f32, line, as_bytes<float>(waves(line, 23)), 1e-3));
  const Shape plane = shape_of({60, 70});
  auto whole = waves(plane, 24);
  for (double& v : whole) v = std::floor(v * 500);
  list.push_back(std::make_unique<Coding>(DType::i16, plane, as_bytes<std::int16_t>(whole), 1.0));
  list.push_back(
      std::make_unique<Coding>(DType::f32, volume, as_bytes<float>(values), 1e-2, Settings{{"layout", "levels"}}));
  list.push_back(std::make_unique<Coding>(DType::f64, volume, as_bytes<double>(waves(volume, 22)), 1e-5,
                                          Settings{{"layout", "planes"}}, special));
  list.push_back(
      std::make_unique<Coding>(DType::i16, plane, as_bytes<std::int16_t>(whole), 1.0, Settings{{"layout", "levels"}}));
  const Shape four = shape_of({4, 9, 10, 17});
  list.push_back(std::make_unique<Coding>(DType::f32, four, as_bytes<float>(waves(four, 26)), 1e-3,
                                          Settings{{"layout", "levels"}}));
  list.push_back(
      std::make_unique<Coding>(DType::f32, volume, as_bytes<float>(values), 3e-1, Settings{{"layout", "wavelet"}}));
  list.push_back(std::make_unique<Coding>(DType::f64, volume, as_bytes<double>(waves(volume, 22)), 1e-2,
                                          Settings{{"layout", "wavelet"}}, special));
  list.push_back(std::make_unique<Coding>(DType::i16, plane, as_bytes<std::int16_t>(whole), 30.0,
                                          Settings{{"layout", "wavelet"}}));
  list.push_back(std::make_unique<Coding>(DType::f32, four, as_bytes<float>(waves(four, 26)), 1e-1,
                                          Settings{{"layout", "wavelet"}}));
  const auto hundredths = [&](unsigned seed) {
    auto numbers = waves(volume, seed);
    for (double& v : numbers) v = std::nearbyint(v * 700) * 0.01;
    return numbers;
  };
  for (const char* layout : {"raster", "levels", "wavelet"})
    list.push_back(std::make_unique<Coding>(DType::f64, volume, as_bytes<double>(hundredths(27)), 1e-3,
                                            Settings{{"layout", layout}}, special));
  list.push_back(std::make_unique<Coding>(DType::f32, volume, as_bytes<float>(hundredths(28)), 1e-3,
                                          Settings{{"layout", "planes"}}));
  return list;
}

/// Decodes into exact memory; the result must be ok, corrupt or truncated.
bool decode(const Coding& coding, const Bytes& stored) {
  Bytes exact(stored);
  exact.shrink_to_fit();
  Bytes back(coding.data().size());
  const Scratch scratch(coding.decoder().scratch_bytes());
  const Status status = coding.decoder().decode(exact, coding.box(0, back.data()), scratch.span());
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::corrupt || status.code() == StatusCode::truncated)
      << status.text();
  return status.ok();
}

TEST(Stencil_Hostile, EveryTruncation_IsRefused) {
  for (const auto& coding : samples()) {
    const Bytes stored = coding->encode(0);
    ASSERT_TRUE(decode(*coding, stored));
    for (std::size_t length = 0; length < stored.size(); length += length < 300 ? 1 : 41)
      EXPECT_FALSE(decode(*coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length))))
          << length;
    Bytes longer = stored;
    longer.push_back(0);
    EXPECT_FALSE(decode(*coding, longer));
  }
}

TEST(Stencil_Hostile, FlippedBits_GiveDataOrCorrupt) {
  const std::size_t stride = testing::kInstrumented ? 3 : 1;
  for (const auto& coding : samples()) {
    const Bytes stored = coding->encode(0);
    for (std::size_t bit = 0; bit < stored.size() * 8; bit += bit < 2500 ? stride : 197) {
      Bytes altered = stored;
      altered[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      decode(*coding, altered);
    }
  }
}

/// Chunks of a few hundred bytes, every layout in every rank.
std::vector<std::unique_ptr<Coding>> small_samples() {
  std::vector<std::unique_ptr<Coding>> list;
  for (const char* layout : {"raster", "levels", "planes", "wavelet"}) {
    for (const Shape& shape : {shape_of({90}), shape_of({9, 14}), shape_of({4, 6, 7}), shape_of({3, 2, 4, 8})}) {
      const auto values = waves(shape, 27);
      Bytes special;
      if (shape.rank() == 2) special.assign(shape.elems(), 0);
      for (std::size_t i = 0; i < special.size(); i += 4) special[i] = 1;
      const String name = String(layout) + (shape.rank() > 2 ? ":3d:1,2" : "");
      list.push_back(std::make_unique<Coding>(DType::f32, shape, as_bytes<float>(values), 5e-2,
                                              Settings{{"layout", name}}, special));
    }
  }
  return list;
}

/// The same for a coarse level; it must not touch anything but its points.
void decode_level(const Coding& coding, const Bytes& stored, unsigned level) {
  const LevelForm form = coding.decoder().level_form(level);
  const MutableBox3 chunk = coding.box(0, nullptr);
  MutableBox3 out;
  for (std::size_t a = 0; a < 3; ++a) out.extents[a] = form.axes[a].points(chunk.extents[a]);
  out.strides = {out.extents[1] * out.extents[2], out.extents[2]};
  Bytes points(out.extents[0] * out.strides[0] * sizeof(float));
  out.data = points.data();
  Bytes exact(stored);
  exact.shrink_to_fit();
  const Scratch scratch(coding.decoder().level_scratch_bytes());
  const Status status = coding.decoder().decode_level(exact, chunk, level, out, scratch.span());
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::corrupt || status.code() == StatusCode::truncated)
      << status.text();
}

TEST(Stencil_Hostile, EveryBitAndByteOfSmallChunks_GiveDataOrCorrupt) {
  const std::size_t stride = testing::kInstrumented ? 7 : 1;
  std::size_t turn = 0;
  std::size_t decoded = 0;
  for (const auto& coding : small_samples()) {
    const Bytes stored = coding->encode(0);
    ASSERT_GT(stored[0], 1);  // neither raw nor constant
    const unsigned levels = coding->decoder().levels();
    const auto try_bytes = [&](const Bytes& bytes) {
      decoded += decode(*coding, bytes) ? 1 : 0;
      if (levels > 0) decode_level(*coding, bytes, 1 + static_cast<unsigned>(turn % levels));
    };
    for (std::size_t bit = 0; bit < 8 * stored.size(); ++bit) {
      if (++turn % stride != 0) continue;
      Bytes altered = stored;
      altered[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      try_bytes(altered);
    }
    for (std::size_t at = 0; at < stored.size(); ++at) {
      for (const unsigned value : {0x00u, 0x7Fu, 0x80u, 0xFFu}) {
        if (++turn % stride != 0) continue;
        Bytes altered = stored;
        altered[at] = static_cast<std::uint8_t>(value);
        try_bytes(altered);
      }
    }
    for (std::size_t length = 0; length < stored.size(); ++length) {
      const Bytes part(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(decode(*coding, part)) << length;
      for (unsigned level = 1; level <= levels; ++level) decode_level(*coding, part, level);
    }
  }
  EXPECT_GT(decoded, 0u);  // some damage only alters values
}

TEST(Stencil_Hostile, RandomBytes_GiveDataOrCorrupt) {
  std::mt19937_64 random(25);
  for (const auto& coding : samples()) {
    const Bytes stored = coding->encode(0);
    for (int round = 0; round < 1000; ++round) {
      Bytes noise(random() % 900);
      for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
      if (!noise.empty()) noise[0] = static_cast<std::uint8_t>(random() % 6);
      // Most keep a valid beginning, so that the deeper checks are reached.
      if (round % 4 != 0)
        std::copy_n(stored.begin(), std::min({noise.size(), stored.size(), random() % 400}), noise.begin());
      decode(*coding, noise);
    }
  }
}

TEST(Stencil_Hostile, AMaskThatTheChunkDoesNotKnow_IsRefused) {
  const auto list = samples();
  const Bytes stored = list[0]->encode(0);
  Bytes special(list[0]->data().size() / 4, 1);
  Bytes back(list[0]->data().size());
  MutableBox3 box = list[0]->box(0, back.data());
  box.special = special.data();
  box.special_strides = box.strides;
  const Scratch scratch(list[0]->decoder().scratch_bytes());
  EXPECT_EQ(list[0]->decoder().decode(stored, box, scratch.span()).code(), StatusCode::corrupt);
}

TEST(Stencil_Hostile, ParamsThatDoNotFit_AreRefused) {
  OpenRequest request;
  request.shape = shape_of({4, 5});
  request.bound = {BoundKind::abs, 1};
  request.version = 1;
  for (const Bytes& params : {Bytes{}, Bytes{0}, Bytes{1, 0}, Bytes{0, 3}, Bytes{0, 1, 0}}) {
    request.params = params;
    EXPECT_FALSE(stencil_codec().open(request).ok());
  }
  const Bytes good{0, 1};
  request.params = good;
  EXPECT_TRUE(stencil_codec().open(request).ok());
  request.version = 2;
  EXPECT_EQ(stencil_codec().open(request).status().code(), StatusCode::unsupported_version);
  request.version = 1;
  request.dtype = DType::i64;
  EXPECT_EQ(stencil_codec().open(request).status().code(), StatusCode::corrupt);
}

}  // namespace
}  // namespace quern::codec::stencil::test

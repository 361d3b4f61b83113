// Hardware faults between the caller's values and the stream: a codec that is wrong on demand stands for them.
// What a fault changed is done once more by other instructions; what stays wrong fails the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

constexpr std::uint64_t kTile = 3;

/// How many calls are still to go wrong.
struct Faults {
  std::atomic<int> work{0};       ///< of encode or decode
  std::atomic<int> otherwise{0};  ///< of the second attempt
};

bool goes_wrong(std::atomic<int>& left) { return left.fetch_sub(1) > 0; }

class FaultyEncoder final : public ChunkEncoder {
 public:
  FaultyEncoder(std::unique_ptr<ChunkEncoder> good, Faults& faults, bool checked)
      : good_(std::move(good)), faults_(faults), checked_(checked) {}
  const CodecPlan& plan() const override { return good_->plan(); }
  std::size_t max_chunk_bytes() const override { return good_->max_chunk_bytes(); }
  std::size_t scratch_bytes() const override { return good_->scratch_bytes(); }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    return encode(in, out, scratch, faults_.work);
  }
  Result<std::size_t> encode_otherwise(const ConstBox3& in, std::span<std::uint8_t> out,
                                       std::span<std::uint8_t> scratch) const override {
    return encode(in, out, scratch, faults_.otherwise);
  }
  bool checks_faults() const override { return checked_; }
  std::optional<std::uint64_t> find_fault(const ConstBox3& in, std::span<const std::uint8_t> chunk,
                                          std::span<std::uint8_t> scratch) const override {
    Vector<std::uint8_t> again(max_chunk_bytes());
    const auto bytes = good_->encode(in, again, scratch);
    const bool same = bytes.ok() && *bytes == chunk.size() && std::equal(chunk.begin(), chunk.end(), again.begin());
    return same ? std::nullopt : std::optional<std::uint64_t>(kTile);
  }

 private:
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out, std::span<std::uint8_t> scratch,
                             std::atomic<int>& left) const {
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, good_->encode(in, out, scratch));
    if (goes_wrong(left)) out[bytes / 2] ^= 2;
    return bytes;
  }

  std::unique_ptr<ChunkEncoder> good_;
  Faults& faults_;
  bool checked_;
};

class FaultyDecoder final : public ChunkDecoder {
 public:
  FaultyDecoder(std::unique_ptr<ChunkDecoder> good, Faults& faults) : good_(std::move(good)), faults_(faults) {}
  const ChunkGrid& grid() const override { return good_->grid(); }
  std::size_t scratch_bytes() const override { return good_->scratch_bytes(); }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    return decode(in, out, scratch, faults_.work);
  }
  Status decode_otherwise(std::span<const std::uint8_t> in, const MutableBox3& out,
                          std::span<std::uint8_t> scratch) const override {
    return decode(in, out, scratch, faults_.otherwise);
  }
  bool can_find_faults() const override { return true; }
  std::optional<std::uint64_t> find_fault(std::span<const std::uint8_t> in, const ConstBox3& out,
                                          std::span<std::uint8_t> scratch) const override {
    Vector<float> again(out.elems());
    const MutableBox3 box{again.data(), out.extents, {out.extents[1] * out.extents[2], out.extents[2]}};
    if (!good_->decode(in, box, scratch).ok()) return kTile;
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < out.extents[0]; ++i)
      for (std::uint64_t j = 0; j < out.extents[1]; ++j, next += out.extents[2])
        if (std::memcmp(static_cast<const float*>(out.data) + i * out.strides[0] + j * out.strides[1],
                        again.data() + next, 4 * out.extents[2]) != 0)
          return kTile;
    return {};
  }

 private:
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out, std::span<std::uint8_t> scratch,
                std::atomic<int>& left) const {
    QUERN_RETURN_IF_ERROR(good_->decode(in, out, scratch));
    if (goes_wrong(left)) static_cast<std::uint8_t*>(out.data)[5] ^= 4;  // of an element that is not special
    return {};
  }

  std::unique_ptr<ChunkDecoder> good_;
  Faults& faults_;
};

class FaultyCodec final : public ArrayCodec {
 public:
  FaultyCodec(Faults& faults, bool checked)
      : toy_("lorenzo", 201, {4, 16, 32}, true), faults_(faults), checked_(checked) {}
  const CodecInfo& info() const override { return toy_.info(); }
  bool supports(DType dtype, BoundKind kind) const override { return toy_.supports(dtype, kind); }
  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    QUERN_ASSIGN_OR_RETURN(auto good, toy_.plan(request));
    return std::unique_ptr<ChunkEncoder>(new FaultyEncoder(std::move(good), faults_, checked_));
  }
  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    QUERN_ASSIGN_OR_RETURN(auto good, toy_.open(request));
    return std::unique_ptr<ChunkDecoder>(new FaultyDecoder(std::move(good), faults_));
  }

 private:
  ToyCodec toy_;
  Faults& faults_;
  bool checked_;
};

/// An array with special values, so that masks are stored too, and its codec.
struct Machine {
  explicit Machine(bool checked) : codec(faults, checked) {
    spoil(array, -999.0F);
    options = with_bound(BoundKind::abs, 0.01);
    options.codec = "lorenzo";
    options.fill_bits.push_back(std::bit_cast<std::uint32_t>(-999.0F));
  }
  Status compress_to(Vector<std::uint8_t>& out) const {
    out.clear();
    VectorSink sink(out);
    return compress(array.view(), options, registry, with_threads(1), sink).status();
  }
  Status decompress_from(const Vector<std::uint8_t>& stream, bool check_faults, Array& back) const {
    MemorySource source(stream);
    DecompressOptions asked;
    asked.check_faults = check_faults;
    return decompress(source, back.target(), registry, with_threads(1), asked).status();
  }

  Faults faults;
  FaultyCodec codec;
  std::array<const ArrayCodec*, 1> list{&codec};
  Registry registry{list};
  Array array = smooth(DType::f32, shape_of({12, 40, 70}));
  CompressOptions options;
};

TEST(Faults_Encode, OneFault_GivesTheStreamOfARunWithoutFaults) {
  Machine machine(true);
  Vector<std::uint8_t> clean, mended;
  ASSERT_TRUE(machine.compress_to(clean).ok());
  machine.faults.work = 1;
  const Status status = machine.compress_to(mended);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(mended, clean);
}

TEST(Faults_Encode, AFaultThatComesBack_FailsAndNamesChunkAndTile) {
  Machine machine(true);
  Vector<std::uint8_t> out;
  machine.faults.work = 1;
  machine.faults.otherwise = 1;
  const Status status = machine.compress_to(out);
  EXPECT_EQ(status.code(), StatusCode::hardware_fault);
  EXPECT_NE(status.text().find("chunk 0, tile 3"), std::string::npos) << status.text();
}

TEST(Faults_Encode, NotAskedFor_AreStored) {
  Machine machine(false);
  Vector<std::uint8_t> clean, out;
  ASSERT_TRUE(machine.compress_to(clean).ok());
  machine.faults.work = 1;
  ASSERT_TRUE(machine.compress_to(out).ok());
  EXPECT_NE(out, clean);
}

TEST(Faults_Encode, UnderAuto_AreRefusedBeforeAnythingIsRead) {
  Machine machine(true);
  machine.options.codec = "auto";
  machine.options.settings.emplace_back("verify", "fault");
  Vector<std::uint8_t> out;
  EXPECT_EQ(machine.compress_to(out).code(), StatusCode::invalid_argument);
}

TEST(Faults_Decode, OneFault_GivesTheValuesOfARunWithoutFaults) {
  Machine machine(true);
  Vector<std::uint8_t> stream;
  ASSERT_TRUE(machine.compress_to(stream).ok());
  Array clean(DType::f32, machine.array.shape), wrong = clean, mended = clean;
  ASSERT_TRUE(machine.decompress_from(stream, true, clean).ok());
  machine.faults.work = 1;
  ASSERT_TRUE(machine.decompress_from(stream, false, wrong).ok());
  EXPECT_NE(wrong.bytes, clean.bytes);
  machine.faults.work = 1;
  ASSERT_TRUE(machine.decompress_from(stream, true, mended).ok());
  EXPECT_EQ(mended.bytes, clean.bytes);
}

TEST(Faults, MasksByLevels_AreReadAsTheyWereWritten) {
  Machine machine(true);
  machine.options.settings.emplace_back("mask", "2");
  Vector<std::uint8_t> stream;
  const Status stored = machine.compress_to(stream);
  ASSERT_TRUE(stored.ok()) << stored.text();
  Array back(DType::f32, machine.array.shape);
  const Status status = machine.decompress_from(stream, true, back);
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Faults_Decode, AFaultThatComesBack_FailsAndNamesChunkAndTile) {
  Machine machine(true);
  Vector<std::uint8_t> stream;
  ASSERT_TRUE(machine.compress_to(stream).ok());
  Array back(DType::f32, machine.array.shape);
  machine.faults.work = 1;
  machine.faults.otherwise = 1;
  const Status status = machine.decompress_from(stream, true, back);
  EXPECT_EQ(status.code(), StatusCode::hardware_fault);
  EXPECT_NE(status.text().find("chunk 0, tile 3"), std::string::npos) << status.text();
}

TEST(Faults_Decode, ACodecThatCannotFindThem_IsRefused) {
  const ToyRegistry toys;
  const Array array = smooth(DType::f32, shape_of({5, 40}));
  CompressOptions options = with_bound(BoundKind::abs, 0.01);
  options.codec = "lorenzo";
  const auto stream = compress_ok(array, options, toys.registry);
  MemorySource source(stream);
  DecompressOptions asked;
  asked.check_faults = true;
  Array back(DType::f32, array.shape);
  EXPECT_EQ(decompress(source, back.target(), toys.registry, {}, asked).status().code(), StatusCode::unsupported);
}

}  // namespace
}  // namespace quern::testing

// Streams of records through the pipeline: what comes back, what is read for it, who is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include <quern/metrics.h>

#include "tests/golden/record_cases.h"
#include "tests/golden/values.h"

namespace quern {
namespace {

using golden::RecordCase;
using golden::RecordSet;
using golden::SectionViews;

constexpr std::uint64_t kMost = UINT64_C(64) << 20;

/// Counts bytes that are read, and remembers where.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(std::span<const std::uint8_t> bytes) : inner_(bytes) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    read_ += out.size();
    return inner_.read(out);
  }
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override { return inner_.seek(offset); }
  std::uint64_t size() const override { return inner_.size(); }
  std::uint64_t position() const override { return inner_.position(); }
  std::uint64_t take_count() { return std::exchange(read_, 0); }

 private:
  MemorySource inner_;
  std::uint64_t read_ = 0;
};

/// A codec whose parts are never smaller, or that breaks its word.
class OddCodec final : public RecordCodec {
 public:
  enum class Does { give_up, write_too_much, fail };
  explicit OddCodec(Does does) : does_(does) {}
  const CodecInfo& info() const override { return info_; }
  bool supports(const RecordSection& section) const override { return section.name != "left alone"; }
  Result<std::unique_ptr<RecordEncoder>> plan(const RecordPlanRequest&) const override {
    return std::unique_ptr<RecordEncoder>(std::make_unique<Encoder>(does_));
  }
  Result<std::unique_ptr<RecordDecoder>> open(const RecordOpenRequest&) const override {
    return Status(StatusCode::corrupt, "nothing to open");
  }

 private:
  class Encoder final : public RecordEncoder {
   public:
    explicit Encoder(Does does) : does_(does) {}
    std::span<const std::uint8_t> params() const override { return {}; }
    Result<std::size_t> encode(const SectionPart& part, std::span<const std::uint8_t>,
                               std::span<std::uint8_t> out) const override {
      EXPECT_NE(part.section->name, "left alone");
      if (does_ == Does::fail) return Status(StatusCode::internal, "segment {0}", static_cast<int>(part.segment));
      return does_ == Does::give_up ? 0 : out.size() + 1;
    }
    std::uint64_t working_bytes(std::uint64_t) const override { return 0; }

   private:
    Does does_;
  };
  CodecInfo info_{0xF0FF, 1, "odd", "", CodecTier::throughput, false};
  Does does_;
};

std::uint64_t raw_bytes(const RecordSet& set) {
  std::uint64_t bytes = 0;
  for (const auto& values : set.values) bytes += values.size();
  for (const auto& strings : set.strings)
    for (const auto& text : strings) bytes += text.size();
  return bytes;
}

/// A set of many segments.
RecordSet large_set() {
  RecordSet set;
  set.layout.items = 50000;
  set.layout.segment_items = 1000;
  set.add_values("x", DType::f32, 50000, 3, {BoundKind::abs, 0.25}, [](std::uint64_t i) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(i / 3) + static_cast<float>(golden::noise(1, i, 64)) / 64);
  });
  set.add_values("n", DType::u32, 33333, 1, {}, [](std::uint64_t i) { return i * 5; });
  set.add_strings("s", [](std::uint64_t s) { return Vector<std::uint8_t>(s * 10, static_cast<std::uint8_t>(s)); });
  return set;
}

Vector<std::uint8_t> must_encode(const RecordCase& c, const Execution& execution = {}) {
  auto stream = golden::encode(c, execution);
  EXPECT_TRUE(stream.ok()) << c.name << ": " << stream.status().text();
  return stream.ok() ? std::move(stream).value() : Vector<std::uint8_t>();
}

TEST(RecordStream_EveryCase, ComesBackWithinItsBounds) {
  for (const RecordCase& c : golden::record_cases()) {
    SCOPED_TRACE(c.name);
    const Vector<std::uint8_t> stream = must_encode(c);
    const auto back = golden::decode_records(stream, golden::record_codecs(), {}, kMost);
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(back->layout.frames, c.set.layout.frames);
    EXPECT_EQ(back->strings, c.set.strings);
    for (std::size_t i = 0; i < c.set.layout.sections.size(); ++i) {
      const RecordSection& section = back->layout.sections[i];
      SCOPED_TRACE(std::string(section.name));
      EXPECT_EQ(section.tag, c.set.layout.sections[i].tag);
      if (section.form == SectionForm::bytes) continue;
      ASSERT_EQ(back->values[i].size(), c.set.values[i].size());
      const std::uint64_t elems[] = {section.items * section.item_elems};
      const Shape shape = Shape::make(elems).value();
      const auto check = check_bound({c.set.values[i].data(), section.dtype, shape},
                                     {back->values[i].data(), section.dtype, shape}, section.enforced, {}, {});
      ASSERT_TRUE(check.ok()) << check.status().text();
      EXPECT_EQ(check->violations, 0u);
      EXPECT_EQ(check->specials_lost, 0u);
      if (section.enforced.kind == BoundKind::lossless) {
        EXPECT_EQ(back->values[i], c.set.values[i]);
      }
    }
  }
}

TEST(RecordStream_RelativeBound, IsThatOfTheExactRange) {
  const auto stream = must_encode(golden::record_case("scan"));
  MemorySource source(stream);
  const auto info = inspect_records(source, golden::record_codecs());
  ASSERT_TRUE(info.ok());
  const RecordSection* time = info->layout.by_name("time");
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->requested.kind, BoundKind::rel);
  EXPECT_EQ(time->enforced, (EnforcedBound{BoundKind::abs, 0.0009765625 * 299 * 0.125}));
  EXPECT_EQ(time->range->min, 1e9);
}

TEST(RecordStream_ThreadsAndMemory, DoNotChangeBytes) {
  const RecordCase c{"large", "", large_set(), false, {}};
  const Vector<std::uint8_t> reference = must_encode(c);
  EXPECT_LT(reference.size(), raw_bytes(c.set) / 2);
  for (const std::size_t threads : {std::size_t{2}, std::size_t{5}}) {
    Execution execution;
    execution.threads = threads;
    EXPECT_EQ(must_encode(c, execution), reference) << threads;
    execution.memory_limit = 400000;  // one segment at a time
    EXPECT_EQ(must_encode(c, execution), reference) << threads;
  }
  Execution tiny;
  tiny.memory_limit = 1000;
  EXPECT_EQ(golden::encode(c, tiny).status().code(), StatusCode::memory_limit);
}

TEST(RecordStream_ThreadsAndMemory, DoNotChangeWhatIsRead) {
  const RecordCase c{"large", "", large_set(), false, {}};
  const Vector<std::uint8_t> stream = must_encode(c);
  const auto reference = golden::decode_records(stream, golden::record_codecs(), {}, kMost);
  ASSERT_TRUE(reference.ok());
  for (const std::size_t threads : {std::size_t{1}, std::size_t{5}}) {
    Execution execution;
    execution.threads = threads;
    execution.memory_limit = 300000;
    const auto back = golden::decode_records(stream, golden::record_codecs(), execution, kMost);
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(back->values, reference->values);
    EXPECT_EQ(back->strings, reference->strings);
  }
}

TEST(RecordStream_AnyItems, AreThoseOfTheWhole) {
  const Vector<std::uint8_t> stream = must_encode({"large", "", large_set(), false, {}});
  const auto whole = golden::decode_records(stream, golden::record_codecs(), {}, kMost);
  ASSERT_TRUE(whole.ok());
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, golden::record_codecs(), {});
  ASSERT_TRUE(reader.ok());
  for (const auto& [first, count] :
       {std::pair{0, 1}, {999, 1}, {999, 2}, {1000, 1000}, {777, 5000}, {49999, 1}, {3, 0}}) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(count) * 12);
    const Status status =
        (*reader)->read_items(0, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(count), out);
    ASSERT_TRUE(status.ok()) << first << ": " << status.text();
    EXPECT_TRUE(std::equal(out.begin(), out.end(), whole->values[0].begin() + first * 12)) << first;
  }
}

TEST(RecordStream_ReadingItems, TouchesTheirSegmentsAlone) {
  const Vector<std::uint8_t> stream = must_encode({"large", "", large_set(), false, {}});
  CountingSource source(stream);
  const auto reader = RecordReader::open(source, golden::record_codecs(), {});
  ASSERT_TRUE(reader.ok());
  (void)source.take_count();
  const auto parts = (*reader)->stored_parts(7);
  ASSERT_TRUE(parts.ok());
  const std::uint64_t head = source.take_count();
  EXPECT_LE(head, 64u);
  std::vector<std::uint8_t> out(5 * 4);
  ASSERT_TRUE((*reader)->read_items(1, 7100, 5, out).ok());
  EXPECT_EQ(source.take_count(), head + (*parts)[1].stored_bytes);
  std::vector<std::uint8_t> two(2 * 12);
  ASSERT_TRUE((*reader)->read_items(0, 7999, 2, two).ok());
  const std::uint64_t read = source.take_count();
  EXPECT_LT(read, 4 * (*parts)[0].stored_bytes);
  EXPECT_LT(read, stream.size() / 20);
}

TEST(RecordStream_SectionThatEndsEarly, HasNoMoreItems) {
  const Vector<std::uint8_t> stream = must_encode({"large", "", large_set(), false, {}});
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, golden::record_codecs(), {});
  ASSERT_TRUE(reader.ok());
  std::vector<std::uint8_t> out(4);
  EXPECT_TRUE((*reader)->read_items(1, 33332, 1, out).ok());
  EXPECT_EQ((*reader)->read_items(1, 33333, 1, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_items(1, UINT64_MAX, 1, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_items(1, 0, 2, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_items(2, 0, 1, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_items(3, 0, 1, out).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_string(0, 0).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->read_string(2, 50).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ((*reader)->stored_parts(50).status().code(), StatusCode::invalid_argument);
}

TEST(RecordStream_CodecOfAnotherBuild, IsNamedAndRawPartsAreRead) {
  const RecordCase c = golden::record_case("noise");
  const Vector<std::uint8_t> stream = must_encode(c);
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, builtin_record_codecs(), {});
  ASSERT_TRUE(reader.ok()) << reader.status().text();
  EXPECT_EQ((*reader)->info().codec_name, "unknown");
  std::vector<std::uint8_t> out(400);
  EXPECT_TRUE((*reader)->read_items(0, 0, 100, out).ok());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), c.set.values[0].begin()));
  const Status coded = (*reader)->read_items(1, 0, 100, out);
  EXPECT_EQ(coded.code(), StatusCode::unknown_codec);
  EXPECT_NE(coded.text().find("codec 61441"), std::string::npos) << coded.text();
  const auto check = (*reader)->verify();
  ASSERT_TRUE(check.ok()) << check.status().text();
  EXPECT_FALSE(check->decoded);
  EXPECT_EQ(check->parts, 6u);
  EXPECT_EQ(check->raw_parts, 4u);
}

TEST(RecordStream_Verify, CountsWhatSectionsTake) {
  const RecordCase c = golden::record_case("scan");
  const Vector<std::uint8_t> stream = must_encode(c);
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, golden::record_codecs(), {});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->stream_bytes(), stream.size());
  const auto check = (*reader)->verify();
  ASSERT_TRUE(check.ok()) << check.status().text();
  EXPECT_TRUE(check->decoded);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(check->section_bytes[i], c.set.values[i].size());
  std::uint64_t stored = 0;
  for (const std::uint64_t bytes : check->section_stored_bytes) stored += bytes;
  EXPECT_LT(stored, stream.size());
}

TEST(RecordStream_AmongStreamsOfArrays, IsFound) {
  const RecordCase c = golden::record_case("stored");
  const Vector<std::uint8_t> records = must_encode(c);
  Vector<std::uint8_t> file;
  VectorSink sink(file);
  const float values[] = {1, 2, 3};
  const std::uint64_t extents[] = {3};
  const ArrayView array{values, DType::f32, Shape::make(extents).value()};
  ASSERT_TRUE(compress(array, {}, builtin_codecs(), {}, sink).ok());
  const std::uint64_t offset = file.size();
  file.insert(file.end(), records.begin(), records.end());
  ASSERT_TRUE(compress(array, {}, builtin_codecs(), {}, sink).ok());
  MemorySource source(file);
  const auto streams = list_streams(source);
  ASSERT_TRUE(streams.ok()) << streams.status().text();
  ASSERT_EQ(streams->size(), 3u);
  EXPECT_EQ((*streams)[1].offset, offset);
  const auto reader = RecordReader::open(source, golden::record_codecs(), {}, offset);
  ASSERT_TRUE(reader.ok()) << reader.status().text();
  EXPECT_TRUE((*reader)->verify().ok());
  ASSERT_TRUE(source.seek(offset).ok());
  EXPECT_TRUE(holds_records(source).value());
  ASSERT_TRUE(source.seek(0).ok());
  EXPECT_FALSE(holds_records(source).value());
  EXPECT_EQ(RecordReader::open(source, golden::record_codecs(), {}, 0).status().code(), StatusCode::unsupported);
}

TEST(RecordStream_ReadersOfArrays, RefuseItWithASentence) {
  const Vector<std::uint8_t> stream = must_encode(golden::record_case("scan"));
  MemorySource source(stream);
  const auto decoder = Decoder::open(source, builtin_codecs(), {});
  EXPECT_EQ(decoder.status().code(), StatusCode::unsupported);
  EXPECT_NE(decoder.status().text().find("holds records, not an array"), std::string::npos);
}

TEST(RecordStream_Size, StaysBelowRawAndFraming) {
  for (const RecordCase& c : golden::record_cases()) {
    const Vector<std::uint8_t> stream = must_encode(c);
    MemorySource source(stream);
    const auto info = inspect_records(source, golden::record_codecs());
    ASSERT_TRUE(info.ok());
    const std::uint64_t sections = c.set.layout.sections.size();
    const std::uint64_t framing = c.set.layout.segments() * (20 + 12 * sections + 10) + 24;
    EXPECT_LE(stream.size(), info->header_bytes + raw_bytes(c.set) + framing) << c.name;
  }
}

TEST(RecordStream_CodecThatGivesUp, LeavesPartsRaw) {
  const OddCodec codec(OddCodec::Does::give_up);
  const RecordCase c = golden::record_case("scan");
  const SectionViews views(c.set);
  RecordOptions options;
  options.codec = &codec;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report = compress_records(c.set.layout, views.data(), options, {}, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->raw_parts, report->parts);
  EXPECT_EQ(report->input_bytes, raw_bytes(c.set));
  EXPECT_EQ(report->output_bytes, stream.size());
}

TEST(RecordStream_CodecThatFails, IsReportedAtItsFirstPart) {
  const RecordCase c = golden::record_case("scan");
  const SectionViews views(c.set);
  for (const auto does : {OddCodec::Does::fail, OddCodec::Does::write_too_much}) {
    const OddCodec codec(does);
    RecordOptions options;
    options.codec = &codec;
    for (const std::size_t threads : {std::size_t{1}, std::size_t{4}}) {
      Execution execution;
      execution.threads = threads;
      Vector<std::uint8_t> stream;
      VectorSink sink(stream);
      const auto report = compress_records(c.set.layout, views.data(), options, execution, sink);
      EXPECT_EQ(report.status().code(), StatusCode::internal);
      if (does == OddCodec::Does::fail) {
        EXPECT_EQ(report.status().text(), "segment 0");
      }
    }
  }
}

TEST(RecordStream_UnsupportedSections, AreStoredAsTheyAre) {
  const OddCodec codec(OddCodec::Does::fail);
  RecordSet set;
  set.layout.items = 5;
  set.layout.segment_items = 5;
  set.add_values("left alone", DType::u8, 5, 1, {}, [](std::uint64_t i) { return i; });
  const SectionViews views(set);
  RecordOptions options;
  options.codec = &codec;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report = compress_records(set.layout, views.data(), options, {}, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->raw_parts, 1u);
}

TEST(RecordStream_ArgumentsThatMakeNoSense, AreRefused) {
  const RecordCase c = golden::record_case("scan");
  const SectionViews views(c.set);
  const auto code_of = [&](const auto& change) {
    RecordLayout layout = c.set.layout;
    change(layout);
    Vector<std::uint8_t> stream;
    VectorSink sink(stream);
    return compress_records(layout, views.data(), {}, {}, sink).status().code();
  };
  EXPECT_EQ(code_of([](RecordLayout&) {}), StatusCode::ok);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.sections[0].items = 299; }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.sections[0].items = 301; }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.sections[0].name = ""; }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.sections[0].item_elems = UINT64_MAX; }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.sections.pop_back(); }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) { l.segment_items = 10; }), StatusCode::invalid_argument);
  EXPECT_EQ(code_of([](RecordLayout& l) {
              l.sections[0].requested = {BoundKind::psnr, 50};
            }),
            StatusCode::invalid_bound);
  EXPECT_EQ(code_of([](RecordLayout& l) {
              l.sections[2].requested = {BoundKind::pwrel, 0.5};
            }),
            StatusCode::invalid_bound);
}

TEST(RecordStream_Progress, MayCancel) {
  const RecordCase c{"large", "", large_set(), false, {}};
  std::vector<std::uint64_t> seen;
  Execution execution;
  execution.memory_limit = 400000;
  execution.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 50000u);
    seen.push_back(done);
    return seen.size() < 3;
  };
  EXPECT_EQ(golden::encode(c, execution).status().code(), StatusCode::cancelled);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_LT(seen[0], seen[1]);
}

}  // namespace
}  // namespace quern

// Sessions of the C interface: steps there and back, what is lost, whose memory it is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <quern/quern.h>

#include "tests/unit_capi/handles.h"

namespace {

constexpr std::uint64_t kExtents[] = {12, 20, 24};
constexpr std::size_t kElems = 12 * 20 * 24;
constexpr double kBound = 0.01;

std::vector<float> step_values(int step) {
  std::vector<float> out(kElems);
  for (std::size_t i = 0; i < kElems; ++i)
    out[i] = static_cast<float>(std::sin(0.3 * (static_cast<double>(i % 24) - 0.4 * step)) +
                                std::cos(0.2 * static_cast<double>(i / 24 % 20)) + 0.01 * static_cast<double>(i / 480));
  return out;
}

quern_array array_of(std::vector<float>& values) {
  quern_array array;
  EXPECT_EQ(quern_array_init(&array, QUERN_F32, 3, kExtents, values.data()), QUERN_OK);
  return array;
}

/// Counts what a session holds of the caller's memory.
struct Counting {
  std::int64_t held = 0;
  std::int64_t most = 0;
  quern_allocator allocator{};
  Counting() {
    allocator.user = this;
    allocator.allocate = [](void* user, std::size_t bytes, std::size_t alignment) -> void* {
      auto* self = static_cast<Counting*>(user);
      self->held += static_cast<std::int64_t>(bytes);
      self->most = std::max(self->most, self->held);
      return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    };
    allocator.release = [](void* user, void* memory, std::size_t bytes, std::size_t alignment) {
      static_cast<Counting*>(user)->held -= static_cast<std::int64_t>(bytes);
      ::operator delete(memory, std::align_val_t(alignment));
    };
  }
};

struct Session {
  explicit Session(const quern_allocator* allocator = nullptr, std::uint32_t key_every = 0) {
    EXPECT_EQ(quern_session_create(allocator, key_every, &handle), QUERN_OK);
  }
  ~Session() { quern_session_destroy(handle); }
  quern_session* handle = nullptr;
};

struct Fixture {
  Fixture() {
    EXPECT_EQ(quern_context_create(nullptr, &context), QUERN_OK);
    EXPECT_EQ(quern_params_create(&params), QUERN_OK);
    EXPECT_EQ(quern_params_set_bound(params, QUERN_BOUND_ABS, kBound), QUERN_OK);
    EXPECT_EQ(quern_params_set(params, "codec", "stencil"), QUERN_OK);
  }
  ~Fixture() {
    quern_params_destroy(params);
    quern_context_destroy(context);
  }
  std::vector<std::uint8_t> compress(quern_session* session, int step) const {
    std::vector<float> values = step_values(step);
    const quern_array array = array_of(values);
    std::uint64_t room = 0;
    EXPECT_EQ(quern_compress_bound(&array, params, &room), QUERN_OK);
    std::vector<std::uint8_t> stream(room);
    std::uint64_t size = 0;
    EXPECT_EQ(quern_session_compress(context, session, params, &array, stream.data(), room, &size, nullptr), QUERN_OK)
        << quern_last_error(context);
    stream.resize(size);
    return stream;
  }
  quern_status decompress(quern_session* session, const std::vector<std::uint8_t>& stream,
                          std::vector<float>& back) const {
    back.assign(kElems, 0);
    quern_array array = array_of(back);
    return quern_session_decompress(context, session, stream.data(), stream.size(), &array);
  }
  quern_context* context = nullptr;
  quern_params* params = nullptr;
};

TEST(Capi_Session, StepsComeBack_FromTheCallersMemory) {
  const Fixture calls;
  Counting counting;
  {
    const Session writer(&counting.allocator);
    const Session reader(&counting.allocator);
    std::vector<float> back;
    std::size_t first = 0;
    for (int step = 0; step < 5; ++step) {
      const auto stream = calls.compress(writer.handle, step);
      if (step == 0) first = stream.size();
      if (step > 0) {
        EXPECT_LT(stream.size(), first);
      }
      ASSERT_EQ(calls.decompress(reader.handle, stream, back), QUERN_OK) << quern_last_error(calls.context);
      const std::vector<float> original = step_values(step);
      for (std::size_t i = 0; i < kElems; ++i) ASSERT_LE(std::fabs(double{original[i]} - double{back[i]}), kBound);
    }
    EXPECT_GE(counting.held, static_cast<std::int64_t>(kElems * sizeof(float)));
  }
  EXPECT_EQ(counting.held, 0);
}

TEST(Capi_Session, AStepWithoutTheOneBefore_IsMissingIt) {
  const Fixture calls;
  const Session writer;
  const auto first = calls.compress(writer.handle, 0);
  const auto second = calls.compress(writer.handle, 1);
  const Session reader;
  std::vector<float> back;
  EXPECT_EQ(calls.decompress(reader.handle, second, back), QUERN_ERROR_REFERENCE_MISSING);
  EXPECT_NE(std::string(quern_last_error(calls.context)).find("hash"), std::string::npos);
  back.assign(kElems, 0);
  quern_array array = array_of(back);
  EXPECT_EQ(quern_decompress(calls.context, second.data(), second.size(), &array), QUERN_ERROR_REFERENCE_MISSING);
  ASSERT_EQ(calls.decompress(reader.handle, first, back), QUERN_OK);
  EXPECT_EQ(calls.decompress(reader.handle, second, back), QUERN_OK);
}

TEST(Capi_Session, AStepThatFailed_IsDecodedInASecondTry) {
  const Fixture calls;
  const Session writer;
  const auto first = calls.compress(writer.handle, 0);
  const auto second = calls.compress(writer.handle, 1);
  const Session reader;
  std::vector<float> back;
  ASSERT_EQ(calls.decompress(reader.handle, first, back), QUERN_OK);
  quern_array array = array_of(back);
  array.extents[0] -= 1;
  EXPECT_EQ(quern_session_decompress(calls.context, reader.handle, second.data(), second.size(), &array),
            QUERN_ERROR_INVALID_SHAPE);
  std::vector<std::uint8_t> damaged = second;
  damaged[damaged.size() / 2] ^= 0x20;
  EXPECT_NE(calls.decompress(reader.handle, damaged, back), QUERN_OK);
  ASSERT_EQ(calls.decompress(reader.handle, second, back), QUERN_OK) << quern_last_error(calls.context);
  const std::vector<float> original = step_values(1);
  for (std::size_t i = 0; i < kElems; ++i) ASSERT_LE(std::fabs(double{original[i]} - double{back[i]}), kBound);
}

TEST(Capi_Session, EveryStepAKeyStep_NeedsNoSession) {
  const Fixture calls;
  const Session writer(nullptr, 1);
  for (int step = 0; step < 2; ++step) {
    const auto stream = calls.compress(writer.handle, step);
    std::vector<float> back(kElems);
    quern_array array = array_of(back);
    EXPECT_EQ(quern_decompress(calls.context, stream.data(), stream.size(), &array), QUERN_OK);
  }
}

/// Bytes in memory as a source, which may be a part of more.
struct Bytes {
  std::vector<std::uint8_t> bytes;
  quern_source source = QUERN_SOURCE_INIT;
  explicit Bytes(std::vector<std::uint8_t> given) : bytes(std::move(given)) {
    source.size = bytes.size();
    source.user = this;
    source.read = [](void* user, std::uint64_t offset, void* to, std::uint64_t size) {
      std::memcpy(to, static_cast<Bytes*>(user)->bytes.data() + offset, size);
      return 0;
    };
  }
};

TEST(Capi_Session, AResumedSession_WritesTheSameBytes) {
  const Fixture calls;
  const Session whole;
  std::vector<std::vector<std::uint8_t>> streams;
  for (int step = 0; step < 4; ++step) streams.push_back(calls.compress(whole.handle, step));
  const Session reader;
  std::vector<float> back;
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(calls.decompress(reader.handle, streams[static_cast<std::size_t>(step)], back), QUERN_OK);
    const Session later;
    quern_array values = array_of(back);
    const auto& stream = streams[static_cast<std::size_t>(step)];
    ASSERT_EQ(quern_session_resume(calls.context, later.handle, stream.data(), stream.size(), &values), QUERN_OK);
    EXPECT_EQ(calls.compress(later.handle, step + 1), streams[static_cast<std::size_t>(step) + 1]);
  }
  const Session later;
  quern_array values = array_of(back);
  values.extents[0] = 6;
  EXPECT_EQ(quern_session_resume(calls.context, later.handle, streams[0].data(), streams[0].size(), &values),
            QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(Capi_Session, AStreamNamesItsReference_AndIsDecodedBesideIt) {
  const Fixture calls;
  const Session writer;
  const auto first = calls.compress(writer.handle, 0);
  const auto second = calls.compress(writer.handle, 1);
  std::vector<float> before(kElems);
  quern_array reference = array_of(before);
  ASSERT_EQ(quern_decompress_beside(calls.context, first.data(), first.size(), nullptr, &reference), QUERN_OK);
  std::uint64_t named = 1;
  std::uint64_t found = 0;
  std::uint32_t steps = 7;
  ASSERT_EQ(quern_stream_reference(first.data(), first.size(), &named, &steps), QUERN_OK);
  EXPECT_EQ(named, 0u);
  EXPECT_EQ(steps, 0u);
  ASSERT_EQ(quern_stream_reference(second.data(), second.size(), &named, &steps), QUERN_OK);
  ASSERT_EQ(quern_hash_values(&reference, &found), QUERN_OK);
  EXPECT_EQ(named, found);
  EXPECT_EQ(steps, 1u);
  std::vector<float> back(kElems);
  quern_array array = array_of(back);
  ASSERT_EQ(quern_decompress_beside(calls.context, second.data(), second.size(), &reference, &array), QUERN_OK);
  const std::vector<float> original = step_values(1);
  for (std::size_t i = 0; i < kElems; ++i) ASSERT_LE(std::fabs(double{original[i]} - double{back[i]}), kBound);
  before[5] += 1;
  EXPECT_EQ(quern_decompress_beside(calls.context, second.data(), second.size(), &reference, &array),
            QUERN_ERROR_REFERENCE_MISSING);
  EXPECT_EQ(quern_decompress_beside(calls.context, second.data(), second.size() - 1, &reference, &array),
            QUERN_ERROR_REFERENCE_MISSING);
  EXPECT_NE(quern_stream_reference(second.data(), 9, &named, &steps), QUERN_OK);
}

TEST(Capi_Session, AFileOfSteps_IsListedAndReadInParts) {
  const Fixture calls;
  const Session writer;
  std::vector<std::uint8_t> file;
  std::vector<std::size_t> begins;
  std::vector<std::vector<std::uint8_t>> streams;
  for (int step = 0; step < 3; ++step) {
    streams.push_back(calls.compress(writer.handle, step));
    begins.push_back(file.size());
    file.insert(file.end(), streams.back().begin(), streams.back().end());
  }
  const Bytes whole(file);
  std::uint64_t offsets[3] = {};
  std::uint64_t sizes[3] = {};
  std::uint64_t count = 0;
  ASSERT_EQ(quern_source_streams(&whole.source, nullptr, nullptr, 0, &count), QUERN_OK);
  EXPECT_EQ(count, 3u);
  ASSERT_EQ(quern_source_streams(&whole.source, offsets, sizes, 3, &count), QUERN_OK);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(offsets[i], begins[i]);
    EXPECT_EQ(sizes[i], streams[i].size());
  }
  const Session reader;
  std::vector<float> last;
  for (const auto& stream : streams) ASSERT_EQ(calls.decompress(reader.handle, stream, last), QUERN_OK);
  const Bytes parts[] = {Bytes(streams[0]), Bytes(streams[1]), Bytes(streams[2])};
  const quern_source* chain[] = {&parts[0].source, &parts[1].source, &parts[2].source};
  const std::uint64_t begin[] = {2, 3, 4};
  const std::uint64_t end[] = {5, 9, 20};
  const std::uint64_t extents[] = {3, 6, 16};
  std::vector<float> box(3 * 6 * 16);
  quern_array array;
  ASSERT_EQ(quern_array_init(&array, QUERN_F32, 3, extents, box.data()), QUERN_OK);
  ASSERT_EQ(quern_chain_region(calls.context, chain, 3, begin, end, &array), QUERN_OK)
      << quern_last_error(calls.context);
  for (std::size_t i = 0; i < box.size(); ++i)
    ASSERT_EQ(box[i], last[((i / 96 + 2) * 20 + i / 16 % 6 + 3) * 24 + i % 16 + 4]);
  EXPECT_EQ(quern_chain_region(calls.context, chain + 1, 2, begin, end, &array), QUERN_ERROR_REFERENCE_MISSING);
  EXPECT_EQ(quern_chain_region(calls.context, chain, 0, begin, end, &array), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_chain_region(calls.context, chain, 257, begin, end, &array), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(Capi_Session, WhatIsWrong_IsRefused) {
  quern_session* session = nullptr;
  EXPECT_EQ(quern_session_create(nullptr, 257, &session), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(quern_session_create(nullptr, 0, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  const Fixture calls;
  EXPECT_EQ(quern_session_compress(calls.context, nullptr, calls.params, nullptr, nullptr, 0, nullptr, nullptr),
            QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_session_decompress(calls.context, nullptr, nullptr, 0, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_session_destroy(nullptr);
}

}  // namespace

// Helpers of the io tests: temporary folders, whole-array reading and writing, Python as a second opinion.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <quern/io.h>

#include "libcompress/io/file_notes.h"

namespace quern::io::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr DType kAllTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

inline Shape shape_of(std::vector<std::uint64_t> extents) { return Shape::make(extents).value(); }

/// Any bits, NaN and infinities included; the seed is part of the test.
inline Bytes random_bytes(std::uint64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  Bytes out(count);
  for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(engine());
  return out;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

inline void write_bytes(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

inline Bytes read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "quern-io-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Opens and reads everything in pieces of `step` bytes; records a failure when that is not possible.
  Bytes read_all(const std::string& file, FileKind kind, const OpenOptions& options, ArrayMeta* meta = nullptr,
                 std::size_t step = 1 << 20) {
    std::string detail;
    auto reader = open_reader(file, kind, options, detail);
    if (!reader.ok()) {
      ADD_FAILURE() << file << ": " << reader.status().text() << " / " << detail;
      return {};
    }
    if (meta != nullptr) *meta = (*reader)->meta();
    Bytes out;
    Bytes piece(step);
    while (true) {
      const auto got = (*reader)->read(piece);
      if (!got.ok()) {
        ADD_FAILURE() << file << ": " << got.status().text();
        return out;
      }
      if (*got == 0) break;
      out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got));
    }
    return out;
  }

  /// Writes everything in pieces of `step` bytes.
  Status write_all(const std::string& file, FileKind kind, const ArrayMeta& meta, const Bytes& bytes,
                   const std::string& dataset = {}, std::size_t step = 1 << 20) {
    auto writer = create_writer(file, kind, meta, dataset, detail_);
    if (!writer.ok()) return writer.status();
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const std::size_t count = std::min(step, bytes.size() - at);
      QUERN_RETURN_IF_ERROR((*writer)->write({bytes.data() + at, count}));
    }
    return (*writer)->finish();
  }

  /// Expects that opening fails with `code` and that the sentence names the file and contains `part`.
  void expect_refused(const std::string& file, FileKind kind, const OpenOptions& options, StatusCode code,
                      const std::string& part) {
    std::string detail;
    const auto reader = open_reader(file, kind, options, detail);
    ASSERT_FALSE(reader.ok()) << file;
    EXPECT_EQ(status_name(reader.status().code()), std::string(status_name(code))) << detail;
    EXPECT_NE(detail.find(part), std::string::npos) << detail;
    if (file != "-") {
      EXPECT_NE(detail.find(file), std::string::npos) << detail;
    }
  }

  /// Runs a Python script; 0 when it succeeded, 77 when a module is missing.
  int run_python(const std::string& modules, const std::string& script) {
#ifdef QUERN_TEST_PYTHON
    std::ofstream(path("check.py")) << "import sys\nsys.dont_write_bytecode = True\ntry:\n  import " << modules
                                    << "\nexcept ImportError:\n  sys.exit(77)\n"
                                    << script;
    const int status = std::system((std::string(QUERN_TEST_PYTHON) + " " + path("check.py") + " " + folder_).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
#else
    static_cast<void>(modules);
    static_cast<void>(script);
    return 77;
#endif
  }

  std::string folder_;
  std::string detail_;
};

inline FileNotes notes_of(const ArrayMeta& meta) {
  std::string detail;
  auto notes = notes_from_json(meta.attributes_json, detail);
  EXPECT_TRUE(notes.ok()) << detail;
  return notes.ok() ? notes.value() : FileNotes{};
}

inline OpenOptions named(const std::string& dataset) {
  OpenOptions options;
  options.dataset = dataset;
  return options;
}

/// Tests of a kind of file that a build may lack, and what is expected of every such kind.
class BuiltKindTest : public FilesTest {
 protected:
  explicit BuiltKindTest(FileKind kind) : kind_(kind) {}

  void SetUp() override {
    FilesTest::SetUp();
    if (!is_available(kind_)) GTEST_SKIP() << "this build cannot read such files";
  }

  void expect_scalars_and_empty_arrays_round_trip() {
    for (const Shape& shape : {Shape(), shape_of({0}), shape_of({3, 0, 2}), shape_of({1, 1})}) {
      SCOPED_TRACE(shape.text());
      ArrayMeta meta;
      meta.dtype = DType::f64;
      meta.shape = shape;
      const Bytes bytes = random_bytes(shape.elems() * 8, 3);
      ASSERT_TRUE(write_all(path(shape.text()), kind_, meta, bytes).ok()) << detail_;
      ArrayMeta back;
      EXPECT_EQ(read_all(path(shape.text()), kind_, {}, &back), bytes);
      EXPECT_EQ(back.shape, shape);
    }
  }

  /// 40 MB, with rows that do not divide a slab and one row larger than a slab.
  void expect_large_arrays_round_trip() {
    for (const Shape& shape : {shape_of({1000003, 10}), shape_of({2, 5000001})}) {
      ArrayMeta meta;
      meta.dtype = DType::f32;
      meta.shape = shape;
      const Bytes bytes = random_bytes(shape.elems() * 4, 4);
      ASSERT_TRUE(write_all(path(shape.text()), kind_, meta, bytes, "x", 1234568).ok()) << detail_;
      for (const std::size_t step : {7654321u, 100000000u})
        EXPECT_EQ(read_all(path(shape.text()), kind_, {}, nullptr, step), bytes);
    }
  }

 private:
  FileKind kind_;
};

}  // namespace quern::io::test

/// Runs a Python script or skips the test when Python or one of its modules is not there.
#define QUERN_PYTHON_OR_SKIP(modules, script)                                \
  do {                                                                       \
    const int python_result = run_python(modules, script);                   \
    if (python_result == 77) GTEST_SKIP() << "no Python with " << (modules); \
    ASSERT_EQ(python_result, 0) << "the Python side reports a difference";   \
  } while (false)

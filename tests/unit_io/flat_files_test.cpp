// Raw and .npy files: round trips, byte order, axis order, names, sizes that do not fit, standard input, full disks.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit_io/test_files.h"

namespace quern::io::test {
namespace {

using FlatFiles = FilesTest;

OpenOptions raw_options(DType dtype, const Shape& shape) {
  OpenOptions options;
  options.dtype = dtype;
  options.shape = shape;
  return options;
}

/// Standard input from a file for the life of the object.
class StdinFrom {
 public:
  explicit StdinFrom(const std::string& path) : saved_(dup(STDIN_FILENO)) {
    const int fd = ::open(path.c_str(), O_RDONLY);
    dup2(fd, STDIN_FILENO);
    close(fd);
  }
  ~StdinFrom() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

Bytes swapped(Bytes bytes, std::size_t element) {
  for (std::size_t at = 0; at < bytes.size(); at += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element));
  return bytes;
}

TEST_F(FlatFiles, Kind_ByExtension_IsFound) {
  EXPECT_EQ(file_kind("a.npy"), FileKind::npy);
  EXPECT_EQ(file_kind("dir.nc/a.NPY"), FileKind::npy);
  EXPECT_EQ(file_kind("a.h5"), FileKind::hdf5);
  EXPECT_EQ(file_kind("a.hdf5"), FileKind::hdf5);
  EXPECT_EQ(file_kind("a.he5"), FileKind::hdf5);
  EXPECT_EQ(file_kind("a.nc"), FileKind::netcdf);
  EXPECT_EQ(file_kind("a.nc4"), FileKind::netcdf);
  EXPECT_EQ(file_kind("a.cdf"), FileKind::netcdf);
  EXPECT_EQ(file_kind("a_3x4.f32"), FileKind::raw);
  EXPECT_EQ(file_kind("dir.nc/a"), FileKind::raw);
  EXPECT_EQ(file_kind("-"), FileKind::raw);
}

TEST_F(FlatFiles, RawAndNpy_AllTypes_RoundTripInOddPieces) {
  const Shape shape = shape_of({3, 5, 7});
  for (const DType dtype : kAllTypes) {
    for (const FileKind kind : {FileKind::raw, FileKind::npy}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + (kind == FileKind::raw ? " raw" : " npy"));
      ArrayMeta meta;
      meta.dtype = dtype;
      meta.shape = shape;
      const Bytes bytes = random_bytes(shape.elems() * dtype_bytes(dtype), 17);
      ASSERT_TRUE(write_all(path("a"), kind, meta, bytes, {}, 13).ok()) << detail_;
      OpenOptions options;
      options.dtype = dtype;
      if (kind == FileKind::raw) options.shape = shape;
      ArrayMeta back;
      EXPECT_EQ(read_all(path("a"), kind, options, &back, 29), bytes);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_FALSE(back.is_complex);
    }
  }
}

TEST_F(FlatFiles, RawAndNpy_ScalarsAndEmptyArrays_RoundTrip) {
  for (const Shape& shape : {Shape(), shape_of({0}), shape_of({3, 0, 2}), shape_of({1, 1})}) {
    for (const FileKind kind : {FileKind::raw, FileKind::npy}) {
      SCOPED_TRACE(shape.text());
      ArrayMeta meta;
      meta.dtype = DType::f64;
      meta.shape = shape;
      const Bytes bytes = random_bytes(shape.elems() * 8, 3);
      ASSERT_TRUE(write_all(path("a"), kind, meta, bytes).ok()) << detail_;
      ArrayMeta back;
      EXPECT_EQ(read_all(path("a"), kind, raw_options(DType::f64, shape), &back), bytes);
      EXPECT_EQ(back.shape, shape);
    }
  }
}

TEST_F(FlatFiles, RawBigEndian_EveryWidth_IsSwapped) {
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
    const Shape shape = shape_of({257});
    const Bytes bytes = random_bytes(257 * dtype_bytes(dtype), 5);
    write_bytes(path("big"), swapped(bytes, dtype_bytes(dtype)));
    OpenOptions options = raw_options(dtype, shape);
    options.big_endian = true;
    EXPECT_EQ(read_all(path("big"), FileKind::raw, options, nullptr, 31), bytes) << dtype_name(dtype);
  }
}

TEST_F(FlatFiles, RawMapping_OnlyWhenAlignedAndNative_IsOffered) {
  const Bytes bytes = random_bytes(24 * 4 + 8, 6);
  write_bytes(path("a"), bytes);
  std::string detail;
  OpenOptions options = raw_options(DType::f32, shape_of({24}));
  options.skip_bytes = 8;
  auto reader = open_reader(path("a"), FileKind::raw, options, detail);
  ASSERT_TRUE(reader.ok()) << detail;
  ASSERT_NE((*reader)->mapped(), nullptr);
  EXPECT_EQ(std::memcmp((*reader)->mapped(), bytes.data() + 8, 24 * 4), 0);
  EXPECT_EQ(read_all(path("a"), FileKind::raw, options), Bytes(bytes.begin() + 8, bytes.end()));

  options.big_endian = true;
  reader = open_reader(path("a"), FileKind::raw, options, detail);
  ASSERT_TRUE(reader.ok()) << detail;
  EXPECT_EQ((*reader)->mapped(), nullptr);

  write_bytes(path("odd"), Bytes(bytes.begin() + 1, bytes.end()));
  options.big_endian = false;
  options.skip_bytes = 7;
  reader = open_reader(path("odd"), FileKind::raw, options, detail);
  ASSERT_TRUE(reader.ok()) << detail;
  EXPECT_EQ((*reader)->mapped(), nullptr);
  EXPECT_EQ(read_all(path("odd"), FileKind::raw, options), Bytes(bytes.begin() + 8, bytes.end()));
}

TEST_F(FlatFiles, RawColumnMajor_Shape_IsReversedAndBytesStay) {
  const Bytes bytes = random_bytes(2 * 3 * 4 * 4, 7);
  write_bytes(path("a"), bytes);
  OpenOptions options = raw_options(DType::i32, shape_of({2, 3, 4}));
  options.column_major = true;
  ArrayMeta meta;
  EXPECT_EQ(read_all(path("a"), FileKind::raw, options, &meta), bytes);
  EXPECT_EQ(meta.shape, shape_of({4, 3, 2}));
}

TEST_F(FlatFiles, RawName_WithTypeAndShape_IsUnderstood) {
  write_bytes(path("wind_speed_2x3.f32"), random_bytes(24, 8));
  ArrayMeta meta;
  EXPECT_EQ(read_all(path("wind_speed_2x3.f32"), FileKind::raw, {}, &meta).size(), 24U);
  EXPECT_EQ(meta.dtype, DType::f32);
  EXPECT_EQ(meta.shape, shape_of({2, 3}));

  // What is given wins over the name; a name may tell only one of both.
  OpenOptions options;
  options.shape = shape_of({6});
  read_all(path("wind_speed_2x3.f32"), FileKind::raw, options, &meta);
  EXPECT_EQ(meta.shape, shape_of({6}));
  write_bytes(path("a_2x3.bin"), random_bytes(12, 8));
  options = {};
  options.dtype = DType::bf16;
  read_all(path("a_2x3.bin"), FileKind::raw, options, &meta);
  EXPECT_EQ(meta.shape, shape_of({2, 3}));
}

TEST_F(FlatFiles, RawName_WithoutTypeOrShape_SaysWhatIsMissing) {
  write_bytes(path("a.bin"), random_bytes(24, 8));
  write_bytes(path("a.f32"), random_bytes(24, 8));
  expect_refused(path("a.bin"), FileKind::raw, {}, StatusCode::invalid_argument, "element type");
  expect_refused(path("a.f32"), FileKind::raw, {}, StatusCode::invalid_argument, "6 elements of f32");
}

TEST_F(FlatFiles, RawSize_ThatDoesNotFit_SaysWhatWouldFit) {
  write_bytes(path("a"), random_bytes(4000, 9));
  const auto expect_advice = [&](DType dtype, const Shape& shape, const std::string& part) {
    expect_refused(path("a"), FileKind::raw, raw_options(dtype, shape), StatusCode::invalid_shape, part);
    expect_refused(path("a"), FileKind::raw, raw_options(dtype, shape), StatusCode::invalid_shape, "4000 bytes");
  };
  expect_advice(DType::f64, shape_of({10, 100}), "f32, i32 or u32");
  expect_advice(DType::f64, shape_of({10, 100}), "needs 8000 bytes");
  expect_advice(DType::f32, shape_of({30, 25}), "would have to be 40 instead of 30");
  expect_advice(DType::f32, shape_of({33, 30}), "skipping 40 bytes");
  expect_advice(DType::f32, shape_of({7000, 9}), "check the shape");
  OpenOptions options = raw_options(DType::f32, shape_of({10}));
  options.skip_bytes = 5000;
  expect_refused(path("a"), FileKind::raw, options, StatusCode::invalid_argument, "5000 to skip");
}

TEST_F(FlatFiles, Open_DirectoryMissingEmptyForbidden_ExplainsItself) {
  const OpenOptions options = raw_options(DType::f32, shape_of({4}));
  for (const FileKind kind : {FileKind::raw, FileKind::npy}) {
    expect_refused(folder_, kind, kind == FileKind::raw ? options : OpenOptions{}, StatusCode::io_error, "directory");
    expect_refused(path("none"), kind, kind == FileKind::raw ? options : OpenOptions{}, StatusCode::io_error,
                   "does not exist");
  }
  write_bytes(path("empty"), {});
  expect_refused(path("empty"), FileKind::raw, options, StatusCode::invalid_shape, "is empty");
  expect_refused(path("empty"), FileKind::npy, {}, StatusCode::io_error, "is empty");

  write_bytes(path("secret"), random_bytes(16, 1));
  std::filesystem::permissions(path("secret"), std::filesystem::perms::none);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  const uid_t user = geteuid();
  // The superuser may read everything: become somebody else for a moment.
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  expect_refused(path("secret"), FileKind::raw, options, StatusCode::io_error, "No permission");
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
}

TEST_F(FlatFiles, Options_OfOtherKinds_AreRefused) {
  ArrayMeta meta;
  meta.dtype = DType::f32;
  meta.shape = shape_of({4});
  ASSERT_TRUE(write_all(path("a.npy"), FileKind::npy, meta, random_bytes(16, 1)).ok());
  OpenOptions options;
  options.skip_bytes = 4;
  expect_refused(path("a.npy"), FileKind::npy, options, StatusCode::invalid_argument, "raw files");
  options = {};
  options.dtype = DType::f64;
  expect_refused(path("a.npy"), FileKind::npy, options, StatusCode::invalid_argument, "holds f32, not f64");
  options = {};
  options.shape = shape_of({2, 2});
  expect_refused(path("a.npy"), FileKind::npy, options, StatusCode::invalid_shape, "shape 4, not 2x2");
  options = {};
  options.dataset = "/x";
  expect_refused(path("a.npy"), FileKind::npy, options, StatusCode::invalid_argument, "/x");
  options.dtype = DType::f32;
  expect_refused(path("a.npy"), FileKind::raw, options, StatusCode::invalid_argument, "/x");
}

TEST_F(FlatFiles, Read_BufferSmallerThanAnElement_IsRefused) {
  write_bytes(path("a"), random_bytes(16, 1));
  std::string detail;
  auto reader = open_reader(path("a"), FileKind::raw, raw_options(DType::f64, shape_of({2})), detail);
  ASSERT_TRUE(reader.ok());
  Bytes small(7);
  EXPECT_EQ((*reader)->read(small).status().code(), StatusCode::invalid_argument);
  Bytes all(16);
  EXPECT_EQ((*reader)->read(all).value(), 16U);
  EXPECT_EQ((*reader)->read(small).value(), 0U);
}

TEST_F(FlatFiles, StandardInput_RawAndNpy_AreReadInOrder) {
  const Bytes bytes = random_bytes(60, 11);
  write_bytes(path("raw"), bytes);
  {
    const StdinFrom input(path("raw"));
    OpenOptions options = raw_options(DType::f32, shape_of({13}));
    options.skip_bytes = 8;
    EXPECT_EQ(read_all("-", FileKind::raw, options), Bytes(bytes.begin() + 8, bytes.end()));
  }
  ArrayMeta meta;
  meta.dtype = DType::u16;
  meta.shape = shape_of({5, 6});
  ASSERT_TRUE(write_all(path("npy"), FileKind::npy, meta, bytes).ok());
  {
    const StdinFrom input(path("npy"));
    ArrayMeta back;
    EXPECT_EQ(read_all("-", FileKind::npy, {}, &back), bytes);
    EXPECT_EQ(back.shape, meta.shape);
  }
}

TEST_F(FlatFiles, StandardInput_OfWrongLength_IsReported) {
  write_bytes(path("raw"), random_bytes(60, 11));
  Bytes out(200);
  for (const auto& [elems, code] : {std::pair{14, StatusCode::trailing_data}, {16, StatusCode::truncated}}) {
    const StdinFrom input(path("raw"));
    std::string detail;
    auto reader =
        open_reader("-", FileKind::raw, raw_options(DType::f32, shape_of({static_cast<std::uint64_t>(elems)})), detail);
    ASSERT_TRUE(reader.ok()) << detail;
    EXPECT_EQ((*reader)->read(out).status().code(), code);
  }
  const StdinFrom input(path("raw"));
  expect_refused("-", FileKind::raw, {}, StatusCode::invalid_argument, "standard input");
}

TEST_F(FlatFiles, Writer_TooFewOrTooManyBytes_IsRefused) {
  ArrayMeta meta;
  meta.dtype = DType::f32;
  meta.shape = shape_of({4});
  for (const FileKind kind : {FileKind::raw, FileKind::npy}) {
    EXPECT_EQ(write_all(path("a"), kind, meta, random_bytes(12, 1)).code(), StatusCode::invalid_argument);
    EXPECT_EQ(write_all(path("a"), kind, meta, random_bytes(20, 1)).code(), StatusCode::invalid_argument);
  }
}

TEST_F(FlatFiles, Writer_FullDisk_IsReported) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full on this system";
  for (const FileKind kind : {FileKind::raw, FileKind::npy}) {
    for (const std::uint64_t elems : {10U, 1000000U}) {
      ArrayMeta meta;
      meta.dtype = DType::f32;
      meta.shape = shape_of({elems});
      const Status status = write_all("/dev/full", kind, meta, Bytes(elems * 4));
      EXPECT_EQ(status.code(), StatusCode::io_error);
      EXPECT_NE(status.text().find("full"), std::string::npos) << status.text();
    }
  }
  ArrayMeta meta;
  EXPECT_EQ(write_all(path("no/such/folder"), FileKind::raw, meta, Bytes(4)).code(), StatusCode::io_error);
  EXPECT_NE(detail_.find("folder does not exist"), std::string::npos) << detail_;
}

TEST_F(FlatFiles, ListArrays_OfFlatKinds_IsOneEmptyName) {
  std::string detail;
  EXPECT_EQ(list_arrays(path("a"), FileKind::raw, detail).value(), std::vector<std::string>{""});
  EXPECT_EQ(list_arrays(path("a"), FileKind::npy, detail).value(), std::vector<std::string>{""});
}

TEST_F(FlatFiles, NpyFortranOrder_ReadAndWritten_IsTheSameFileAgain) {
  QUERN_PYTHON_OR_SKIP("numpy", R"(
import numpy
a = numpy.asfortranarray(numpy.arange(24, dtype='>f4').reshape(2, 3, 4))
numpy.save(sys.argv[1] + '/fortran.npy', a)
c = (numpy.arange(6) + 1j * numpy.arange(6)[::-1]).reshape(2, 3)
numpy.save(sys.argv[1] + '/complex.npy', numpy.asfortranarray(c.astype('c16')))
)");
  ArrayMeta meta;
  const Bytes bytes = read_all(path("fortran.npy"), FileKind::npy, {}, &meta);
  EXPECT_EQ(meta.shape, shape_of({4, 3, 2}));
  std::vector<float> first(4);
  ASSERT_EQ(bytes.size(), 96U);
  std::memcpy(first.data(), bytes.data(), 16);
  EXPECT_EQ(first, (std::vector<float>{0, 12, 4, 16}));
  ASSERT_TRUE(write_all(path("back.npy"), FileKind::npy, meta, bytes).ok()) << detail_;

  ArrayMeta complex_meta;
  const Bytes complex_bytes = read_all(path("complex.npy"), FileKind::npy, {}, &complex_meta);
  EXPECT_TRUE(complex_meta.is_complex);
  EXPECT_EQ(complex_meta.dtype, DType::f64);
  EXPECT_EQ(complex_meta.shape, shape_of({3, 2, 2}));
  ASSERT_TRUE(write_all(path("complex_back.npy"), FileKind::npy, complex_meta, complex_bytes).ok()) << detail_;
  QUERN_PYTHON_OR_SKIP("numpy", R"(
import numpy
for name in ['fortran', 'complex']:
  back = name.replace('fortran', '') and 'complex_back' or 'back'
  a, b = numpy.load(sys.argv[1] + '/%s.npy' % name), numpy.load(sys.argv[1] + '/%s.npy' % back)
  assert a.shape == b.shape and (a == b).all() and b.flags.f_contiguous
  assert b.dtype == a.dtype.newbyteorder('=')
)");
}

TEST_F(FlatFiles, NpyOfNumpy_AllTypes_ReadAndWrittenAlike) {
  QUERN_PYTHON_OR_SKIP("numpy", R"(
import numpy
r = numpy.random.default_rng(4)
for order in '<>':
  for t in ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'c8', 'c16']:
    a = (r.standard_normal((3, 4)) * 50).astype(order + t) if t[0] != 'u' else r.integers(0, 200, (3, 4)).astype(order + t)
    numpy.save(sys.argv[1] + '/%s_%s.npy' % ('le' if order == '<' else 'be', t), a)
)");
  for (const char* order : {"le", "be"}) {
    for (const char* type : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16"}) {
      const std::string name = std::string(order) + "_" + type;
      ArrayMeta meta;
      const Bytes bytes = read_all(path(name + ".npy"), FileKind::npy, {}, &meta);
      ASSERT_TRUE(write_all(path("out_" + name + ".npy"), FileKind::npy, meta, bytes).ok()) << detail_;
    }
  }
  QUERN_PYTHON_OR_SKIP("numpy, glob", R"(
import numpy, glob
names = glob.glob(sys.argv[1] + '/[lb]e_*.npy')
assert len(names) == 26
for name in names:
  a, b = numpy.load(name), numpy.load(name.replace('/le_', '/out_le_').replace('/be_', '/out_be_'))
  assert a.dtype.newbyteorder('=') == b.dtype and a.shape == b.shape and (a == b).all(), name
)");
}

TEST_F(FlatFiles, NpyBfloat16_AsTwoUntypedBytes_NeedsTheTypeToBeRead) {
  ArrayMeta meta;
  meta.dtype = DType::bf16;
  meta.shape = shape_of({3, 2});
  const Bytes bytes = random_bytes(12, 2);
  ASSERT_TRUE(write_all(path("b.npy"), FileKind::npy, meta, bytes).ok());
  expect_refused(path("b.npy"), FileKind::npy, {}, StatusCode::unsupported, "bf16");
  OpenOptions options;
  options.dtype = DType::bf16;
  EXPECT_EQ(read_all(path("b.npy"), FileKind::npy, options), bytes);
  QUERN_PYTHON_OR_SKIP("numpy", R"(
import numpy
a = numpy.load(sys.argv[1] + '/b.npy')
assert a.shape == (3, 2) and a.dtype.itemsize == 2 and a.dtype.kind == 'V'
)");
}

TEST_F(FlatFiles, NpySize_CutOrTooLong_IsReported) {
  ArrayMeta meta;
  meta.dtype = DType::f32;
  meta.shape = shape_of({10});
  ASSERT_TRUE(write_all(path("a.npy"), FileKind::npy, meta, random_bytes(40, 1)).ok());
  const Bytes whole = read_bytes(path("a.npy"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path("cut.npy"), Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    std::string detail;
    EXPECT_FALSE(open_reader(path("cut.npy"), FileKind::npy, {}, detail).ok()) << length;
    EXPECT_FALSE(detail.empty());
  }
  Bytes longer = whole;
  longer.push_back(0);
  write_bytes(path("long.npy"), longer);
  expect_refused(path("long.npy"), FileKind::npy, {}, StatusCode::trailing_data, "one array per file");
}

}  // namespace
}  // namespace quern::io::test

// HDF5 datasets: round trips, what h5py makes of our files and we of its, fill values, attributes, damaged files.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>

#include "libcompress/io/file_notes.h"
#include "tests/unit_io/test_files.h"

namespace quern::io::test {
namespace {

class Hdf5Files : public BuiltKindTest {
 protected:
  Hdf5Files() : BuiltKindTest(FileKind::hdf5) {}
};

TEST_F(Hdf5Files, AllTypes_OddPieces_RoundTrip) {
  const Shape shape = shape_of({3, 5, 7});
  for (const DType dtype : kAllTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    ArrayMeta meta;
    meta.dtype = dtype;
    meta.shape = shape;
    const Bytes bytes = random_bytes(shape.elems() * dtype_bytes(dtype), 21);
    const std::string name = std::string("/types/") + dtype_name(dtype);
    ASSERT_TRUE(write_all(path("a.h5"), FileKind::hdf5, meta, bytes, name, 13).ok()) << detail_;
    ArrayMeta back;
    EXPECT_EQ(read_all(path("a.h5"), FileKind::hdf5, named(name), &back, 29), bytes);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.shape, shape);
    EXPECT_TRUE(back.fill_bits.empty());
  }
  std::string detail;
  EXPECT_EQ(list_arrays(path("a.h5"), FileKind::hdf5, detail).value().size(), std::size(kAllTypes));
  expect_refused(path("a.h5"), FileKind::hdf5, {}, StatusCode::invalid_argument, "12 arrays: /types/f16");
  expect_refused(path("a.h5"), FileKind::hdf5, named("/types/none"), StatusCode::invalid_argument, "/types/none");
  expect_refused(path("a.h5"), FileKind::hdf5, named("/types"), StatusCode::invalid_argument, "no dataset /types");
}

TEST_F(Hdf5Files, ScalarsAndEmptyArrays_RoundTrip) { expect_scalars_and_empty_arrays_round_trip(); }

TEST_F(Hdf5Files, LargeArray_MoreThanOneSlab_RoundTrips) { expect_large_arrays_round_trip(); }

TEST_F(Hdf5Files, OfH5py_EveryStorage_IsReadAndWrittenBackAlike) {
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
with h5py.File(sys.argv[1] + '/in.h5', 'w') as f:
  r = numpy.random.default_rng(5)
  a = r.standard_normal((7, 11, 13))
  f.create_dataset('big/endian', data=a.astype('>f4'))
  f.create_dataset('half', data=a.astype('f2'))
  f.create_dataset('big_int', data=(a * 100).astype('>i8'))
  f.create_dataset('chunked', data=a, chunks=(3, 4, 5), maxshape=(None, 11, 20), compression='gzip', shuffle=True)
  f.create_dataset('complex', data=(a + 2j * a).astype('c8'))
  f.create_dataset('complex_big', data=(a - 1j).astype('>c16'), chunks=(1, 11, 13))
  f.create_dataset('scalar', data=numpy.uint16(7))
  f.create_dataset('text', data='words')
  f.create_dataset('flags', data=numpy.array([True, False]))
  f.create_dataset('records', data=numpy.zeros(3, dtype=[('x', 'f4'), ('y', 'f4')]))
  f.create_dataset('null', dtype='f4', shape=None)
)");
  std::string detail;
  const auto names = list_arrays(path("in.h5"), FileKind::hdf5, detail);
  ASSERT_TRUE(names.ok()) << detail;
  EXPECT_EQ(names.value(), (std::vector<std::string>{"/big/endian", "/big_int", "/chunked", "/complex", "/complex_big",
                                                     "/half", "/scalar"}));
  for (const std::string& name : names.value()) {
    ArrayMeta meta;
    const Bytes bytes = read_all(path("in.h5"), FileKind::hdf5, named(name), &meta, 1000);
    EXPECT_EQ(meta.is_complex, name.rfind("/complex", 0) == 0);
    EXPECT_EQ(meta.shape, meta.is_complex     ? shape_of({7, 11, 13, 2})
                          : name == "/scalar" ? Shape()
                                              : shape_of({7, 11, 13}));
    ASSERT_TRUE(write_all(path("out.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  }
  for (const char* name : {"text", "flags", "records", "null"})
    expect_refused(path("in.h5"), FileKind::hdf5, named(name), StatusCode::unsupported, name);
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
a, b = h5py.File(sys.argv[1] + '/in.h5', 'r'), h5py.File(sys.argv[1] + '/out.h5', 'r')
for n in ['big/endian', 'big_int', 'chunked', 'complex', 'complex_big', 'half', 'scalar']:
  assert a[n].shape == b[n].shape and a[n].dtype.newbyteorder('=') == b[n].dtype, n
  assert numpy.array_equal(a[n][()], b[n][()]), n
  assert a[n].maxshape == b[n].maxshape, n
assert b['chunked'].chunks == (3, 4, 5) and b['chunked'].compression is None
assert b['half'].chunks is None
)");
}

TEST_F(Hdf5Files, OurFiles_InH5py_AreEqual) {
  ArrayMeta meta;
  meta.shape = shape_of({4, 6});
  const std::vector<DType> types(std::begin(kAllTypes), std::end(kAllTypes));
  for (const DType dtype : types) {
    meta.dtype = dtype;
    const Bytes bytes = random_bytes(24 * dtype_bytes(dtype), 33);
    write_bytes(path(std::string(dtype_name(dtype)) + ".bin"), bytes);
    ASSERT_TRUE(write_all(path("a.h5"), FileKind::hdf5, meta, bytes, dtype_name(dtype)).ok()) << detail_;
  }
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
f = h5py.File(sys.argv[1] + '/a.h5', 'r')
for n, t in dict(f16='f2', f32='f4', f64='f8', i8='i1', i16='i2', i32='i4', i64='i8', u8='u1', u16='u2', u32='u4', u64='u8').items():
  assert f[n].dtype == numpy.dtype(t) and f[n].shape == (4, 6)
  assert f[n][()].tobytes() == open(sys.argv[1] + '/' + n + '.bin', 'rb').read(), n
assert f['bf16'].shape == (4, 6)
assert list(f)[0] in f and len(f) == 12
)");
}

TEST_F(Hdf5Files, FillValues_OfDatasetAndAttributes_AreDeclared) {
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
with h5py.File(sys.argv[1] + '/in.h5', 'w') as f:
  d = f.create_dataset('a', data=numpy.zeros((3, 4), 'f4'), fillvalue=-999)
  d.attrs['_FillValue'] = numpy.float64(1e20)
  d.attrs['missing_value'] = numpy.array([-999, 5], 'i2')
  f.create_dataset('plain', data=numpy.zeros(3, 'f4'))
  f.create_dataset('whole', data=numpy.zeros(3, '>i4'), fillvalue=-1)
)");
  const auto f32 = [](float v) { return std::uint64_t{std::bit_cast<std::uint32_t>(v)}; };
  ArrayMeta meta;
  const Bytes bytes = read_all(path("in.h5"), FileKind::hdf5, named("a"), &meta);
  EXPECT_EQ(meta.fill_bits, (Vector<std::uint64_t>{f32(-999.0F), f32(1e20F), f32(5.0F)}));
  ASSERT_TRUE(write_all(path("out.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  ArrayMeta again;
  read_all(path("out.h5"), FileKind::hdf5, {}, &again);
  EXPECT_EQ(again.fill_bits, meta.fill_bits);
  EXPECT_EQ(again.attributes_json, meta.attributes_json);
  read_all(path("in.h5"), FileKind::hdf5, named("plain"), &meta);
  EXPECT_TRUE(meta.fill_bits.empty());
  read_all(path("in.h5"), FileKind::hdf5, named("whole"), &meta);
  EXPECT_EQ(meta.fill_bits, Vector<std::uint64_t>{0xffffffffU});
}

TEST_F(Hdf5Files, Attributes_OfEveryKind_Survive) {
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
with h5py.File(sys.argv[1] + '/in.h5', 'w') as f:
  d = f.create_dataset('a', data=numpy.arange(6.0))
  t = d.attrs
  t['vlen'] = 'Grad \u00b0C'
  t['fixed'] = numpy.string_('abc')
  t['latin'] = numpy.string_(b'\xb0C')
  t['list'] = ['one', '', 'three']
  t['fixed_list'] = numpy.array([b'ab', b'c'], 'S2')
  t['int'] = numpy.int16(-5)
  t['big'] = numpy.array([1, 2**40], '>i8')
  t['u64'] = numpy.uint64(2**64 - 1)
  t['nan'] = numpy.array([numpy.nan, numpy.inf, -0.0], 'f4')
  t['half'] = numpy.array([[0.1, 2], [3, 4]], 'f2')
  t['empty'] = numpy.zeros(0, 'f8')
  t['flag'] = True
  t['ref'] = d.ref
)");
  ArrayMeta meta;
  const Bytes bytes = read_all(path("in.h5"), FileKind::hdf5, {}, &meta);
  EXPECT_EQ(notes_of(meta).skipped, (std::vector<std::string>{"flag", "ref"}));
  ASSERT_TRUE(write_all(path("out.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
a = h5py.File(sys.argv[1] + '/in.h5', 'r')['a'].attrs
b = h5py.File(sys.argv[1] + '/out.h5', 'r')['a'].attrs
assert set(a) - set(b) == {'flag', 'ref'} and not set(b) - set(a)
for n in b:
  x, y = a[n], b[n]
  assert type(x) == type(y), (n, x, y)
  if isinstance(x, str) or n == 'latin': assert x == y, n
  else:
    assert x.shape == y.shape and x.dtype.newbyteorder('=') == y.dtype, (n, x, y)
    assert x.astype(y.dtype).tobytes() == y.tobytes() if x.dtype.kind != 'O' else list(x) == list(y), n
)");
}

TEST_F(Hdf5Files, ToNetcdfLibrary_DimensionScales_AreNotFields) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/n.h5', 'w') as f:
  f.createDimension('x', 5); f.createDimension('y', 2)
  f.createVariable('x', 'f8', ('x',))[:] = numpy.arange(5)
  v = f.createVariable('T', 'f4', ('x', 'y'), fill_value=-1.0); v[:] = 3; v.units = 'K'
)");
  std::string detail;
  EXPECT_EQ(list_arrays(path("n.h5"), FileKind::hdf5, detail).value(), (std::vector<std::string>{"/x", "/T"}));
  ArrayMeta meta;
  const Bytes bytes = read_all(path("n.h5"), FileKind::hdf5, {}, &meta);
  EXPECT_EQ(notes_of(meta).dataset, "/T");
  EXPECT_EQ(find_attribute(notes_of(meta).attributes, "DIMENSION_LIST"), nullptr);
  ASSERT_TRUE(write_all(path("out.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
}

TEST_F(Hdf5Files, Writer_ExistingNameOrForeignFile_IsRefused) {
  ArrayMeta meta;
  meta.shape = shape_of({4});
  ASSERT_TRUE(write_all(path("a.h5"), FileKind::hdf5, meta, Bytes(16), "x").ok()) << detail_;
  EXPECT_EQ(write_all(path("a.h5"), FileKind::hdf5, meta, Bytes(16), "x").code(), StatusCode::invalid_argument);
  EXPECT_NE(detail_.find("/x"), std::string::npos) << detail_;
  write_bytes(path("words.h5"), bytes_of(std::vector<char>(100, 'w')));
  EXPECT_EQ(write_all(path("words.h5"), FileKind::hdf5, meta, Bytes(16)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all("-", FileKind::hdf5, meta, Bytes(16)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all(path("no/such.h5"), FileKind::hdf5, meta, Bytes(16)).code(), StatusCode::io_error);
  EXPECT_EQ(write_all(path("b.h5"), FileKind::hdf5, meta, Bytes(12)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all(path("c.h5"), FileKind::hdf5, meta, Bytes(20)).code(), StatusCode::invalid_argument);
  // A temporary file that was made empty is taken as new.
  write_bytes(path("empty.h5"), {});
  EXPECT_TRUE(write_all(path("empty.h5"), FileKind::hdf5, meta, Bytes(16)).ok()) << detail_;
}

TEST_F(Hdf5Files, Open_NotHdf5_ExplainsItself) {
  write_bytes(path("words.h5"), bytes_of(std::vector<char>(100, 'w')));
  write_bytes(path("empty.h5"), {});
  expect_refused(path("words.h5"), FileKind::hdf5, {}, StatusCode::bad_magic, "no HDF5 file");
  expect_refused(path("empty.h5"), FileKind::hdf5, {}, StatusCode::io_error, "is empty");
  expect_refused(path("none.h5"), FileKind::hdf5, {}, StatusCode::io_error, "does not exist");
  expect_refused(folder_, FileKind::hdf5, {}, StatusCode::io_error, "directory");
  expect_refused("-", FileKind::hdf5, {}, StatusCode::invalid_argument, "standard input");
}

TEST_F(Hdf5Files, CutFiles_NeverGiveDataThatIsNotThere) {
  ArrayMeta meta;
  meta.dtype = DType::f64;
  meta.shape = shape_of({500});
  const Bytes bytes = random_bytes(4000, 6);
  ASSERT_TRUE(write_all(path("a.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  const Bytes whole = read_bytes(path("a.h5"));
  for (std::size_t length = 1; length < whole.size(); length += 97) {
    write_bytes(path("cut.h5"), Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    std::string detail;
    auto reader = open_reader(path("cut.h5"), FileKind::hdf5, {}, detail);
    if (!reader.ok()) {
      EXPECT_FALSE(detail.empty());
      continue;
    }
    Bytes out(4000);
    const auto got = (*reader)->read(out);
    EXPECT_TRUE(!got.ok() || out == bytes) << length;
  }
}

TEST_F(Hdf5Files, Errors_OfHdf5_AreNotPrinted) {
  Bytes broken = bytes_of(std::vector<char>(4096, 'x'));
  const std::vector<std::uint8_t> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  std::copy(signature.begin(), signature.end(), broken.begin());
  write_bytes(path("broken.h5"), broken);
  ::testing::internal::CaptureStderr();
  expect_refused(path("broken.h5"), FileKind::hdf5, {}, StatusCode::io_error, "HDF5 cannot open");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Hdf5Files, Writer_FileThatMayNotGrow_ReportsAndLeavesCleanly) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    ArrayMeta meta;
    meta.shape = shape_of({1000000});
    const Status status = write_all(path("full.h5"), FileKind::hdf5, meta, Bytes(4000000));
    // A normal exit: HDF5 closes what it still has, and must not hang or crash on it.
    std::exit(status.code() == StatusCode::io_error ? 0 : 1);
  }
  int result = 0;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

}  // namespace
}  // namespace quern::io::test

// netCDF variables: round trips, what netCDF4-python makes of our files and we of its, packing, fill values,
// dimensions.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcompress/io/file_notes.h"
#include "tests/unit_io/test_files.h"

namespace quern::io::test {
namespace {

class NetcdfFiles : public BuiltKindTest {
 protected:
  NetcdfFiles() : BuiltKindTest(FileKind::netcdf) {}
};

TEST_F(NetcdfFiles, AllTypes_OddPieces_RoundTrip) {
  const Shape shape = shape_of({3, 5, 7});
  std::size_t written = 0;
  for (const DType dtype : kAllTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    ArrayMeta meta;
    meta.dtype = dtype;
    meta.shape = shape;
    const Bytes bytes = random_bytes(shape.elems() * dtype_bytes(dtype), 21);
    const std::string name = std::string("/types/") + dtype_name(dtype);
    const Status status = write_all(path("a.nc"), FileKind::netcdf, meta, bytes, name, 13);
    if (dtype == DType::f16 || dtype == DType::bf16) {
      EXPECT_EQ(status.code(), StatusCode::unsupported);
      EXPECT_NE(detail_.find("HDF5"), std::string::npos) << detail_;
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.text() << detail_;
    ++written;
    ArrayMeta back;
    EXPECT_EQ(read_all(path("a.nc"), FileKind::netcdf, named(name), &back, 29), bytes);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.shape, shape);
    EXPECT_FALSE(back.packed);
  }
  std::string detail;
  EXPECT_EQ(list_arrays(path("a.nc"), FileKind::netcdf, detail).value().size(), written);
  expect_refused(path("a.nc"), FileKind::netcdf, {}, StatusCode::invalid_argument, "10 arrays: /types/f32");
  expect_refused(path("a.nc"), FileKind::netcdf, named("none"), StatusCode::invalid_argument, "none");
  expect_refused(path("a.nc"), FileKind::netcdf, named("/no/T"), StatusCode::invalid_argument, "/no/T");
}

TEST_F(NetcdfFiles, ScalarsAndEmptyArrays_RoundTrip) { expect_scalars_and_empty_arrays_round_trip(); }

TEST_F(NetcdfFiles, LargeArray_MoreThanOneSlab_RoundTrips) { expect_large_arrays_round_trip(); }

TEST_F(NetcdfFiles, EveryFormat_PackedVariable_IsReadAndWrittenBackAlike) {
  for (const char* format : {"NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC", "NETCDF4"}) {
    SCOPED_TRACE(format);
    QUERN_PYTHON_OR_SKIP("netCDF4, numpy", "\nformat = '" + std::string(format) + R"('
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in_' + format + '.nc', 'w', format=format) as f:
  f.title = 'a title'; f.version = numpy.int32(3)
  f.createDimension('time', None); f.createDimension('lat', 4); f.createDimension('lon', 5)
  t = f.createVariable('time', 'f8', ('time',)); t[:] = numpy.arange(3)
  f.createVariable('lat', 'f4', ('lat',))[:] = numpy.arange(4)
  v = f.createVariable('T', 'i2', ('time', 'lat', 'lon'), fill_value=-32767)
  v.set_auto_maskandscale(False)
  v.scale_factor = 0.01; v.add_offset = numpy.float32(273.15); v.missing_value = numpy.int16(-1)
  v.units = 'K'; v.long_name = 'temp\u00e9rature'; v.valid_range = numpy.array([-100, 100], 'i2')
  v[:] = numpy.arange(60).reshape(3, 4, 5)
)");
    const std::string in = path("in_" + std::string(format) + ".nc");
    const std::string out = path("out_" + std::string(format) + ".nc");
    ArrayMeta meta;
    const Bytes bytes = read_all(in, FileKind::netcdf, {}, &meta, 6);
    EXPECT_EQ(meta.dtype, DType::i16);
    EXPECT_EQ(meta.shape, shape_of({3, 4, 5}));
    EXPECT_TRUE(meta.packed);
    EXPECT_EQ(meta.scale_factor, 0.01);
    EXPECT_EQ(meta.add_offset, static_cast<double>(273.15F));
    EXPECT_EQ(meta.fill_bits, (Vector<std::uint64_t>{0x8001, 0xffff}));
    ASSERT_TRUE(write_all(out, FileKind::netcdf, meta, bytes).ok()) << detail_;
    ArrayMeta again;
    EXPECT_EQ(read_all(out, FileKind::netcdf, {}, &again), bytes);
    EXPECT_EQ(again.attributes_json, meta.attributes_json);
    QUERN_PYTHON_OR_SKIP("netCDF4, numpy", "\nformat = '" + std::string(format) + R"('
import netCDF4, numpy
f, g = [netCDF4.Dataset(sys.argv[1] + '/' + n + format + '.nc') for n in ('in_', 'out_')]
v, w = f['T'], g['T']
assert g.title == 'a title' and g.version == 3 and g.dimensions['time'].isunlimited()
assert v.dimensions == w.dimensions and v.shape == w.shape and v.dtype == w.dtype
assert v.ncattrs() == w.ncattrs()
for n in v.ncattrs(): assert numpy.array_equal(v.getncattr(n), w.getncattr(n)) and type(v.getncattr(n)) == type(w.getncattr(n)), n
assert numpy.ma.allequal(v[:], w[:]) and (numpy.ma.getmaskarray(v[:]) == numpy.ma.getmaskarray(w[:])).all()
)");
  }
}

TEST_F(NetcdfFiles, GroupsStringsAndTypes_OfNetcdf4_Survive) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('x', 6)
  g = f.createGroup('a').createGroup('b')
  g.createDimension('y', None)
  v = g.createVariable('v', 'u8', ('y', 'x'), zlib=True, chunksizes=(2, 4))
  v[:] = numpy.arange(24, dtype='u8').reshape(4, 6) + 2**63
  v.names = ['one', 'two', '']
  v.setncattr_string('word', 'w')
  v.many = numpy.array([2**63 + 1, 5], 'u8')
  v.nan = numpy.float32(numpy.nan)
  f.createVariable('text', str, ('x',))
  f.createVariable('letters', 'S1', ('x',))
)");
  std::string detail;
  EXPECT_EQ(list_arrays(path("in.nc"), FileKind::netcdf, detail).value(), std::vector<std::string>{"/a/b/v"});
  expect_refused(path("in.nc"), FileKind::netcdf, named("text"), StatusCode::unsupported, "text");
  expect_refused(path("in.nc"), FileKind::netcdf, named("letters"), StatusCode::unsupported, "letters");
  ArrayMeta meta;
  const Bytes bytes = read_all(path("in.nc"), FileKind::netcdf, {}, &meta, 24);
  ASSERT_TRUE(write_all(path("out.nc"), FileKind::netcdf, meta, bytes).ok()) << detail_;
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
f, g = netCDF4.Dataset(sys.argv[1] + '/in.nc'), netCDF4.Dataset(sys.argv[1] + '/out.nc')
v, w = f['/a/b/v'], g['/a/b/v']
assert v.dimensions == w.dimensions and v.dtype == w.dtype and (v[:] == w[:]).all()
assert v.ncattrs() == w.ncattrs() and w.names == v.names and w.word == 'w' and (w.many == v.many).all()
assert numpy.isnan(w.nan) and w.nan.dtype == numpy.float32
assert g['/a/b'].dimensions['y'].isunlimited()
)");
}

TEST_F(NetcdfFiles, DefaultFill_OfAllTypesButBytes_IsDeclared) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('x', 6)
  for t in ['f4', 'f8', 'i2', 'i1']: f.createVariable('v' + t, t, ('x',))[0:3] = 1
  f.createVariable('none', 'f4', ('x',), fill_value=False)[:] = 1
)");
  ArrayMeta meta;
  read_all(path("in.nc"), FileKind::netcdf, named("vf4"), &meta);
  EXPECT_EQ(meta.fill_bits, Vector<std::uint64_t>{0x7cf00000});
  read_all(path("in.nc"), FileKind::netcdf, named("vf8"), &meta);
  EXPECT_EQ(meta.fill_bits, Vector<std::uint64_t>{0x479e000000000000});
  read_all(path("in.nc"), FileKind::netcdf, named("vi2"), &meta);
  EXPECT_EQ(meta.fill_bits, Vector<std::uint64_t>{0x8001});
  for (const char* name : {"vi1", "none"}) {
    read_all(path("in.nc"), FileKind::netcdf, named(name), &meta);
    EXPECT_TRUE(meta.fill_bits.empty()) << name;
  }
}

TEST_F(NetcdfFiles, UnsignedInSignedType_IsReadAsUnsignedAndStoredAsBefore) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w', format='NETCDF3_CLASSIC') as f:
  f.createDimension('x', 4)
  v = f.createVariable('v', 'i1', ('x',), fill_value=-1)
  v._Unsigned = 'true'
  v.set_auto_maskandscale(False)
  v[:] = numpy.array([0, 127, -128, -2], 'i1')
)");
  ArrayMeta meta;
  const Bytes bytes = read_all(path("in.nc"), FileKind::netcdf, {}, &meta);
  EXPECT_EQ(meta.dtype, DType::u8);
  EXPECT_EQ(bytes, (Bytes{0, 127, 128, 254}));
  EXPECT_EQ(meta.fill_bits, Vector<std::uint64_t>{255});
  ASSERT_TRUE(write_all(path("out.nc"), FileKind::netcdf, meta, bytes).ok()) << detail_;
  ArrayMeta again;
  EXPECT_EQ(read_all(path("out.nc"), FileKind::netcdf, {}, &again), bytes);
  EXPECT_EQ(again.attributes_json, meta.attributes_json);
}

TEST_F(NetcdfFiles, SecondVariable_SharesDimensionsOrGetsItsOwn) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('y', 3); f.createDimension('x', 4)
  f.createVariable('u', 'f4', ('y', 'x'))[:] = 1
  f.createVariable('v', 'f4', ('y', 'x'))[:] = 2
)");
  ArrayMeta meta;
  const Bytes u = read_all(path("in.nc"), FileKind::netcdf, named("u"), &meta);
  ASSERT_TRUE(write_all(path("out.nc"), FileKind::netcdf, meta, u).ok()) << detail_;
  const Bytes v = read_all(path("in.nc"), FileKind::netcdf, named("v"), &meta);
  ASSERT_TRUE(write_all(path("out.nc"), FileKind::netcdf, meta, v).ok()) << detail_;
  EXPECT_EQ(write_all(path("out.nc"), FileKind::netcdf, meta, v).code(), StatusCode::invalid_argument);
  EXPECT_NE(detail_.find("already holds"), std::string::npos) << detail_;
  // A part of the array has other extents under the same names.
  meta.shape = shape_of({2, 4});
  ASSERT_TRUE(write_all(path("out.nc"), FileKind::netcdf, meta, Bytes(32), "part").ok()) << detail_;
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4
f = netCDF4.Dataset(sys.argv[1] + '/out.nc')
assert f['u'].dimensions == ('y', 'x') and f['v'].dimensions == ('y', 'x')
assert f['part'].dimensions == ('y_2', 'x') and f['part'].shape == (2, 4)
assert (f['u'][:] == 1).all() and (f['v'][:] == 2).all()
)");
}

TEST_F(NetcdfFiles, ArrayWithoutAttributes_FillAndPacking_AreWritten) {
  ArrayMeta meta;
  meta.dtype = DType::i16;
  meta.shape = shape_of({4});
  meta.fill_bits = {0x8000};
  meta.packed = true;
  meta.scale_factor = 0.5;
  meta.add_offset = -3;
  for (const FileKind kind : {FileKind::netcdf, FileKind::hdf5}) {
    if (!is_available(kind)) continue;
    const std::string file = path(kind == FileKind::netcdf ? "a.nc" : "a.h5");
    ASSERT_TRUE(write_all(file, kind, meta, Bytes(8)).ok()) << detail_;
    ArrayMeta back;
    read_all(file, kind, {}, &back);
    EXPECT_EQ(back.fill_bits, meta.fill_bits);
    EXPECT_NE(find_attribute(notes_of(back).attributes, "scale_factor"), nullptr);
  }
  ArrayMeta back;
  read_all(path("a.nc"), FileKind::netcdf, {}, &back);
  EXPECT_TRUE(back.packed);
  EXPECT_EQ(back.scale_factor, 0.5);
  EXPECT_EQ(back.add_offset, -3.0);
}

TEST_F(NetcdfFiles, TextAttribute_OfTheArray_IsGiven) {
  FileNotes notes;
  Attribute units;
  units.name = "units";
  units.type = Attribute::Type::chars;
  units.texts = {"m s-1"};
  notes.attributes = {units, number_attribute("n", DType::i32, 7)};
  ArrayMeta meta;
  meta.shape = shape_of({2});
  EXPECT_EQ(text_attribute(meta, "units"), "");
  meta.attributes_json = to_json(notes);
  ASSERT_TRUE(write_all(path("a.nc"), FileKind::netcdf, meta, Bytes(8)).ok()) << detail_;
  ArrayMeta back;
  read_all(path("a.nc"), FileKind::netcdf, {}, &back);
  EXPECT_EQ(text_attribute(back, "units"), "m s-1");
  EXPECT_EQ(text_attribute(back, "n"), "");
  EXPECT_EQ(text_attribute(back, "none"), "");
  back.attributes_json = "{";
  EXPECT_EQ(text_attribute(back, "units"), "");
}

TEST_F(NetcdfFiles, BetweenKinds_AttributesAndComplex_Survive) {
  if (!is_available(FileKind::hdf5)) GTEST_SKIP() << "this build has no HDF5";
  FileNotes notes;
  notes.kind = "hdf5";
  notes.dataset = "/g/c";
  notes.complex_names = {"r", "i"};
  notes.attributes = {number_attribute("n", DType::i32, 7)};
  ArrayMeta meta;
  meta.shape = shape_of({3, 2});
  meta.is_complex = true;
  meta.attributes_json = to_json(notes);
  const Bytes bytes = random_bytes(24, 9);
  ASSERT_TRUE(write_all(path("a.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  ArrayMeta of_hdf5;
  const Bytes first = read_all(path("a.h5"), FileKind::hdf5, {}, &of_hdf5);
  ASSERT_TRUE(write_all(path("a.nc"), FileKind::netcdf, of_hdf5, first).ok()) << detail_;
  ArrayMeta of_netcdf;
  const Bytes second = read_all(path("a.nc"), FileKind::netcdf, {}, &of_netcdf);
  ASSERT_TRUE(write_all(path("a.npy"), FileKind::npy, of_netcdf, second).ok()) << detail_;
  ArrayMeta of_npy;
  EXPECT_EQ(read_all(path("a.npy"), FileKind::npy, {}, &of_npy), bytes);
  EXPECT_EQ(first, bytes);
  EXPECT_EQ(second, bytes);
  EXPECT_TRUE(of_hdf5.is_complex && of_netcdf.is_complex && of_npy.is_complex);
  EXPECT_EQ(notes_of(of_netcdf).dataset, "/g/c");
  ASSERT_NE(find_attribute(notes_of(of_netcdf).attributes, "n"), nullptr);
}

TEST_F(NetcdfFiles, Open_NotNetcdf_ExplainsItself) {
  write_bytes(path("words.nc"), bytes_of(std::vector<char>(100, 'w')));
  write_bytes(path("empty.nc"), {});
  expect_refused(path("words.nc"), FileKind::netcdf, {}, StatusCode::bad_magic, "netCDF cannot open");
  expect_refused(path("empty.nc"), FileKind::netcdf, {}, StatusCode::io_error, "is empty");
  expect_refused(path("none.nc"), FileKind::netcdf, {}, StatusCode::io_error, "does not exist");
  expect_refused(folder_, FileKind::netcdf, {}, StatusCode::io_error, "directory");
  expect_refused("-", FileKind::netcdf, {}, StatusCode::invalid_argument, "standard input");
  ArrayMeta meta;
  meta.shape = shape_of({4});
  EXPECT_EQ(write_all(path("words.nc"), FileKind::netcdf, meta, Bytes(16)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all("-", FileKind::netcdf, meta, Bytes(16)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all(path("no/such.nc"), FileKind::netcdf, meta, Bytes(16)).code(), StatusCode::io_error);
  EXPECT_EQ(write_all(path("b.nc"), FileKind::netcdf, meta, Bytes(12)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(write_all(path("c.nc"), FileKind::netcdf, meta, Bytes(20)).code(), StatusCode::invalid_argument);
}

TEST_F(NetcdfFiles, Writer_FileThatMayNotGrow_ReportsAndLeavesCleanly) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    ArrayMeta meta;
    meta.shape = shape_of({1000000});
    const Status status = write_all(path("full.nc"), FileKind::netcdf, meta, Bytes(4000000));
    // A normal exit: the libraries close what they still have, and must not hang or crash on it.
    std::exit(status.code() == StatusCode::io_error ? 0 : 1);
  }
  int result = 0;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

}  // namespace
}  // namespace quern::io::test

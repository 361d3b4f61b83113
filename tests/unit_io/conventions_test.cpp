// What attributes of netCDF and CF say about values: both readers of one netCDF-4 file must say the same.
#include "tests/unit_io/test_files.h"

namespace quern::io::test {
namespace {

constexpr std::uint64_t kDefaultFloat = 0x7cf00000, kDefaultShort = 0x8001;

class Conventions : public BuiltKindTest {
 protected:
  Conventions() : BuiltKindTest(FileKind::netcdf) {}

  /// The variable as both readers describe it; they must agree.
  ArrayMeta described(const std::string& name) {
    ArrayMeta netcdf, hdf5;
    const Bytes a = read_all(path("in.nc"), FileKind::netcdf, named(name), &netcdf);
    const Bytes b = read_all(path("in.nc"), FileKind::hdf5, named(name), &hdf5);
    EXPECT_EQ(a, b) << name;
    EXPECT_EQ(netcdf.dtype, hdf5.dtype) << name;
    EXPECT_EQ(netcdf.packed, hdf5.packed) << name;
    EXPECT_EQ(netcdf.scale_factor, hdf5.scale_factor) << name;
    EXPECT_EQ(netcdf.add_offset, hdf5.add_offset) << name;
    EXPECT_EQ(netcdf.valid_min, hdf5.valid_min) << name;
    EXPECT_EQ(netcdf.valid_max, hdf5.valid_max) << name;
    EXPECT_EQ(netcdf.holds_flags, hdf5.holds_flags) << name;
    EXPECT_EQ(netcdf.unsigned_in_signed, hdf5.unsigned_in_signed) << name;
    EXPECT_EQ(sorted(netcdf.fill_bits), sorted(hdf5.fill_bits)) << name;
    return netcdf;
  }
  static Vector<std::uint64_t> sorted(Vector<std::uint64_t> bits) {
    std::sort(bits.begin(), bits.end());
    return bits;
  }
};

TEST_F(Conventions, PackedVariables_OfIntegersAndFloats_AreKnownToBothReaders) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('x', 40)
  def make(name, kind, **attributes):
    v = f.createVariable(name, kind, ('x',)); v.set_auto_maskandscale(False)
    for n, a in attributes.items(): v.setncattr(n, a)
    v[:] = numpy.arange(40).astype(kind)
  make('short', 'i2', scale_factor=365.5, add_offset=-1.2e7)
  make('float', 'f4', scale_factor=numpy.float32(0.1))
  make('offset', 'i4', add_offset=numpy.int32(5))
  make('zero', 'i4', scale_factor=0.0)
  make('plain', 'f8')
)");
  if (!is_available(FileKind::hdf5)) GTEST_SKIP() << "built without HDF5";
  EXPECT_TRUE(described("short").packed);
  EXPECT_EQ(described("short").scale_factor, 365.5);
  EXPECT_EQ(described("short").add_offset, -1.2e7);
  EXPECT_TRUE(described("float").packed);
  EXPECT_EQ(described("float").scale_factor, static_cast<double>(0.1F));
  EXPECT_TRUE(described("offset").packed);
  EXPECT_EQ(described("offset").scale_factor, 1);
  EXPECT_EQ(described("offset").add_offset, 5);
  EXPECT_FALSE(described("zero").packed);
  EXPECT_FALSE(described("plain").packed);
}

TEST_F(Conventions, MissingData_InEveryDeclaration_IsKnownToBothReaders) {
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('x', 6)
  def make(name, kind, fill=None, **attributes):
    v = f.createVariable(name, kind, ('x',), fill_value=fill); v.set_auto_maskandscale(False)
    for n, a in attributes.items(): v.setncattr(n, a)
    v[:] = numpy.arange(6).astype(kind)
  make('fill', 'f4', numpy.float32(1e20))
  make('missing', 'f4', missing_value=numpy.float32(1e20))
  make('missing_double', 'f4', missing_value=1e20)
  make('missing_list', 'f4', missing_value=numpy.array([1e20, -999]))
  make('both', 'i2', numpy.int16(-32768), missing_value=-999.0)
  make('impossible', 'i2', numpy.int16(-1), missing_value=1e20)
  make('none', 'i2')
  make('byte', 'i1')
  make('ubyte', 'u1')
  make('range', 'i2', valid_range=numpy.array([-5, 100], 'i2'))
  make('limits', 'f4', valid_min=-2.5, valid_max=numpy.int32(7))
  make('nonsense', 'f4', valid_range=numpy.array([7, -7], 'f4'))
  make('unsigned', 'i1', _Unsigned='true', valid_range=numpy.array([0, -2], 'i1'))
  make('flags', 'i1', flag_values=numpy.array([0, 1, 2], 'i1'), flag_meanings='a b c')
  make('masks', 'i4', flag_masks=numpy.array([1, 2], 'i4'), flag_meanings='a b')
)");
  if (!is_available(FileKind::hdf5)) GTEST_SKIP() << "built without HDF5";
  using Bits = Vector<std::uint64_t>;
  EXPECT_EQ(sorted(described("fill").fill_bits), Bits{0x60ad78ec});
  for (const char* name : {"missing", "missing_double"})
    EXPECT_EQ(sorted(described(name).fill_bits), (Bits{0x60ad78ec, kDefaultFloat})) << name;
  EXPECT_EQ(sorted(described("missing_list").fill_bits), (Bits{0x60ad78ec, kDefaultFloat, 0xc479c000}));
  EXPECT_EQ(sorted(described("both").fill_bits), (Bits{0x8000, 0xfc19}));
  EXPECT_EQ(described("impossible").fill_bits, Bits{0xffff});
  EXPECT_EQ(described("none").fill_bits, Bits{kDefaultShort});
  EXPECT_TRUE(described("byte").fill_bits.empty());
  EXPECT_TRUE(described("ubyte").fill_bits.empty());
  EXPECT_EQ(described("range").valid_min, -5.0);
  EXPECT_EQ(described("range").valid_max, 100.0);
  EXPECT_EQ(described("limits").valid_min, -2.5);
  EXPECT_EQ(described("limits").valid_max, 7.0);
  EXPECT_FALSE(described("nonsense").valid_min || described("nonsense").valid_max);
  EXPECT_EQ(described("unsigned").dtype, DType::u8);
  EXPECT_TRUE(described("unsigned").unsigned_in_signed);
  EXPECT_EQ(described("unsigned").valid_max, 254.0);
  EXPECT_TRUE(described("flags").holds_flags);
  EXPECT_TRUE(described("masks").holds_flags);
  EXPECT_FALSE(described("range").holds_flags);
}

TEST_F(Conventions, UnsignedInSigned_ThroughHdf5_IsWrittenBackAlike) {
  if (!is_available(FileKind::hdf5)) GTEST_SKIP() << "built without HDF5";
  QUERN_PYTHON_OR_SKIP("netCDF4, numpy", R"(
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + '/in.nc', 'w') as f:
  f.createDimension('x', 6)
  v = f.createVariable('v', 'i2', ('x',)); v.set_auto_maskandscale(False); v._Unsigned = 'true'
  v[:] = numpy.array([0, 1, 40000, 65535, 32767, 32768]).astype('u2').view('i2')
)");
  ArrayMeta meta;
  const Bytes bytes = read_all(path("in.nc"), FileKind::hdf5, named("v"), &meta);
  EXPECT_EQ(meta.dtype, DType::u16);
  ASSERT_TRUE(write_all(path("out.h5"), FileKind::hdf5, meta, bytes).ok()) << detail_;
  QUERN_PYTHON_OR_SKIP("h5py, numpy", R"(
import h5py, numpy
v = h5py.File(sys.argv[1] + '/out.h5', 'r')['v']
assert v.dtype == numpy.dtype('i2') and v[:].view('u2').tolist() == [0, 1, 40000, 65535, 32767, 32768], v[:]
)");
}

}  // namespace
}  // namespace quern::io::test

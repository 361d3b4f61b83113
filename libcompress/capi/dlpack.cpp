// Tensors of other libraries, described as the DLPack specification lays them out (unversioned DLTensor).
#include <bit>
#include <cstdint>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/barrier.h"

namespace {

struct DlDevice {
  std::int32_t type;
  std::int32_t id;
};
struct DlType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t rank;
  DlType type;
  std::int64_t* extents;
  std::int64_t* strides;  ///< elements; null: contiguous C order
  std::uint64_t byte_offset;
};

enum DeviceType { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5 };

/// The element type, or 0; complex numbers as the type of their parts.
quern_dtype element_type(const DlType& type) {
  const bool is_size = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  const int step = std::countr_zero(type.bits) - 3;  // integer types of growing size have neighbouring numbers
  if (type.lanes != 1) return 0;
  switch (type.code) {
    case kFloat: return type.bits == 16 ? QUERN_F16 : type.bits == 32 ? QUERN_F32 : type.bits == 64 ? QUERN_F64 : 0;
    case kBfloat: return type.bits == 16 ? QUERN_BF16 : 0;
    case kComplex: return type.bits == 64 ? QUERN_F32 : type.bits == 128 ? QUERN_F64 : 0;
    case kInt: return is_size ? QUERN_I8 + step : 0;
    case kUint: return is_size ? QUERN_U8 + step : 0;
    default: return 0;
  }
}

quern::Status convert(const DlTensor& tensor, quern_array& out) {
  using quern::Status;
  using quern::StatusCode;
  out = quern_array{};
  out.struct_size = sizeof(out);
  out.dtype = element_type(tensor.type);
  if (out.dtype == 0)
    return Status(StatusCode::unsupported, "DLPack type code {0} of {1} bits is not supported", tensor.type.code,
                  tensor.type.bits);
  switch (tensor.device.type) {
    case kCpu:
    case kCudaHost: out.memory = QUERN_MEMORY_HOST; break;
    case kCuda:
    case kCudaManaged: out.memory = QUERN_MEMORY_CUDA; break;
    default: return Status(StatusCode::unsupported, "DLPack device type {0} is not supported", tensor.device.type);
  }
  out.device = tensor.device.id;
  const bool is_complex = tensor.type.code == kComplex;
  const std::int32_t most = static_cast<std::int32_t>(quern::kMaxRank) - (is_complex ? 1 : 0);
  if (tensor.rank < 0 || tensor.rank > most)
    return Status(StatusCode::invalid_shape, "a tensor of rank {0} is not supported; at most {1}", tensor.rank, most);
  if (tensor.rank != 0 && tensor.extents == nullptr)
    return Status(StatusCode::invalid_argument, "the tensor's shape is NULL");
  out.rank = static_cast<std::uint32_t>(tensor.rank);
  const std::int64_t parts = is_complex ? 2 : 1;
  for (std::uint32_t a = 0; a < out.rank; ++a) {
    if (tensor.extents[a] < 0)
      return Status(StatusCode::invalid_shape, "extent {0} of the tensor is negative", static_cast<std::int64_t>(a));
    out.extents[a] = static_cast<std::uint64_t>(tensor.extents[a]);
    if (tensor.strides != nullptr && __builtin_mul_overflow(tensor.strides[a], parts, &out.strides[a]))
      return Status(StatusCode::invalid_argument, "stride {0} of the tensor is too large",
                    static_cast<std::int64_t>(a));
  }
  if (is_complex) {
    out.extents[out.rank] = 2;
    if (tensor.strides != nullptr) out.strides[out.rank] = 1;
    ++out.rank;
  }
  out.data = tensor.data == nullptr ? nullptr : static_cast<std::uint8_t*>(tensor.data) + tensor.byte_offset;
  return {};
}

}  // namespace

quern_status quern_array_from_dlpack(const void* dl_tensor, quern_array* array) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if (dl_tensor == nullptr || array == nullptr) return capi::null_argument("quern_array_from_dlpack: NULL argument");
    quern_array made;
    QUERN_RETURN_IF_ERROR(convert(*static_cast<const DlTensor*>(dl_tensor), made));
    *array = made;
    return {};
  });
}

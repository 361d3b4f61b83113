#include "checkpoint/capi/read_tensor.h"

namespace quern::checkpoint::capi {
namespace {

Result<Shape> read_shape(const std::uint64_t* extents, std::uint32_t rank) {
  if (rank > kMaxRank)
    return Status(StatusCode::invalid_shape, "rank {0} is above {1}", rank, static_cast<std::int64_t>(kMaxRank));
  return Shape::make({extents, rank});
}

Status read_piece(const quern_checkpoint_tensor& given, AddedTensor& tensor) {
  QUERN_ASSIGN_OR_RETURN(tensor.whole, read_shape(given.whole, given.rank));
  tensor.is_piece = true;
  tensor.box.rank = given.rank;
  for (std::size_t a = 0; a < given.rank; ++a) {
    if (given.offset[a] > given.whole[a] || given.extents[a] > given.whole[a] - given.offset[a])
      return Status(StatusCode::invalid_shape, "the piece leaves its tensor on axis {0}", static_cast<std::int64_t>(a));
    tensor.box.begin[a] = given.offset[a];
    tensor.box.end[a] = given.offset[a] + given.extents[a];
  }
  return {};
}

Status read_declared(const quern_checkpoint_tensor& given, AddedTensor& tensor) {
  if (given.is_piece != 0 || given.rank != 1)
    return Status(StatusCode::invalid_argument, "with declared_dtype the values have one axis and are no piece");
  if (given.declared_extents == nullptr && given.declared_rank != 0)
    return Status(StatusCode::invalid_argument, "declared_extents is NULL");
  if (given.declared_dtype[0] == '\0') return Status(StatusCode::invalid_argument, "declared_dtype is empty");
  DeclaredType said{given.declared_dtype, {}};
  said.shape.assign(given.declared_extents, given.declared_extents + given.declared_rank);
  if (!fits(said, tensor.what.bytes()))
    return Status(StatusCode::invalid_shape, "declared_dtype and declared_extents do not take {0} bytes",
                  static_cast<std::int64_t>(tensor.what.bytes()));
  tensor.declared = std::move(said);
  return {};
}

Status read_values(const quern_checkpoint_tensor& given, AddedTensor& tensor) {
  if (given.dtype < 0 || given.dtype > 255 || !codec::tensor::is_known_element(static_cast<std::uint8_t>(given.dtype)))
    return Status(StatusCode::invalid_argument, "{0} is no element type", given.dtype);
  if (given.memory != QUERN_MEMORY_HOST && given.memory != QUERN_MEMORY_CUDA)
    return Status(StatusCode::invalid_argument, "{0} is no memory space", given.memory);
  if (given.is_piece > 1) return Status(StatusCode::invalid_argument, "is_piece must be 0 or 1");
  tensor.what.type = static_cast<ElementType>(given.dtype);
  QUERN_ASSIGN_OR_RETURN(tensor.what.shape, read_shape(given.extents, given.rank));
  if (given.is_piece == 1) QUERN_RETURN_IF_ERROR(read_piece(given, tensor));
  if (given.declared_dtype != nullptr) QUERN_RETURN_IF_ERROR(read_declared(given, tensor));
  tensor.data = static_cast<const std::uint8_t*>(given.data);
  tensor.on_device = given.memory == QUERN_MEMORY_CUDA;
  tensor.device = given.device;
  if (tensor.data == nullptr && tensor.what.bytes() != 0)
    return Status(StatusCode::invalid_argument, "the tensor's data is NULL");
  return {};
}

}  // namespace

Status read_tensor(const quern_checkpoint_tensor& given, AddedTensor& tensor, Report& report) {
  tensor.name = given.name;
  if (given.role != nullptr) tensor.role = given.role;
  const Status read = read_values(given, tensor);
  return read.ok() ? read : fail_at(report, join({"tensor '", tensor.name, "'"}), read);
}

}  // namespace quern::checkpoint::capi

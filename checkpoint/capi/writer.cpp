// Saving through the C interface: the checkpoint is opened at begin, tensors are noted down, and publish codes them.
#include <algorithm>
#include <cstring>

#include "checkpoint/capi/call.h"
#include "checkpoint/capi/save_added.h"
#include "checkpoint/capi/save_desc.h"
#include "libcompress/capi/versioned.h"

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

Status read_tensor(const quern_checkpoint_tensor& given, AddedTensor& tensor) {
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

Status begin_writer(quern_checkpoint_store& store, const quern_checkpoint_save_desc& desc,
                    quern_checkpoint_writer** out, Report& report) {
  if (!store.may_write)
    return fail(report, StatusCode::invalid_argument,
                join({store.store->root(), ": the store was opened for reading"}));
  std::unique_ptr<quern_checkpoint_writer> writer(new quern_checkpoint_writer(store));
  QUERN_RETURN_IF_ERROR(read_save_desc(desc, writer->options, writer->preset, report));
  QUERN_RETURN_IF_ERROR(read_rules(desc, writer->policy, writer->replay, report));
  writer->progress = desc.progress;
  writer->progress_user = desc.progress_user;
  QUERN_ASSIGN_OR_RETURN(writer->session,
                         SaveSession::begin(*store.store, writer->options, writer->runner.get(), report));
  *out = writer.release();
  return {};
}

Status still_open(const quern_checkpoint_writer& writer, Report& report) {
  if (writer.session != nullptr) return {};
  return fail(report, StatusCode::invalid_argument, "the checkpoint was published or given up before");
}

Status add_tensor(quern_checkpoint_writer& writer, const quern_checkpoint_tensor& given, Report& report) {
  AddedTensor tensor;
  tensor.name = given.name;
  if (given.role != nullptr) tensor.role = given.role;
  if (tensor.name.empty() || tensor.name.size() > 65535)
    return fail(report, StatusCode::invalid_argument, "a tensor's name has 1 to 65535 bytes");
  const Status read = read_tensor(given, tensor);
  if (!read.ok()) return fail_at(report, join({"tensor '", tensor.name, "'"}), read);
  const std::lock_guard lock(writer.mutex);
  QUERN_RETURN_IF_ERROR(still_open(writer, report));
  const auto known = writer.names.emplace(tensor.name, tensor.is_piece);
  if (!known.second && !(tensor.is_piece && known.first->second))
    return fail(report, StatusCode::invalid_argument, join({"tensor '", tensor.name, "': the name is given twice"}));
  writer.tensors.push_back(std::move(tensor));
  return {};
}

/// Tensors of this writer that need an earlier checkpoint. The manifest may be that of a whole group.
std::uint64_t count_differences(const Manifest& manifest, const Vector<AddedTensor>& own) {
  std::uint64_t count = 0;
  Vector<std::string_view> names;
  for (const AddedTensor& tensor : own) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  for (const ManifestTensor& tensor : manifest.tensors)
    if (tensor.base && std::binary_search(names.begin(), names.end(), std::string_view(tensor.name))) ++count;
  return count;
}

Status publish(quern_checkpoint_writer& writer, quern_checkpoint_result& out, Report& report) {
  const std::lock_guard lock(writer.mutex);
  QUERN_RETURN_IF_ERROR(still_open(writer, report));
  // Whatever happens from here on, the session ends with this call.
  const std::unique_ptr<SaveSession> session = std::move(writer.session);
  QUERN_RETURN_IF_ERROR(check_pieces(writer.tensors, writer.options.writers == 1, report));
  QUERN_RETURN_IF_ERROR(save_added(*session, writer, out, report));
  auto committed = session->commit(report);
  if (!committed.ok()) return committed.status();
  const SaveResult& saved = *committed;
  out.published = saved.published ? 1 : 0;
  out.step = saved.name.step;
  out.manifest_bytes = saved.manifest_bytes;
  out.differences = count_differences(saved.manifest, writer.tensors);
  std::memcpy(out.id, saved.name.id.data(), std::min(saved.name.id.size(), sizeof(out.id) - 1));
  return {};
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::MemoryScope;
using quern::Status;
using quern::StatusCode;
using quern::checkpoint::Report;

quern_status quern_checkpoint_begin(quern_checkpoint_store* store, const quern_checkpoint_save_desc* given,
                                    quern_checkpoint_writer** writer) {
  if (writer == nullptr) return ck::refuse("quern_checkpoint_begin: the place for the writer is NULL");
  *writer = nullptr;
  if (store == nullptr) return ck::refuse("quern_checkpoint_begin: the store is NULL");
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  return ck::call(*store, [&](Report& report) { return ck::begin_writer(*store, desc, writer, report); });
}

quern_status quern_checkpoint_add(quern_checkpoint_writer* writer, const quern_checkpoint_tensor* given) {
  if (writer == nullptr) return ck::refuse("quern_checkpoint_add: the writer is NULL");
  quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
  if (const Status read = quern::capi::read_struct(given, tensor); !read.ok()) return ck::refuse(read);
  if (tensor.name == nullptr) return ck::refuse("quern_checkpoint_add: the tensor's name is NULL");
  return ck::call(writer->store, [&](Report& report) { return ck::add_tensor(*writer, tensor, report); });
}

quern_status quern_checkpoint_add_blob(quern_checkpoint_writer* writer, const char* name, const void* bytes,
                                       uint64_t size) {
  if (writer == nullptr || name == nullptr || (bytes == nullptr && size != 0))
    return ck::refuse("quern_checkpoint_add_blob: NULL argument");
  return ck::call(writer->store, [&](Report& report) -> Status {
    const std::lock_guard lock(writer->mutex);
    QUERN_RETURN_IF_ERROR(ck::still_open(*writer, report));
    if (!writer->blobs.emplace(name, false).second)
      return quern::checkpoint::fail(report, StatusCode::invalid_argument,
                                     quern::checkpoint::join({"blob '", name, "': the name is given twice"}));
    return writer->session->add_blob(name, {static_cast<const std::uint8_t*>(bytes), static_cast<std::size_t>(size)},
                                     report);
  });
}

quern_status quern_checkpoint_publish(quern_checkpoint_writer* writer, quern_checkpoint_result* result) {
  if (writer == nullptr) return ck::refuse("quern_checkpoint_publish: the writer is NULL");
  if (result != nullptr) {
    if (const Status checked = quern::capi::check_struct(result); !checked.ok()) return ck::refuse(checked);
  }
  return ck::call(writer->store, [&](Report& report) -> Status {
    quern_checkpoint_result out = QUERN_CHECKPOINT_RESULT_INIT;
    QUERN_RETURN_IF_ERROR(ck::publish(*writer, out, report));
    if (result != nullptr) quern::capi::write_struct(out, result);
    return {};
  });
}

quern_status quern_checkpoint_abort(quern_checkpoint_writer* writer) {
  if (writer == nullptr) return ck::refuse("quern_checkpoint_abort: the writer is NULL");
  return ck::call(writer->store, [&](Report&) -> Status {
    const std::lock_guard lock(writer->mutex);
    if (writer->session != nullptr) writer->session->abort();
    writer->session.reset();
    return {};
  });
}

void quern_checkpoint_writer_destroy(quern_checkpoint_writer* writer) {
  if (writer == nullptr) return;
  const MemoryScope scope(&writer->store.memory);
  delete writer;
}

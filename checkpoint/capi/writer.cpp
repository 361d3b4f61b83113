// Saving through the C interface: the checkpoint is opened at begin, tensors are noted down, and publish codes them.
#include <algorithm>
#include <cstring>

#include "checkpoint/capi/call.h"
#include "checkpoint/capi/read_tensor.h"
#include "checkpoint/capi/save_added.h"
#include "checkpoint/capi/save_desc.h"
#include "libcompress/capi/versioned.h"

namespace quern::checkpoint::capi {
namespace {

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
  QUERN_RETURN_IF_ERROR(read_tensor(given, tensor, report));
  const std::lock_guard lock(writer.mutex);
  QUERN_RETURN_IF_ERROR(still_open(writer, report));
  QUERN_RETURN_IF_ERROR(take_name(tensor, writer.names, report));
  writer.tensors.push_back(std::move(tensor));
  return {};
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

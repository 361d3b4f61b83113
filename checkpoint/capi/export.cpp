// Exporting a model through the C interface.
#include "checkpoint/export/export_model.h"

#include "checkpoint/capi/call.h"
#include "libcompress/capi/versioned.h"

namespace quern::checkpoint::capi {
namespace {

Status read_texts(const char* const* texts, std::uint64_t count, const char* what, Vector<String>& out,
                  Report& report) {
  if (count != 0 && texts == nullptr) return fail(report, StatusCode::invalid_argument, join({what, " is NULL"}));
  for (std::uint64_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr)
      return fail(report, StatusCode::invalid_argument, join({what, "[", decimal(i), "] is NULL"}));
    out.emplace_back(texts[i]);
  }
  return {};
}

Status read_options(const quern_checkpoint_export_desc& desc, ExportOptions& out, Report& report) {
  QUERN_RETURN_IF_ERROR(read_texts(desc.only, desc.only_count, "only", out.choice.only, report));
  QUERN_RETURN_IF_ERROR(
      read_texts(desc.strip_prefix, desc.strip_prefix_count, "strip_prefix", out.choice.strip, report));
  if (desc.dtype != 0) {
    if (desc.dtype != QUERN_F32 && desc.dtype != QUERN_F16 && desc.dtype != QUERN_BF16)
      return fail(report, StatusCode::invalid_argument, "weights are exported as F32, F16 or BF16, or as they are (0)");
    out.choice.type = static_cast<ElementType>(desc.dtype);
  }
  if (desc.shard_bytes != 0) out.shard_bytes = desc.shard_bytes;
  if (desc.replace > 1) return fail(report, StatusCode::invalid_argument, "replace must be 0 or 1");
  out.replace = desc.replace == 1;
  if (desc.progress != nullptr) {
    out.progress = [call = desc.progress, user = desc.progress_user](std::uint64_t done, std::uint64_t total) {
      return call(user, done, total) != 0;
    };
  }
  return {};
}

Status export_step(quern_checkpoint_store& store, std::uint64_t step, const char* folder,
                   const quern_checkpoint_export_desc& desc, quern_checkpoint_exported& out, Report& report) {
  ExportOptions options;
  QUERN_RETURN_IF_ERROR(read_options(desc, options, report));
  QUERN_ASSIGN_OR_RETURN(const Manifest manifest, step == QUERN_CHECKPOINT_NEWEST ? store.store->newest(report)
                                                                                  : store.store->at_step(step, report));
  RunnerHandle runner(store.execution());
  Restorer restorer(*store.store, runner.get());
  QUERN_ASSIGN_OR_RETURN(const ExportResult result,
                         export_model(store.store->files(), restorer, manifest, folder, options, report));
  out.step = manifest.name.step;
  out.files = result.files.size();
  out.tensors = result.tensors;
  out.cast = result.cast;
  out.inexact = result.inexact;
  out.tied = result.tied.size();
  out.bytes = result.bytes;
  return {};
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::Status;
using quern::checkpoint::Report;

quern_status quern_checkpoint_export(quern_checkpoint_store* store, uint64_t step, const char* folder,
                                     const quern_checkpoint_export_desc* given, quern_checkpoint_exported* exported) {
  if (store == nullptr || folder == nullptr || folder[0] == '\0')
    return ck::refuse("quern_checkpoint_export: the store or the folder's name is missing");
  quern_checkpoint_export_desc desc = QUERN_CHECKPOINT_EXPORT_DESC_INIT;
  if (given != nullptr) {
    if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  }
  if (exported != nullptr) {
    if (const Status checked = quern::capi::check_struct(exported); !checked.ok()) return ck::refuse(checked);
  }
  return ck::call(*store, [&](Report& report) -> Status {
    quern_checkpoint_exported out = QUERN_CHECKPOINT_EXPORTED_INIT;
    QUERN_RETURN_IF_ERROR(ck::export_step(*store, step, folder, desc, out, report));
    if (exported != nullptr) quern::capi::write_struct(out, exported);
    return {};
  });
}

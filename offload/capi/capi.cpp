// <quern/offload.h> over the optimizer: structs in, statuses and sentences out.
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include <quern/offload.h>

#include "libcompress/capi/caller_memory.h"
#include "libcompress/capi/error_line.h"
#include "libcompress/capi/versioned.h"
#include "offload/optimizer.h"

struct quern_offload {
  explicit quern_offload(const quern_allocator& allocator) noexcept : memory(allocator) {}

  quern::capi::CallerMemory memory;  // first: the optimizer lives in it
  std::unique_ptr<quern::offload::Optimizer> optimizer;
};

namespace quern::offload::capi {
namespace {

constexpr std::uint64_t kMostCount = UINT64_C(1) << 20;

struct Destroy {
  void operator()(quern_offload* state) const { quern::capi::destroy_handle(state); }
};

quern::capi::ErrorLine& thread_error() {
  thread_local quern::capi::ErrorLine text;
  return text;
}

quern_status keep(const storage::Report& report, const Status& status) {
  if (report.problem.empty())
    thread_error().set(status);
  else
    thread_error().set(report.problem);
  return static_cast<quern_status>(status.code());
}

/// Runs `body`, which returns a Status and keeps its sentence in the report, in that memory.
template <class Body>
quern_status call(std::pmr::memory_resource& memory, const Body& body) noexcept {
  const MemoryScope scope(&memory);
  try {
    storage::Report report;
    const Status status = body(report);
    return status.ok() ? QUERN_OK : keep(report, status);
  } catch (const std::bad_alloc&) {
    return keep({}, Status(StatusCode::out_of_memory, "out of memory"));
  } catch (...) {
    return keep({}, Status(StatusCode::internal, "an exception of the library or of a callback; please report it"));
  }
}

Status invalid(const char* what) { return Status(StatusCode::invalid_argument, what); }

quern_status refuse(const char* what) noexcept { return keep({}, invalid(what)); }

Result<OptimizerOptions> options_of(const quern_offload_desc& desc) {
  if (desc.file_form > 2)
    return Status(StatusCode::invalid_argument, "file_form must be 0 (measured), 1 (plain) or 2 (packed), not {0}",
                  static_cast<std::int64_t>(desc.file_form));
  if (desc.region_count > kMostCount || desc.folder_count > 1024)
    return invalid("more than 2^20 regions or 1024 folders");
  if ((desc.region_values == nullptr && desc.region_count != 0) || (desc.folders == nullptr && desc.folder_count != 0))
    return invalid("region_values or folders is NULL");
  OptimizerOptions options;
  if (desc.region_count != 0) options.region_values.assign(desc.region_values, desc.region_values + desc.region_count);
  options.subgroup_values = desc.subgroup_values;
  options.form = {desc.bits, desc.coarsest == 0};
  options.seed = desc.seed;
  for (std::uint64_t f = 0; f < desc.folder_count; ++f) {
    if (desc.folders[f] == nullptr || *desc.folders[f] == '\0') return invalid("the path of a folder is NULL or empty");
    FolderOptions folder;
    folder.path = desc.folders[f];
    if (desc.turn_file != nullptr) folder.turn_file = desc.turn_file;
    options.folders.push_back(std::move(folder));
  }
  options.memory_limit = desc.memory_limit;
  options.threads = desc.threads;
  options.durable = desc.durable != 0;
  options.file_form = static_cast<FileForm>(desc.file_form);
  return options;
}

Result<RegionStep> region_step(const quern_offload_region* given) {
  quern_offload_region region = QUERN_OFFLOAD_REGION_INIT;
  QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, region));
  RegionStep step;
  step.gradient.values = region.gradient;
  if (region.gradient != nullptr && region.gradient_dtype != QUERN_BF16 && region.gradient_dtype != QUERN_F32)
    return invalid("gradient_dtype must be QUERN_BF16 or QUERN_F32");
  step.gradient.type =
      region.gradient_dtype == QUERN_BF16 ? codec::tensor::ElementType::bf16 : codec::tensor::ElementType::f32;
  step.copy = region.copy;
  step.weights = region.weights;
  step.settings.rate = region.rate;
  step.settings.beta1 = region.beta1;
  step.settings.beta2 = region.beta2;
  step.settings.epsilon = region.epsilon;
  step.settings.decay = region.decay;
  step.settings.decay_kind = region.coupled_decay != 0 ? kernels::AdamDecay::coupled : kernels::AdamDecay::decoupled;
  step.settings.order = region.separate_order != 0 ? kernels::AdamOrder::separate : kernels::AdamOrder::fused;
  return step;
}

}  // namespace
}  // namespace quern::offload::capi

namespace oc = quern::offload::capi;
using quern::Status;
using quern::storage::Report;

const char* quern_offload_last_error(void) { return oc::thread_error().c_str(); }

quern_status quern_offload_open(const quern_offload_desc* given, quern_offload** state) {
  if (state == nullptr) return oc::refuse("quern_offload_open: the place for the state is NULL");
  *state = nullptr;
  quern_offload_desc desc = QUERN_OFFLOAD_DESC_INIT;
  Status read = quern::capi::read_struct(given, desc);
  if (read.ok()) read = quern::capi::check_allocator(desc.allocator);
  if (!read.ok()) return oc::keep({}, read);
  std::unique_ptr<quern_offload, oc::Destroy> made;
  try {
    made.reset(quern::capi::make_handle<quern_offload>(desc.allocator));
  } catch (const std::bad_alloc&) {
    return oc::keep({}, Status(quern::StatusCode::out_of_memory, "out of memory"));
  }
  const quern_status status = oc::call(made->memory, [&](Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(auto options, oc::options_of(desc));
    QUERN_ASSIGN_OR_RETURN(made->optimizer,
                           quern::offload::Optimizer::open(quern::storage::system_files(), std::move(options), report));
    return {};
  });
  if (status == QUERN_OK) *state = made.release();
  return status;
}

void quern_offload_destroy(quern_offload* state) { oc::Destroy()(state); }

quern_status quern_offload_inspect(const quern_offload* state, quern_offload_info* info) {
  if (state == nullptr) return oc::refuse("quern_offload_inspect: the state is NULL");
  auto& memory = const_cast<quern_offload*>(state)->memory;
  return oc::call(memory, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(quern::capi::check_struct(info));
    QUERN_RETURN_IF_ERROR(state->optimizer->check_process(report));
    const quern::offload::Usage usage = state->optimizer->usage();
    quern_offload_info out = QUERN_OFFLOAD_INFO_INIT;
    out.loaded = state->optimizer->loaded() ? 1 : 0;
    out.step_count = state->optimizer->step_count();
    out.state_bytes = usage.state_bytes;
    out.memory_bytes = usage.most_memory_bytes;
    for (const auto& folder : usage.folders) {
      out.bytes_read += folder.bytes_read;
      out.bytes_written += folder.bytes_written;
    }
    out.cached_reads = usage.cached_reads;
    out.subgroups = state->optimizer->subgroup_count();
    quern::capi::write_struct(out, info);
    return {};
  });
}

quern_status quern_offload_load(quern_offload* state, uint64_t step_count, quern_offload_source source, void* user) {
  if (state == nullptr || source == nullptr) return oc::refuse("quern_offload_load: the state or the source is NULL");
  return oc::call(state->memory, [&](Report& report) {
    const auto part = [&](const quern::offload::RegionPart& p) {
      const quern_status answer = source(user, p.region, p.begin, p.count, p.weights, p.first, p.second);
      if (answer == QUERN_OK) return Status();
      return Status(static_cast<quern::StatusCode>(answer), "the source of a load refused with status {0}", answer);
    };
    return state->optimizer->load(step_count, part, report);
  });
}

quern_status quern_offload_read(quern_offload* state, uint64_t region, uint64_t begin, uint64_t count, float* weights,
                                float* first, float* second) {
  if (state == nullptr) return oc::refuse("quern_offload_read: the state is NULL");
  return oc::call(state->memory, [&](Report& report) {
    return state->optimizer->read({static_cast<std::size_t>(region), begin, count, weights, first, second}, report);
  });
}

quern_status quern_offload_describe(quern_offload* state, void* bytes, uint64_t capacity, uint64_t* size) {
  if (state == nullptr || size == nullptr || (bytes == nullptr && capacity != 0))
    return oc::refuse("quern_offload_describe: the state, the bytes or the place for their number are NULL");
  return oc::call(state->memory, [&](Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto description, state->optimizer->describe(report));
    *size = description.size();
    if (description.size() <= capacity) std::memcpy(bytes, description.data(), description.size());
    return {};
  });
}

quern_status quern_offload_subgroup_size(quern_offload* state, uint64_t subgroup, uint64_t* bytes, uint64_t* values) {
  if (state == nullptr) return oc::refuse("quern_offload_subgroup_size: the state is NULL");
  return oc::call(state->memory, [&](Report& report) -> Status {
    const auto group = static_cast<std::size_t>(subgroup);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, state->optimizer->at_rest_bytes(group, report));
    if (bytes != nullptr) *bytes = size;
    if (values != nullptr) *values = state->optimizer->subgroup_values(group);
    return {};
  });
}

quern_status quern_offload_read_at_rest(quern_offload* state, uint64_t subgroup, uint64_t begin, uint64_t count,
                                        void* bytes) {
  if (state == nullptr || (bytes == nullptr && count != 0))
    return oc::refuse("quern_offload_read_at_rest: the state or the bytes are NULL");
  return oc::call(state->memory, [&](Report& report) {
    return state->optimizer->read_at_rest(static_cast<std::size_t>(subgroup), begin,
                                          {static_cast<std::uint8_t*>(bytes), static_cast<std::size_t>(count)}, report);
  });
}

quern_status quern_offload_restore(quern_offload* state, const void* description, uint64_t size,
                                   quern_offload_bytes_source source, void* user) {
  if (state == nullptr || description == nullptr || source == nullptr)
    return oc::refuse("quern_offload_restore: the state, the description or the source is NULL");
  return oc::call(state->memory, [&](Report& report) {
    const auto part = [&](std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out) {
      const quern_status answer = source(user, group, begin, out.size(), out.data());
      if (answer == QUERN_OK) return Status();
      return Status(static_cast<quern::StatusCode>(answer), "the source of a restore refused with status {0}", answer);
    };
    return state->optimizer->restore({static_cast<const std::uint8_t*>(description), static_cast<std::size_t>(size)},
                                     part, report);
  });
}

quern_status quern_offload_step(quern_offload* state, const quern_offload_region* regions, uint64_t count,
                                const quern_offload_step_desc* given, quern_offload_outcome* outcome) {
  if (state == nullptr || (regions == nullptr && count != 0))
    return oc::refuse("quern_offload_step: the state or the regions are NULL");
  if (count > oc::kMostCount) return oc::refuse("quern_offload_step: more than 2^20 regions");
  return oc::call(state->memory, [&](Report& report) -> Status {
    quern_offload_step_desc desc = QUERN_OFFLOAD_STEP_DESC_INIT;
    if (given != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, desc));
    if (outcome != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::check_struct(outcome));
    quern::Vector<quern::offload::RegionStep> steps;
    const auto* at = reinterpret_cast<const unsigned char*>(regions);
    for (uint64_t r = 0; r < count; ++r) {
      // Elements are as large as the program's struct, which may be older or newer.
      const auto* const region = reinterpret_cast<const quern_offload_region*>(at);
      QUERN_ASSIGN_OR_RETURN(auto step, oc::region_step(region));
      steps.push_back(step);
      at += region->struct_size;
    }
    quern::offload::StepOptions options;
    options.loss_scale = desc.loss_scale;
    options.max_norm = desc.max_norm;
    options.skip_not_finite = desc.refuse_not_finite == 0;
    QUERN_ASSIGN_OR_RETURN(const auto done, state->optimizer->step(steps, options, report));
    quern_offload_outcome out = QUERN_OFFLOAD_OUTCOME_INIT;
    out.skipped = done.skipped ? 1 : 0;
    out.norm = done.norm;
    if (outcome != nullptr) quern::capi::write_struct(out, outcome);
    return {};
  });
}

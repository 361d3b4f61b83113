// quern list: codecs of this build, devices of this machine; and the refusal of devices that are not there.
#include <thread>

#include <fmt/format.h>

#include <quern/device.h>
#include <quern/quern.h>

#include "cli/args/values.h"
#include "cli/files/memory.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/devices.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

constexpr quern_dtype kAllTypes[] = {QUERN_F16, QUERN_BF16, QUERN_F32, QUERN_F64, QUERN_I8,  QUERN_I16,
                                     QUERN_I32, QUERN_I64,  QUERN_U8,  QUERN_U16, QUERN_U32, QUERN_U64};

void check_call(quern_status status) {
  if (status != QUERN_OK) fail(Exit::resource, std::string("the list of codecs: ") + quern_last_error(nullptr));
}

std::vector<std::string> types_of(std::size_t codec, quern_bound_kind kind) {
  std::vector<std::string> out;
  for (const quern_dtype type : kAllTypes) {
    int yes = 0;
    check_call(quern_codec_supports(codec, type, kind, &yes));
    if (yes != 0) out.emplace_back(dtype_name(static_cast<DType>(type)));
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

Exit run_list_codecs(bool json) {
  for (std::size_t i = 0; i < quern_codec_count(); ++i) {
    quern_codec_info info = QUERN_CODEC_INFO_INIT;
    check_call(quern_codec_get(i, &info));
    Json line{{"name", info.name},
              {"id", info.id},
              {"version", info.version},
              {"summary", info.summary},
              {"idempotent", info.idempotent != 0}};
    std::string text = fmt::format("{:10} {}\n", info.name, info.summary);
    for (const int kind : {QUERN_BOUND_ABS, QUERN_BOUND_PWREL, QUERN_BOUND_LOSSLESS}) {
      const char* const name = bound_kind_name(static_cast<BoundKind>(kind));
      const auto types = types_of(i, kind);
      line[name] = types;
      if (!types.empty()) text += fmt::format("{:10}   {}: {}\n", "", name, joined(types));
    }
    if (info.idempotent != 0) text += fmt::format("{:10}   idempotent: with --set idempotent=1\n", "");
    if (json) {
      print_json(line);
    } else {
      print_text(text);
    }
  }
  return Exit::ok;
}

Exit run_list_devices(bool json) {
  const CudaDevices cuda = find_cuda_devices();
  const auto usable = cuda_devices();
  if (json) {
    print_json(Json{{"device", "cpu"},
                    {"threads", std::thread::hardware_concurrency()},
                    {"memory_bytes", machine_memory()},
                    {"usable", true}});
    for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
      const CudaDevice& device = cuda.devices[i];
      print_json(Json{{"device", fmt::format("cuda:{}", i)},
                      {"name", device.name},
                      {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                      {"memory_bytes", device.memory_bytes},
                      {"usable", usable.ok() && i < usable->size()}});
    }
    return Exit::ok;
  }
  std::string text = fmt::format("cpu      {} hardware threads, {}\n", std::thread::hardware_concurrency(),
                                 size_text(machine_memory()));
  for (std::size_t i = 0; i < cuda.devices.size(); ++i)
    text += fmt::format("cuda:{}   {}, compute {}.{}, {}{}\n", i, cuda.devices[i].name, cuda.devices[i].major,
                        cuda.devices[i].minor, size_text(cuda.devices[i].memory_bytes),
                        usable.ok() && i < usable->size() ? "" : " (this build cannot use it)");
  if (cuda.devices.empty()) text += "cuda     none: " + cuda.why_none + "\n";
  print_text(text);
  return Exit::ok;
}

}  // namespace quern::cli

// quern doctor: what this build and this machine can do, and what stands in the way.
#include <sys/statvfs.h>
#include <unistd.h>

#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <quern/codec.h>
#include <quern/device.h>
#include <quern/io.h>
#include <quern/library.h>

#include "cli/args/values.h"
#include "cli/files/byte_streams.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/h5/plugin.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/devices.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

struct Finding {
  std::string key;
  std::string text;
  bool good = true;
  Json value = nullptr;  ///< what --json says instead of the text, where that is more than a sentence
};

std::string cpu_features() {
#if defined(__x86_64__)
  std::string out = "x86-64:";
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) out += " sse4.2";
  if (__builtin_cpu_supports("avx2")) out += " avx2";
  if (__builtin_cpu_supports("bmi2")) out += " bmi2";
  if (__builtin_cpu_supports("fma")) out += " fma";
  if (__builtin_cpu_supports("avx512f")) out += " avx512f";
  if (__builtin_cpu_supports("avx512bw")) out += " avx512bw";
  if (__builtin_cpu_supports("avx512vbmi")) out += " avx512vbmi";
  return out;
#elif defined(__aarch64__)
  return "AArch64: neon";
#else
  return "unknown architecture";
#endif
}

std::string codec_names() {
  std::vector<const char*> names;
  for (const ArrayCodec* codec : builtin_codecs().all()) names.push_back(codec->info().name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string file_kinds() {
  std::string out = "raw npy";
  if (io::is_available(io::FileKind::hdf5)) out += " hdf5";
  if (io::is_available(io::FileKind::netcdf)) out += " netcdf";
  return out;
}

/// Which code of the kernels runs here.
Finding kernels_finding() {
  std::string chosen, missing;
  Json available = Json::array();
  for (const InstructionSet& set : instruction_sets()) {
    if (set.chosen) chosen = set.name;
    if (set.available) {
      available.push_back(set.name);
    } else {
      missing += fmt::format("{}{}", missing.empty() ? "" : " ", set.name);
    }
  }
  std::string text = fmt::format("{} is used, the best of this machine", chosen);
  if (!missing.empty()) text += fmt::format("; not for this processor: {}", missing);
  return {"kernels", text, true, {{"chosen", chosen}, {"available", available}}};
}

Finding libraries_finding() {
  Json versions = Json::object();
  for (const LinkedLibrary& library : linked_libraries()) versions[library.name] = library.version;
  for (const io::FileLibrary& library : io::file_libraries()) versions[library.name] = library.version;
  std::string text;
  for (const auto& [name, version] : versions.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version.get<std::string>());
  return {"libraries", text, true, versions};
}

Finding cuda_finding() {
  const CudaDevices cuda = find_cuda_devices();
  std::string text = cuda.devices.empty()
                         ? "no device: " + cuda.why_none
                         : fmt::format("{} device{}", cuda.devices.size(), cuda.devices.size() == 1 ? "" : "s");
  Json devices = Json::array();
  for (const CudaDevice& device : cuda.devices) {
    const std::string capability = fmt::format("{}.{}", device.major, device.minor);
    text += fmt::format(", {} ({}, compute capability {})", device.name, size_text(device.memory_bytes), capability);
    devices.push_back(
        {{"name", device.name}, {"memory_bytes", device.memory_bytes}, {"compute_capability", capability}});
  }
  const auto usable = cuda_devices();
  if (!cuda.devices.empty() && !usable.ok()) text += "; not used: " + usable.status().text();
  return {
      "cuda", text, true, {{"devices", devices}, {"why_none", cuda.devices.empty() ? Json(cuda.why_none) : Json()}}};
}

/// Whether programs over HDF5 would find quern's filter. Not finding it is a problem only where a path was set.
Finding plugin_finding() {
  const PluginState state = examine_plugin();
  const bool asked_for = !environment("HDF5_PLUGIN_PATH").empty();
  return {"hdf5_plugin",
          state.text,
          state.available || !asked_for,
          {{"available", state.available}, {"folders", state.folders}, {"text", state.text}}};
}

Finding temporary_finding() {
  const std::string folder = temporary_folder();
  try {
    SpoolFile file;
    const std::uint8_t byte[1] = {0};
    file.write(byte);
  } catch (const CliError& error) {
    return {"temporary", error.what(), false};
  }
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return {"temporary", folder + " can be written"};
  return {"temporary", fmt::format("{} can be written, {} free", folder,
                                   size_text(static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize))};
}

std::vector<Finding> examine() {
  std::vector<Finding> out;
  out.push_back({"version", QUERN_VERSION});
  out.push_back({"build", QUERN_BUILD_INFO});
  out.push_back({"codecs", codec_names()});
  out.push_back({"files", file_kinds()});
  out.push_back({"cpu", fmt::format("{} hardware threads, {}", std::thread::hardware_concurrency(), cpu_features())});
  out.push_back(kernels_finding());
  out.push_back(libraries_finding());
  out.push_back({"memory", fmt::format("{} for this process, {} the default limit", size_text(machine_memory()),
                                       size_text(memory_limit(RunArgs{})))});
  out.push_back(cuda_finding());
  out.push_back(plugin_finding());
  out.push_back(temporary_finding());
  return out;
}

}  // namespace

Exit run_doctor(bool json) {
  Json object;
  std::string text;
  Exit result = Exit::ok;
  for (const Finding& finding : examine()) {
    object[finding.key] = finding.value.is_null() ? Json(finding.text) : finding.value;
    text += fmt::format("{:12} {}{}\n", finding.key, finding.good ? "" : "PROBLEM: ", finding.text);
    if (!finding.good) result = Exit::io;
  }
  object["healthy"] = result == Exit::ok;
  if (json) {
    print_json(object);
  } else {
    print_text(text);
  }
  return result;
}

}  // namespace quern::cli

// quern doctor: what this build and this machine can do, and what stands in the way.
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <quern/codec.h>
#include <quern/io.h>

#include "cli/byte_streams.h"
#include "cli/devices.h"
#include "cli/file_names.h"
#include "cli/file_report.h"
#include "cli/memory.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace quern::cli {
namespace {

struct Finding {
  std::string key;
  std::string text;
  bool good = true;
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

Finding cuda_finding() {
  const CudaDevices cuda = find_cuda_devices();
  if (cuda.devices.empty()) return {"cuda", "no device: " + cuda.why_none};
  std::string text = fmt::format("{} device{}", cuda.devices.size(), cuda.devices.size() == 1 ? "" : "s");
  for (const CudaDevice& device : cuda.devices) text += ", " + device.name;
  return {"cuda", text + "; this build runs its codecs on the CPU"};
}

/// Where HDF5 looks for filters, as far as the environment says, and whether quern's filter is there.
Finding plugin_finding() {
  const char* path = std::getenv("HDF5_PLUGIN_PATH");
  if (path == nullptr || *path == '\0')
    return {"hdf5_plugin", "HDF5_PLUGIN_PATH is not set; HDF5 looks in its own default folder only"};
  std::string text;
  const std::string_view folders(path);
  std::size_t at = 0;
  bool found = false;
  while (at <= folders.size()) {
    const std::size_t colon = std::min(folders.find(':', at), folders.size());
    const std::string folder(folders.substr(at, colon - at));
    at = colon + 1;
    if (folder.empty()) continue;
    const bool here = access(in_folder(folder, "libh5quern.so").c_str(), R_OK) == 0;
    found = found || here;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", folder,
                        here                    ? "libh5quern.so is there"
                        : !is_directory(folder) ? "no such folder"
                                                : "no libh5quern.so");
  }
  return {"hdf5_plugin", text, found};
}

Finding temporary_finding() {
  const char* chosen = std::getenv("TMPDIR");
  const std::string folder = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
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
    object[finding.key] = finding.text;
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

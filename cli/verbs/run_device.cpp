// Opening it, and what is said of it.
#include "cli/verbs/run_device.h"

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/devices.h"

namespace quern::cli {

std::unique_ptr<Device> open_device(const RunArgs& run) {
  if (run.device == DeviceKind::cpu) return nullptr;
  auto device = open_cuda_device(static_cast<int>(run.device_index));
  if (device.ok()) return std::move(device).value();
  if (run.device == DeviceKind::automatic) return nullptr;
  const CudaDevices found = find_cuda_devices();
  const std::string why = found.devices.empty() ? found.why_none : device.status().text();
  fail(Exit::resource, fmt::format("--device cuda:{}: CUDA cannot be used: {}; --device auto takes the CPU then",
                                   run.device_index, why));
}

std::string device_name(const Device* device, bool used) {
  return device == nullptr || !used ? "cpu" : fmt::format("cuda:{}", device->info().ordinal);
}

void note_unused_device(const RunArgs& run, const Device* device, bool used, const std::string& name,
                        const std::string& codec, bool chosen) {
  const char* hint = chosen ? " (--goal speed keeps to codecs that have)" : "";
  if (run.device == DeviceKind::cuda && device != nullptr && !used && !run.quiet)
    print_note(
        fmt::format("{}: codec {} has no CUDA kernels for this array; the CPU did the work{}", name, codec, hint));
}

}  // namespace quern::cli

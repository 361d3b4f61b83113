// The device that --device names.
#pragma once

#include <memory>
#include <string>

#include <quern/device.h>

#include "cli/args/args.h"

namespace quern::cli {

/// Null for the CPU, and for auto where there is no device. Throws CliError (resource) when the run insists on a device
/// that this build or machine does not have.
std::unique_ptr<Device> open_device(const RunArgs& run);

/// "cpu" or "cuda:N".
std::string device_name(const Device* device, bool used);

/// Says on stderr that the CPU did the work although the run insists on a device. `chosen`: by its size alone, from
/// several codecs.
void note_unused_device(const RunArgs& run, const Device* device, bool used, const std::string& name,
                        const std::string& codec, bool chosen = false);

}  // namespace quern::cli

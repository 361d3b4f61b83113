// h5repack as a child process: it knows groups, attributes, links, references and named types.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/args.h"

namespace quern::cli {

/// Runs "h5repack OPTIONS INPUT OUTPUT" with the plugin on its path. OUTPUT appears complete or not at all, and only
/// after `inspect` looked at what h5repack wrote and threw nothing. Throws CliError: h5repack is not installed or
/// failed.
void run_h5repack(const std::vector<std::string>& options, const std::string& input, const OutputArgs& output,
                  const std::function<void(const std::string& path)>& inspect);

/// h5repack's -f and -l part names from settings and each other by these.
bool h5repack_can_name(const std::string& dataset);

}  // namespace quern::cli

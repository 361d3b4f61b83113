// Models into streams that are there, and out of them: the streams' chunks stay as they are.
#pragma once

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"

namespace quern::cli {

/// quern model embed STREAM -o OUT: all streams of a file, each with its model inside. Throws CliError.
Exit embed_models(const ModelArgs& args);
/// quern model strip STREAM -o OUT --model-store DIR: the models go into the folder, under their ids, before OUT is
/// there. Throws CliError.
Exit take_out_models(const ModelArgs& args);

}  // namespace quern::cli

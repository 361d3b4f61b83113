// The verbs: each does what its arguments say and returns the exit code of the whole run, or throws CliError.
#pragma once

#include <functional>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"

namespace quern::cli {

Exit run_compress(const CompressArgs& args);
Exit run_decompress(const DecompressArgs& args);
Exit run_info(const InfoArgs& args);
Exit run_verify(const VerifyArgs& args);
/// Of a file whose first stream is records.
Exit run_verify_records(const VerifyArgs& args);
Exit run_compare(const CompareArgs& args);
Exit run_bench(const BenchArgs& args);
Exit run_estimate(const EstimateArgs& args);
Exit run_model(const ModelArgs& args);
/// Runs quern-train, which stands beside the command where LibTorch was found.
Exit run_train(const TrainArgs& args);
Exit run_h5(const H5Args& args);
Exit run_checkpoint(const CheckpointArgs& args);
Exit run_lidar(const LidarArgs& args);
Exit run_offload_bench(const OffloadArgs& args);
Exit run_list_codecs(bool json);
Exit run_list_devices(bool json);
Exit run_doctor(bool json);

/// Does one file's work; an error is printed and remembered, so that the other files still get their turn.
void attempt(Exit& result, const std::function<void()>& work);

}  // namespace quern::cli

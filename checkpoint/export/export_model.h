// A checkpoint's weights as a model in a folder: model.safetensors, or shards and model.safetensors.index.json, as
// Hugging Face's from_pretrained() reads them. What else belongs there (config.json, tokenizer) is no part of
// checkpoints.
#pragma once

#include <quern/execution.h>

#include "checkpoint/export/choose.h"
#include "checkpoint/restore/restore.h"

namespace quern::checkpoint {

inline constexpr std::uint64_t kExportShardBytes = 5'000'000'000;

struct ExportOptions {
  ExportChoice choice;
  std::uint64_t shard_bytes = kExportShardBytes;  ///< most bytes of tensors in a file; one that is larger has its own
  bool replace = false;                           ///< a model in the folder may be replaced
  ProgressCallback progress;                      ///< in bytes that are written
};

struct ExportResult {
  Vector<String> files;
  std::uint64_t tensors = 0;
  std::uint64_t cast = 0;                  ///< tensors written in another type
  std::uint64_t inexact = 0;               ///< tensors that were saved with loss, within their bound
  std::uint64_t bytes = 0;                 ///< of all files
  Vector<std::pair<String, String>> tied;  ///< names left out as Hugging Face does, and the name their tensor has
};

/// Writes the tensors chosen, each checked against its hash when it is read. One tensor is held at a time, twice where
/// it is cast or a view. Files appear when all are written; after a failure the folder is as it was. The metadata of a
/// file are {"format": "pt"} and, of tied tensors in it, each second name with the first as its text.
Result<ExportResult> export_model(FileSystem& files, Restorer& restorer, const Manifest& manifest,
                                  std::string_view folder, const ExportOptions& options, Report& report);

}  // namespace quern::checkpoint

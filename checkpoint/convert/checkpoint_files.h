// safetensors files into the store and out of it, byte for byte; and between one file and many.
#pragma once

#include <quern/execution.h>

#include "checkpoint/policy/policy.h"
#include "checkpoint/policy/replay_rule.h"
#include "checkpoint/save/save.h"

namespace quern::checkpoint {

struct FileSaveOptions {
  SaveOptions save;
  Preset preset = Preset::exact;
  Policy policy;                     ///< its rules come before the preset's
  RoleRules roles;                   ///< come before the policy's
  std::optional<ReplayRule> replay;  ///< store a step as its gradient where the rule leads from the base to it
  std::uint64_t group_bytes = std::uint64_t{1} << 26;  ///< of tensors that are coded side by side
  bool dry_run = false;                                ///< code everything, say what it would take, and write nothing
  ProgressCallback progress;                           ///< in bytes of tensors
};

struct TensorSummary {
  String name;
  String role;
  SavedTensor saved;
  std::uint64_t raw_bytes = 0;
  std::optional<LossyRequest> lossy;  ///< what the policy asked for
};

struct FileSaveResult {
  SaveResult save;
  std::uint64_t input_bytes = 0;
  Vector<TensorSummary> tensors;
};

/// Saves safetensors files, or the files that an index (*.index.json) names, as one checkpoint.
Result<FileSaveResult> save_files(const Store& store, const Vector<String>& paths, const FileSaveOptions& options,
                                  TaskRunner& runner, Report& report);

/// Takes the bytes of one file, in order.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual Status write(std::span<const std::uint8_t> bytes, Report& report) = 0;
};

/// What tensor `index` of the checkpoint, whole or a piece of `first`, has of the box, to its place in `out`, the
/// values of the box. A piece that lies in the box whole is checked against its hash.
Status read_piece(Restorer& restorer, const Manifest& manifest, std::size_t index, const ManifestTensor& first,
                  const Box& box, std::span<std::uint8_t> out, Report& report);

/// Writes file number `file` of the checkpoint as it was saved.
Status load_file(Restorer& restorer, const Manifest& manifest, std::size_t file, FileSink& sink,
                 const ProgressCallback& progress, Report& report);
/// Writes one safetensors file of all tensors that a glob names (all when there are none); pieces are joined. Of each
/// tensor the box that `slice` reads against its shape (Box::parse), all if it is empty.
Status load_tensors(Restorer& restorer, const Manifest& manifest, const Vector<String>& globs, std::string_view slice,
                    FileSink& sink, const ProgressCallback& progress, Report& report);

}  // namespace quern::checkpoint

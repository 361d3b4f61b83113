// Training of the networks that look at patches, by LibTorch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "surrogate/patches.h"
#include "surrogate/train/network.h"
#include "surrogate/train/runs_table.h"

namespace quern::surrogate {

/// Patches of arrays, by the SHA-256 of their bytes.
using ArrayPatches = std::map<std::string, Patches>;

/// Reads the arrays of runs from files. On failure `problem` says in one line what cannot be read, or which array of the
/// runs is in none of the files.
bool read_patches(const std::vector<std::string>& files, const RunsTable& table, ArrayPatches& patches,
                  std::string& problem);

/// Trains both networks on the runs of all codecs together: a head that sees their outputs beside the other inputs is
/// to say ratio and PSNR. The head is thrown away. Rows of Part::train alone count.
PatchNetworks train_patch_networks(const std::vector<const Row*>& rows, const ArrayPatches& patches,
                                   const TrainingOptions& options);

/// Puts deep features behind the inputs of each row.
void add_deep_features(const PatchNetworks& networks, const ArrayPatches& patches, std::vector<Row>& rows);

}  // namespace quern::surrogate

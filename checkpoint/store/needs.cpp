// From tensor to tensor through aliases, bases, companions and moments.
#include "checkpoint/store/needs.h"

#include <algorithm>

namespace quern::checkpoint {

const Needed* Needs::find(const CheckpointName& name) const {
  const auto found =
      std::find_if(checkpoints_.begin(), checkpoints_.end(), [&](const Needed& n) { return n.name == name; });
  return found == checkpoints_.end() ? nullptr : &*found;
}

std::size_t Needs::enter(const CheckpointName& name, const Manifest* manifest) {
  if (const Needed* const known = find(name)) return static_cast<std::size_t>(known - checkpoints_.data());
  Needed made;
  made.name = name;
  made.manifest = manifest;
  if (manifest != nullptr) {
    made.tensors.resize(manifest->tensors.size());
    made.parts.resize(manifest->parts.size());
  }
  checkpoints_.push_back(std::move(made));
  return checkpoints_.size() - 1;
}

Status Needs::follow(std::size_t from, const TensorPlace& place, Report& report) {
  const Manifest& manifest = *checkpoints_[from].manifest;
  std::size_t target = from;
  if (place.checkpoint != 0) {
    const CheckpointName& name = manifest.references[place.checkpoint - 1];
    if (const Needed* const known = find(name)) {
      target = static_cast<std::size_t>(known - checkpoints_.data());
      if (known->manifest == nullptr) return {};  // said when it was met first
    } else {
      const auto read = source_.find(name, report);
      target = enter(name, read.ok() ? *read : nullptr);
      if (!read.ok()) return read.status();
    }
  }
  Needed& there = checkpoints_[target];
  if (place.tensor >= there.tensors.size())
    return fail(report, StatusCode::corrupt,
                join({"step ", decimal(there.name.step), " has no tensor of number ", decimal(place.tensor),
                      ", which step ", decimal(manifest.name.step), " refers to"}));
  if (there.tensors[place.tensor] != 0) return {};
  there.tensors[place.tensor] = 1;
  open_.push_back({target, place.tensor});
  return {};
}

Status Needs::take(const Place& place, Report& report) {
  Status first;
  const auto follow_all = [&](const TensorPlace& next) {
    Report own;
    const Status status = follow(place.checkpoint, next, own);
    if (status.ok() || !first.ok()) return;
    first = status;
    report.problem = own.problem;
  };
  const ManifestTensor& tensor = checkpoints_[place.checkpoint].manifest->tensors[place.tensor];
  if (tensor.alias) {
    follow_all(*tensor.alias);
    return first;
  }
  checkpoints_[place.checkpoint].parts[tensor.part] = 1;
  if (tensor.base) follow_all(*tensor.base);
  if (tensor.companion) follow_all({0, *tensor.companion});
  if (tensor.moments)
    for (const std::uint32_t number : *tensor.moments) follow_all({0, number});
  if (tensor.base_moments)
    for (const TensorPlace& moment : *tensor.base_moments) follow_all(moment);
  return first;
}

Status Needs::add(const Manifest& root, Report& report) {
  const std::size_t own = enter(root.name, &root);
  checkpoints_[own].manifest = &root;
  checkpoints_[own].tensors.resize(root.tensors.size());
  checkpoints_[own].parts.resize(root.parts.size());
  for (const ManifestBlob& blob : root.blobs) checkpoints_[own].parts[blob.part] = 1;
  for (std::uint32_t i = 0; i < root.tensors.size(); ++i) {
    if (checkpoints_[own].tensors[i] != 0) continue;
    checkpoints_[own].tensors[i] = 1;
    open_.push_back({own, i});
  }
  Status first;
  while (!open_.empty()) {
    const Place place = open_.back();
    open_.pop_back();
    Report own_report;
    const Status status = take(place, own_report);
    if (status.ok() || !first.ok()) continue;
    first = status;
    report.problem = own_report.problem;
  }
  return first;
}

}  // namespace quern::checkpoint

// Which tensors of which checkpoints must be there before others can be decoded: followed tensor by tensor, so that a
// checkpoint needs of another only what one of its own tensors needs.
#pragma once

#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {

/// Where manifests come from while needs are followed.
class ManifestSource {
 public:
  virtual ~ManifestSource() = default;
  /// Fails, with the reason in `report`, when it cannot be read; the pointer stays good while needs are followed.
  virtual Result<const Manifest*> find(const CheckpointName& name, Report& report) = 0;
};

/// What is needed of one checkpoint.
struct Needed {
  CheckpointName name;
  const Manifest* manifest = nullptr;  ///< null: it cannot be read
  Vector<std::uint8_t> tensors;        ///< 1: needed; as many as the manifest has
  Vector<std::uint8_t> parts;
};

/// Grows with every checkpoint that is added. Time and memory: the tensors met, each once.
class Needs {
 public:
  explicit Needs(ManifestSource& source) : source_(source) {}

  /// Adds all tensors and blobs of a checkpoint, and what they need. The manifest outlives the needs. Goes on where a
  /// manifest is missing or a place is impossible, and returns the first such failure.
  Status add(const Manifest& root, Report& report);

  /// In the order they were met.
  const Vector<Needed>& checkpoints() const { return checkpoints_; }
  const Needed* find(const CheckpointName& name) const;

 private:
  struct Place {
    std::size_t checkpoint;  ///< in checkpoints_
    std::uint32_t tensor;
  };
  std::size_t enter(const CheckpointName& name, const Manifest* manifest);
  Status take(const Place& place, Report& report);
  Status follow(std::size_t from, const TensorPlace& place, Report& report);

  ManifestSource& source_;
  Vector<Needed> checkpoints_;
  Vector<Place> open_;  ///< to be followed
};

}  // namespace quern::checkpoint

// Models that a test has in memory.
#pragma once

#include <map>

#include <quern/models.h>

#include "models/block_model.h"

namespace quern::testing {

class MemoryModels final : public ModelSource {
 public:
  /// The model's id, as settings take it.
  String add(const models::BlockModel& model) {
    const ModelId id = models::model_id(model);
    models_[id] = models::write_block_model(model);
    String text;
    for (const std::uint8_t byte : id)
      for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
    return text;
  }
  void replace(const ModelId& id, Vector<std::uint8_t> bytes) { models_[id] = std::move(bytes); }

  Result<Vector<std::uint8_t>> find(const ModelId& id) const override {
    const auto found = models_.find(id);
    if (found == models_.end()) return Status(StatusCode::missing_model, "the test has no such model");
    return found->second;
  }

 private:
  std::map<ModelId, Vector<std::uint8_t>> models_;
};

}  // namespace quern::testing

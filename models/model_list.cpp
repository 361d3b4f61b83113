// Models that a program gives as bytes.
#include <algorithm>
#include <utility>

#include <quern/models.h>

#include "models/model_file.h"

namespace quern {

Result<ModelId> ModelList::add(std::span<const std::uint8_t> file) {
  QUERN_ASSIGN_OR_RETURN(const models::KnownModel model, models::read_known_model(file));
  Entry entry{model.id, model.can_encode, Vector<std::uint8_t>(file.begin(), file.end())};
  const ModelId id = entry.id;
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.id == id; });
  if (same == entries_.end())
    entries_.push_back(std::move(entry));
  else if (!same->can_encode)
    *same = std::move(entry);
  return id;
}

Result<Vector<std::uint8_t>> ModelList::find(const ModelId& id) const {
  for (const Entry& entry : entries_)
    if (entry.id == id) return Vector<std::uint8_t>(entry.file.begin(), entry.file.end());
  return Status(StatusCode::missing_model, "the stream needs a model that was not given");
}

}  // namespace quern

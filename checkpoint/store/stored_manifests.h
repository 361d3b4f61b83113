// Manifests of a store for who follows needs, each read once.
#pragma once

#include <algorithm>
#include <memory>

#include "checkpoint/store/needs.h"
#include "checkpoint/store/store.h"

namespace quern::checkpoint {

class StoredManifests final : public ManifestSource {
 public:
  explicit StoredManifests(const Store& store) : store_(store) {}
  Result<const Manifest*> find(const CheckpointName& name, Report& report) override {
    const auto known =
        std::find_if(read_.begin(), read_.end(), [&](const auto& held) { return held->manifest.name == name; });
    if (known != read_.end()) return &(*known)->manifest;
    QUERN_ASSIGN_OR_RETURN(Manifest manifest, store_.read(name, report));
    read_.push_back(std::unique_ptr<Held>(new Held));
    read_.back()->manifest = std::move(manifest);
    return &read_.back()->manifest;
  }

 private:
  struct Held : public Allocated {
    Manifest manifest;
  };
  const Store& store_;
  Vector<std::unique_ptr<Held>> read_;
};

}  // namespace quern::checkpoint

// Models of learned codecs, by their ids: where a program keeps them, and codecs that look there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// First 16 bytes of a SHA-256 of what a decoder needs of a model.
using ModelId = std::array<std::uint8_t, 16>;

/// Where models are found. Called from any thread, also from several at once.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  /// Bytes of a model file (docs/format-model.md) of that id; `missing_model` where there is none. What it returns is
  /// checked: another model is refused.
  virtual Result<Vector<std::uint8_t>> find(const ModelId& id) const = 0;
};

/// The codecs of builtin_codecs(), whose learned ones find models that are not embedded in a stream, and those that
/// settings name, in a source. Does not own the source, which outlives it.
class CodecsWithModels : public Allocated {
 public:
  explicit CodecsWithModels(const ModelSource& models);
  ~CodecsWithModels();
  CodecsWithModels(const CodecsWithModels&) = delete;
  CodecsWithModels& operator=(const CodecsWithModels&) = delete;
  const Registry& registry() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quern

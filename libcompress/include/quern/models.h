// Models of learned codecs, by their ids: where a program keeps them, and codecs that look there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

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

/// Models in memory. Models are added before, not while, others look for them.
class ModelList final : public ModelSource {
 public:
  /// Copies a model file into the current memory. Its id, also where the list has that model already: then the file that
  /// can encode is kept. Fails as reading of model files does: bad_magic, unsupported_version, unsupported (a model of
  /// another kind), checksum_mismatch, truncated, corrupt. O(bytes).
  Result<ModelId> add(std::span<const std::uint8_t> file);
  Result<Vector<std::uint8_t>> find(const ModelId& id) const override;

 private:
  struct Entry {
    ModelId id;
    bool can_encode = false;
    Vector<std::uint8_t> file;
  };
  Vector<Entry> entries_;
};

/// Writes a stream of a learned codec anew with what decoding takes of its model inside: nobody needs the model's file
/// then. `stream`: one whole stream; one that holds its model already is copied. The chunks keep their bytes; every
/// segment is checked. Fails with missing_model, with unsupported where the stream uses no model or the model has more
/// than 512 KiB, and as decoders do where the stream is damaged. O(bytes).
Status embed_model(std::span<const std::uint8_t> stream, const ModelSource& models, ByteSink& out);
/// The other way round: writes the stream without the model, by whose id readers will look for it, and returns the
/// model's file, which must be kept. A stream that does not hold its model fails with missing_model.
Result<Vector<std::uint8_t>> take_out_model(std::span<const std::uint8_t> stream, ByteSink& out);

/// What a stream says of the model that its chunks may need.
struct StreamModel {
  bool embedded = false;  ///< the stream holds what decoding takes of it
  ModelId id{};
  std::uint64_t bytes = 0;  ///< of the stream that the model takes; 0 where it is outside
};
/// Of the stream at the source's position, from its header alone; none where it uses no model. Fails as decoders do
/// where the header is damaged, or the model in it. O(header).
Result<std::optional<StreamModel>> inspect_model(ByteSource& source);

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

// A manifest: everything a checkpoint is but the coded values. Written last, never changed, and only whole or absent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/storage.h"
#include "checkpoint/store/part_format.h"
#include "codecs/tensor/tensor.h"

namespace quern::checkpoint {

using codec::tensor::Mode;

inline constexpr std::uint16_t kManifestMajor = 0;
inline constexpr std::uint16_t kManifestMinor = 3;
inline constexpr std::uint64_t kMaxManifestText = 100'000'000;
inline constexpr std::uint64_t kMaxManifestFile = kMaxManifestText + 4096;  ///< bytes

/// A checkpoint of the store. The id alone tells two of them apart.
struct CheckpointName {
  std::uint64_t step = 0;
  String id;
  /// The order in which checkpoints of a store were published: 1, 2, ... 0: by a version that had no order.
  std::uint64_t generation = 0;

  friend bool operator==(const CheckpointName& a, const CheckpointName& b) { return a.step == b.step && a.id == b.id; }
};

/// Also in the same place of the order.
inline bool is_exactly(const CheckpointName& a, const CheckpointName& b) {
  return a == b && a.generation == b.generation;
}

/// A name and a text that the caller keeps with a checkpoint: metrics, descriptions.
struct Tag {
  String name;  ///< 1 to 255 bytes, once in a checkpoint
  String text;  ///< up to 65535 bytes
};

/// A tensor of this checkpoint (checkpoint 0) or of references[checkpoint - 1], by its place in that manifest.
struct TensorPlace {
  std::uint32_t checkpoint = 0;
  std::uint32_t tensor = 0;
};

struct ManifestTensor {
  String name;
  TensorDescription what;  ///< of the values stored; of the piece where it is one
  bool is_piece = false;
  Shape whole;                           ///< is_piece: the tensor's shape
  Box box;                               ///< is_piece: the part of it that is here
  std::optional<DeclaredType> declared;  ///< what the values are called, where that is not `what`; no piece
  String role;                           ///< "param", "exp_avg", ... or empty
  std::optional<TensorPlace> alias;  ///< the same bytes are stored there; what follows is then unused but for content
  Mode mode = Mode::raw;
  double bound = 0;                        ///< of modes that lose something; ebq: absolute
  std::optional<Mode> bound_mode;          ///< the mode that the bound belongs to, where that is not `mode`
  std::optional<TensorPlace> base;         ///< in another checkpoint
  std::optional<std::uint32_t> companion;  ///< in this checkpoint, not an alias of this tensor
  /// First and second moment of this weight, in this checkpoint: ebq, predicted from where they point; replay, restored
  /// together with it.
  std::optional<std::array<std::uint32_t, 2>> moments;
  std::optional<std::array<TensorPlace, 2>> base_moments;  ///< those of the base, in other checkpoints
  std::uint32_t depth = 0;                                 ///< bases one behind the other, itself left out
  std::uint64_t stored_bytes = 0;                          ///< in the part, record headers included
  std::uint64_t key_bytes = 0;                             ///< stored_bytes of the tensor the chain ends at
  std::uint64_t chain_bytes = 0;  ///< stored_bytes of all others of the chain, this one included
  std::uint32_t part = 0;
  std::uint32_t record = 0;            ///< of the tensor's first chunk; the others follow it
  ContentHash content;                 ///< of the raw bytes
  std::optional<ContentHash> decoded;  ///< of what comes back, where it may differ

  std::uint32_t records() const {
    const std::uint64_t chunks = what.chunks();
    return alias ? 0 : static_cast<std::uint32_t>(chunks == 0 ? 1 : chunks);
  }
  const ContentHash& restored() const { return decoded ? *decoded : content; }
};

/// A file that was saved, so that it can be written again byte for byte.
struct ManifestFile {
  enum class Kind : std::uint8_t { safetensors, shard_index };
  Kind kind = Kind::safetensors;
  String name;  ///< without a folder
  HeaderForm form = HeaderForm::verbatim;
  std::uint64_t padding = 0;
  bool has_metadata = false;
  Metadata metadata;
  String text;                ///< shard_index: the file; HeaderForm::verbatim: the header
  std::uint32_t tensors = 0;  ///< how many of the manifest's tensors, in order, are the file's
};

struct ManifestBlob {
  String name;
  std::uint64_t bytes = 0;
  std::uint32_t part = 0;
  std::uint32_t record = 0;
  ContentHash content;

  std::uint32_t records() const {
    const std::uint64_t pieces = (bytes + codec::tensor::kChunkBytes - 1) / codec::tensor::kChunkBytes;
    return static_cast<std::uint32_t>(pieces == 0 ? 1 : pieces);
  }
};

/// Reed-Solomon columns behind each group of `data` parts.
struct ParityInfo {
  std::uint32_t data = 0;    ///< parts in a group, 0: no parity
  std::uint32_t parity = 0;  ///< parity files of a group
  Vector<PartInfo> files;    ///< index_checksum is that of the file's table
};

struct Manifest {
  CheckpointName name;  ///< its generation in a manifest that waits to be joined: the newest of the store at that time
  String library;       ///< version that wrote it
  std::uint32_t writer = 0;  ///< of a manifest that waits to be joined with others
  std::uint32_t writers = 1;
  std::optional<CheckpointName> base;
  Vector<Tag> tags;
  Vector<CheckpointName> references;
  Vector<PartInfo> parts;
  ParityInfo parity;
  Vector<ManifestFile> files;
  Vector<ManifestTensor> tensors;
  Vector<ManifestBlob> blobs;

  std::uint64_t raw_bytes() const;
  /// Of parts and parity, without the manifest.
  std::uint64_t stored_bytes() const;
};

/// The file's bytes: magic, versions, lengths, packed text, seal. May throw std::bad_alloc.
Result<Vector<std::uint8_t>> write_manifest(const Manifest& manifest, Report& report);

/// Reads what write_manifest wrote. Hostile bytes give a status: every number that later code relies on is checked
/// against the rest of the manifest. The sentence of a failure does not name the file.
Result<Manifest> read_manifest(std::span<const std::uint8_t> bytes, Report& report);

// The canonical text inside.
String manifest_text(const Manifest& manifest);
Result<Manifest> parse_manifest_text(std::string_view text, Report& report);

/// Letters, digits, '-' and '_', 1 to 64 of them.
bool is_plain_id(std::string_view id);
/// A file name without a folder.
bool is_plain_file_name(std::string_view name);

}  // namespace quern::checkpoint

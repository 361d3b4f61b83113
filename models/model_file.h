// What model files of all kinds that codecs take have in common (docs/format-model.md, chapter 1): magic, version and
// kind, the version of the networks, a record for people, and a SHA-256 that seals the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::models {

inline constexpr std::uint16_t kModelFileVersion = 3;  ///< versions 1 and 2 hold models of quality alone
inline constexpr std::uint16_t kQualityModelKind = 1;  ///< no codec takes it
inline constexpr std::uint16_t kBlockModelKind = 2;
inline constexpr std::uint16_t kLevelModelKind = 3;
inline constexpr std::size_t kMostModelBytes = std::size_t{1} << 24;
/// Encoders, and what puts models into streams, embed none that take more bytes than this to decode. Readers take what a
/// header has room for, which bounds it.
inline constexpr std::size_t kMostEmbeddedBytes = std::size_t{1} << 19;

/// Kind of a model file of any kind; 0 where the bytes are none. Reads the first fields alone.
std::uint16_t model_kind(std::span<const std::uint8_t> bytes);

/// Writes what stands before a model of that kind. May throw std::bad_alloc.
void begin_model_file(std::uint16_t kind, Writer& out);
void write_record(const std::string& record, Writer& out);
/// Appends the SHA-256 of all bytes.
void seal_model_file(Vector<std::uint8_t>& bytes);

/// The fields behind those of begin_model_file, up to the seal, of a whole file of that kind. The bytes may be anything:
/// fails with bad_magic, unsupported_version (newer, or networks of another version), unsupported (another kind),
/// checksum_mismatch, truncated or corrupt.
Result<Reader> open_model_file(std::span<const std::uint8_t> bytes, std::uint16_t kind);
Result<std::string> read_record(Reader& in);

/// The first 16 bytes of a file's SHA-256.
ModelId id_of_file(std::span<const std::uint8_t> bytes);

/// What a file says of a model of a kind that codecs take.
struct KnownModel {
  std::uint16_t kind = 0;
  ModelId id{};                   ///< of what decodes
  bool can_encode = false;        ///< a model that only decodes is of no use to encoders
  Vector<std::uint8_t> decoding;  ///< the file of what decodes, which streams embed
};
/// Reads the whole file, whatever it is; fails as open_model_file does, with unsupported for other kinds. O(bytes).
Result<KnownModel> read_known_model(std::span<const std::uint8_t> bytes);

}  // namespace quern::models

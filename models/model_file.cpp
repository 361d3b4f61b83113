// The frame of model files.
#include "models/model_file.h"

#include <algorithm>
#include <array>

#include "kernels/network/network.h"
#include "models/block_model.h"
#include "models/level_model.h"
#include "models/sha256.h"

namespace quern::models {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic{0x8B, 'Q', 'M', 'D', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kSeal = 32;
constexpr std::size_t kHead = kMagic.size() + 4;

bool is_magic(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

Status another_kind(std::uint16_t kind, std::uint16_t wanted) {
  if (kind == kQualityModelKind)
    return Status(StatusCode::unsupported, "this is a model of estimates; use it with quern estimate --model");
  return wanted == kLevelModelKind
             ? Status(StatusCode::unsupported, "the model is of kind {0}; codec stencil takes kind {1}", kind, wanted)
             : Status(StatusCode::unsupported, "the model is of kind {0}; codec autoencoder takes kind {1}", kind,
                      wanted);
}

}  // namespace

std::uint16_t model_kind(std::span<const std::uint8_t> bytes) {
  if (!is_magic(bytes) || bytes.size() < kHead) return 0;
  return static_cast<std::uint16_t>(bytes[kMagic.size() + 2] | bytes[kMagic.size() + 3] << 8);
}

void begin_model_file(std::uint16_t kind, Writer& out) {
  out.bytes(kMagic);
  out.u16(kModelFileVersion);
  out.u16(kind);
  out.u16(kernels::kNetworkSemantics);
}

void write_record(const std::string& record, Writer& out) {
  out.varint(record.size());
  out.bytes({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
}

void seal_model_file(Vector<std::uint8_t>& bytes) {
  const Digest seal = sha256(bytes);
  bytes.insert(bytes.end(), seal.begin(), seal.end());
}

Result<Reader> open_model_file(std::span<const std::uint8_t> bytes, std::uint16_t kind) {
  if (!is_magic(bytes)) return Status(StatusCode::bad_magic, "this is no model of quern");
  if (bytes.size() > kMostModelBytes)
    return Status(StatusCode::corrupt, "a model of {0} bytes is larger than any",
                  static_cast<std::int64_t>(bytes.size()));
  if (bytes.size() < kHead + kSeal) return Status(StatusCode::truncated, "the model is cut");
  Reader in(bytes.first(bytes.size() - kSeal));
  QUERN_RETURN_IF_ERROR(in.skip(kMagic.size()));
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t version, in.u16());
  if (version > kModelFileVersion)
    return Status(StatusCode::unsupported_version, "the model is of version {0}; this quern reads up to {1}", version,
                  kModelFileVersion);
  const Digest seal = sha256(bytes.first(bytes.size() - kSeal));
  if (!std::equal(seal.begin(), seal.end(), bytes.end() - kSeal))
    return Status(StatusCode::checksum_mismatch, "the model is cut or changed: its SHA-256 does not match");
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t found, in.u16());
  if (found != kind) return another_kind(found, kind);
  if (version < kModelFileVersion)
    return Status(StatusCode::corrupt, "a model of kind {0} is of version {1}, which has none", found, version);
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t semantics, in.u16());
  if (semantics != kernels::kNetworkSemantics)
    return Status(StatusCode::unsupported_version,
                  "the model's networks are of version {0}; this quern has version {1}", semantics,
                  kernels::kNetworkSemantics);
  return in;
}

Result<std::string> read_record(Reader& in) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, in.varint(kMostModelBytes));
  QUERN_ASSIGN_OR_RETURN(const auto record, in.bytes(size));
  return std::string(record.begin(), record.end());
}

ModelId id_of_file(std::span<const std::uint8_t> bytes) {
  const Digest digest = sha256(bytes);
  ModelId id{};
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

Result<KnownModel> read_known_model(std::span<const std::uint8_t> bytes) {
  KnownModel known;
  known.kind = model_kind(bytes);
  if (known.kind == kLevelModelKind) {
    QUERN_ASSIGN_OR_RETURN(const LevelModel model, read_level_model(bytes));
    known.decoding = write_level_model(without_record(model));
    known.can_encode = true;
  } else {
    QUERN_ASSIGN_OR_RETURN(const BlockModel model, read_block_model(bytes));
    known.decoding = write_block_model(decoding_half(model));
    known.can_encode = model.can_encode();
  }
  known.id = id_of_file(known.decoding);
  return known;
}

}  // namespace quern::models

// The stored form of a model: fields in a fixed order, sealed by a SHA-256.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/common/bits.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "models/network_bytes.h"
#include "models/sha256.h"
#include "surrogate/model.h"

namespace quern::surrogate {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic{0x8B, 'Q', 'M', 'D', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t kQuality = 1;
constexpr std::size_t kSeal = 32;
constexpr std::uint64_t kMostInputs = 4096;
constexpr std::uint64_t kMostCodecs = 64;
constexpr std::uint16_t kPowerStepsOrigin = 2;
constexpr std::uint16_t kHalfWeights = 1, kHasDeep = 2, kDeepIsUsual = 4;  // flags of version 3

void put_text(Writer& out, const std::string& text) {
  out.varint(text.size());
  out.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}
void put_float(Writer& out, float value) { out.u32(std::bit_cast<std::uint32_t>(value)); }
void put_floats(Writer& out, std::span<const float> values) {
  for (const float value : values) put_float(out, value);
}

Result<std::string> take_text(Reader& in, std::uint64_t limit) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, in.varint(limit));
  QUERN_ASSIGN_OR_RETURN(const auto bytes, in.bytes(size));
  return std::string(bytes.begin(), bytes.end());
}
Result<float> take_float(Reader& in) {
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t bits, in.u32());
  const auto value = std::bit_cast<float>(bits);
  if (!std::isfinite(value)) return Status(StatusCode::corrupt, "a weight of the model is no number");
  return value;
}
Status take_floats(Reader& in, std::uint64_t count, std::vector<float>& out) {
  if (count > in.remaining() / 4) return Status(StatusCode::truncated, "the model ends inside its weights");
  out.resize(count);
  for (float& value : out) {
    QUERN_ASSIGN_OR_RETURN(value, take_float(in));
  }
  return {};
}

/// What the version and the flags say of how a codec is stored.
struct Form {
  std::uint16_t version = 1;
  bool half_weights = false;
};

void put_layer(Writer& out, const Layer& layer, const Form& form) {
  out.u32(layer.rows);
  out.u32(layer.columns);
  if (form.half_weights) {
    for (const float weight : layer.weights) out.u16(static_cast<std::uint16_t>(kernels::float_to_half(weight)));
  } else {
    put_floats(out, layer.weights);
  }
  put_floats(out, layer.bias);
}

/// The oldest version that can hold the model.
std::uint16_t version_of(const Model& model) {
  if (model.half_weights || model.deep) return 3;
  for (const CodecModel& codec : model.codecs)
    if (codec.power_steps) return 3;
  for (const CodecModel& codec : model.codecs)
    if (codec.foreign || codec.experts.size() != 1) return 2;
  return 1;
}

void put_codec(Writer& out, const CodecModel& model, const Form& form) {
  put_text(out, model.codec);
  out.u16(model.version);
  if (form.version >= 2) {
    out.u16(model.power_steps ? kPowerStepsOrigin : model.foreign ? 1 : 0);
    out.u32(model.types);
    out.varint(model.experts.size());
  }
  put_floats(out, model.mean);
  put_floats(out, model.scale);
  for (const Layer& layer : model.hidden) put_layer(out, layer, form);
  for (const Head& head : model.experts) {
    put_layer(out, head.last, form);
    put_layer(out, head.direct, form);
  }
  if (model.experts.size() > 1) put_layer(out, model.gate, form);
  put_floats(out, model.widening);
  put_float(out, model.usual_distance);
}

Status take_halves(Reader& in, std::uint64_t count, std::vector<float>& out) {
  if (count > in.remaining() / 2) return Status(StatusCode::truncated, "the model ends inside its weights");
  out.resize(count);
  for (float& value : out) {
    QUERN_ASSIGN_OR_RETURN(const std::uint16_t bits, in.u16());
    value = kernels::half_to_float(bits);
    if (!std::isfinite(value)) return Status(StatusCode::corrupt, "a weight of the model is no number");
  }
  return {};
}

Status take_layer(Reader& in, const Form& form, Layer& layer) {
  QUERN_ASSIGN_OR_RETURN(layer.rows, in.u32());
  QUERN_ASSIGN_OR_RETURN(layer.columns, in.u32());
  if (layer.rows == 0 || layer.columns == 0 || layer.rows > kMostInputs || layer.columns > kMostInputs)
    return Status(StatusCode::corrupt, "a layer of the model has {0} rows and {1} columns", layer.rows, layer.columns);
  const std::uint64_t weights = std::uint64_t{layer.rows} * layer.columns;
  QUERN_RETURN_IF_ERROR(form.half_weights ? take_halves(in, weights, layer.weights)
                                          : take_floats(in, weights, layer.weights));
  return take_floats(in, layer.rows, layer.bias);
}

/// What versions from 2 on say of a codec besides version 1; how many experts it has.
Result<std::uint64_t> take_origin(Reader& in, const Form& form, CodecModel& model) {
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t origin, in.u16());
  if (origin > (form.version >= 3 ? kPowerStepsOrigin : 1))
    return Status(StatusCode::corrupt, "a codec of the model has the unknown origin {0}", origin);
  model.foreign = origin != 0;
  model.power_steps = origin == kPowerStepsOrigin;
  QUERN_ASSIGN_OR_RETURN(model.types, in.u32());
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t experts, in.varint(kMostExperts));
  if (experts == 0) return Status(StatusCode::corrupt, "a codec of the model has no network");
  return experts;
}

bool fits(const CodecModel& model, std::uint32_t inputs) {
  const auto& h = model.hidden;
  if (h[0].columns != inputs || h[1].columns != h[0].rows) return false;
  for (const Head& head : model.experts)
    if (head.last.columns != h[1].rows || head.direct.columns != inputs || head.last.rows != 3 * kTargets ||
        head.direct.rows != 3 * kTargets)
      return false;
  return model.experts.size() == 1 || (model.gate.rows == model.experts.size() && model.gate.columns == inputs);
}

Status take_codec(Reader& in, std::uint32_t inputs, const Form& form, CodecModel& model) {
  QUERN_ASSIGN_OR_RETURN(model.codec, take_text(in, 255));
  QUERN_ASSIGN_OR_RETURN(model.version, in.u16());
  std::uint64_t experts = 1;
  if (form.version >= 2) {
    QUERN_ASSIGN_OR_RETURN(experts, take_origin(in, form, model));
  }
  QUERN_RETURN_IF_ERROR(take_floats(in, inputs, model.mean));
  QUERN_RETURN_IF_ERROR(take_floats(in, inputs, model.scale));
  for (Layer& layer : model.hidden) QUERN_RETURN_IF_ERROR(take_layer(in, form, layer));
  model.experts.resize(experts);
  for (Head& head : model.experts) {
    QUERN_RETURN_IF_ERROR(take_layer(in, form, head.last));
    QUERN_RETURN_IF_ERROR(take_layer(in, form, head.direct));
  }
  if (experts > 1) QUERN_RETURN_IF_ERROR(take_layer(in, form, model.gate));
  if (!fits(model, inputs)) return Status(StatusCode::corrupt, "the layers of the model do not fit together");
  for (float& value : model.widening) {
    QUERN_ASSIGN_OR_RETURN(value, take_float(in));
  }
  QUERN_ASSIGN_OR_RETURN(model.usual_distance, take_float(in));
  if (!(model.usual_distance > 0)) return Status(StatusCode::corrupt, "the model's usual distance is not positive");
  return {};
}

void put_codecs(Writer& out, const std::vector<CodecModel>& codecs, const Form& form) {
  out.varint(codecs.size());
  for (const CodecModel& codec : codecs) put_codec(out, codec, form);
}

Status take_codecs(Reader& in, std::uint32_t inputs, const Form& form, std::vector<CodecModel>& codecs) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t count, in.varint(kMostCodecs));
  codecs.resize(count);
  for (CodecModel& codec : codecs) QUERN_RETURN_IF_ERROR(take_codec(in, inputs, form, codec));
  return {};
}

void put_deep(Writer& out, const DeepPart& deep, const Form& form) {
  models::write_network(deep.patches.squares, out);
  models::write_network(deep.patches.cubes, out);
  put_codecs(out, deep.codecs, form);
}

/// Whether both parts speak of the same codecs in the same order.
bool are_of_same_codecs(const std::vector<CodecModel>& a, const std::vector<CodecModel>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const CodecModel& x, const CodecModel& y) {
    return x.codec == y.codec && x.version == y.version && x.foreign == y.foreign && x.power_steps == y.power_steps;
  });
}

Status take_deep(Reader& in, std::uint32_t inputs, const Form& form, const std::vector<CodecModel>& codecs,
                 DeepPart& deep) {
  QUERN_ASSIGN_OR_RETURN(deep.patches.squares, models::read_network(in));
  QUERN_ASSIGN_OR_RETURN(deep.patches.cubes, models::read_network(in));
  if (const char* const wrong = check_patch_networks(deep.patches); wrong != nullptr)
    return Status(StatusCode::corrupt, wrong);
  QUERN_RETURN_IF_ERROR(take_codecs(in, inputs + static_cast<std::uint32_t>(kDeepFeatures), form, deep.codecs));
  if (!are_of_same_codecs(codecs, deep.codecs))
    return Status(StatusCode::corrupt, "the model's deep part is of other codecs");
  return {};
}

}  // namespace

Vector<std::uint8_t> write_model(const Model& model) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.bytes(kMagic);
  const Form form{version_of(model), model.half_weights};
  out.u16(form.version);
  out.u16(kQuality);
  out.u32(model.inputs_version);
  out.u32(model.inputs);
  out.f64(model.least_bound);
  out.f64(model.largest_bound);
  put_text(out, model.record);
  const bool deep_usual = model.deep && model.deep->usual;
  if (form.version >= 3)
    out.u16(static_cast<std::uint16_t>((form.half_weights ? kHalfWeights : 0) | (model.deep ? kHasDeep : 0) |
                                       (deep_usual ? kDeepIsUsual : 0)));
  put_codecs(out, model.codecs, form);
  if (model.deep) put_deep(out, *model.deep, form);
  const models::Digest seal = models::sha256(bytes);
  out.bytes(seal);
  return bytes;
}

namespace {

Result<Model> read_model(std::span<const std::uint8_t> bytes, bool check_seal) {
  if (bytes.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return Status(StatusCode::bad_magic, "this is no model of quern");
  if (bytes.size() > kMostModelBytes)
    return Status(StatusCode::corrupt, "a model of {0} bytes is larger than any",
                  static_cast<std::int64_t>(bytes.size()));
  if (bytes.size() < kMagic.size() + 4 + kSeal) return Status(StatusCode::truncated, "the model is cut");
  Reader in(bytes.first(bytes.size() - kSeal));
  QUERN_RETURN_IF_ERROR(in.skip(kMagic.size()));
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t version, in.u16());
  if (version > kModelVersion)
    return Status(StatusCode::unsupported_version, "the model is of version {0}; this quern reads up to {1}", version,
                  kModelVersion);
  const auto is_sealed = [&] {
    const models::Digest seal = models::sha256(bytes.first(bytes.size() - kSeal));
    return std::equal(seal.begin(), seal.end(), bytes.end() - kSeal);
  };
  if (check_seal && !is_sealed())
    return Status(StatusCode::checksum_mismatch, "the model is cut or changed: its SHA-256 does not match");
  QUERN_ASSIGN_OR_RETURN(const std::uint16_t kind, in.u16());
  if (kind != kQuality) return Status(StatusCode::unsupported, "the model is of kind {0}, not for quality", kind);
  Model model;
  QUERN_ASSIGN_OR_RETURN(model.inputs_version, in.u32());
  QUERN_ASSIGN_OR_RETURN(model.inputs, in.u32());
  if (model.inputs == 0 || model.inputs > kMostInputs)
    return Status(StatusCode::corrupt, "the model has {0} inputs", model.inputs);
  QUERN_ASSIGN_OR_RETURN(model.least_bound, in.f64());
  QUERN_ASSIGN_OR_RETURN(model.largest_bound, in.f64());
  QUERN_ASSIGN_OR_RETURN(model.record, take_text(in, kMostModelBytes));
  std::uint16_t flags = 0;
  if (version >= 3) {
    QUERN_ASSIGN_OR_RETURN(flags, in.u16());
    if (flags > (kHalfWeights | kHasDeep | kDeepIsUsual) || (flags & (kHasDeep | kDeepIsUsual)) == kDeepIsUsual)
      return Status(StatusCode::corrupt, "the model has unknown flags, {0}", flags);
  }
  model.half_weights = (flags & kHalfWeights) != 0;
  const Form form{version, model.half_weights};
  QUERN_RETURN_IF_ERROR(take_codecs(in, model.inputs, form, model.codecs));
  if ((flags & kHasDeep) != 0) {
    model.deep.emplace();
    model.deep->usual = (flags & kDeepIsUsual) != 0;
    QUERN_RETURN_IF_ERROR(take_deep(in, model.inputs, form, model.codecs, *model.deep));
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return model;
}

}  // namespace

Result<Model> read_model(std::span<const std::uint8_t> bytes) { return read_model(bytes, true); }

const Result<Model>& shipped_model() {
  static const Result<Model> shipped = read_model(builtin_model(), false);
  return shipped;
}

}  // namespace quern::surrogate

// Stage 2's networks and the file that holds them (docs/format-model.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/memory.h>
#include <quern/status.h>

#include "surrogate/patches.h"

namespace quern::surrogate {

/// What is predicted, in this order.
enum Target : std::size_t {
  kRate,             ///< log2 of bits a value by the closed form's
  kPsnr,             ///< dB above the closed form's
  kSsim,             ///< log2(1 - SSIM + 1e-4) above the closed form's
  kMaxError,         ///< largest error by the bound that the codec works with
  kAutocorrelation,  ///< of the error, lag 1
  kCompressTime,     ///< log2 of processor time a million values by the calibration's time
  kDecompressTime,
  kTargets
};

/// A layer: rows of weights, then a bias for each row.
struct Layer {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<float> weights;
  std::vector<float> bias;
};

/// What stands on the hidden layers: for each target a middle and two distances.
struct Head {
  Layer last;    ///< of the second hidden layer
  Layer direct;  ///< of the inputs
};

/// The network of one codec: two hidden layers, and one head or several experts that a softmax gate weighs. The
/// distances are those of the quantiles at 10 % and 90 %; `widening` is added to both.
struct CodecModel {
  std::string codec;
  std::uint16_t version = 0;       ///< of the codec whose runs it was trained on
  bool foreign = false;            ///< not one of quern's codecs: of a peer's runs
  std::uint32_t types = 0;         ///< foreign: bit `DType` is set for the element types of its runs
  bool power_steps = false;        ///< foreign: rounds bounds down to powers of two
  std::vector<float> mean, scale;  ///< of the inputs
  std::array<Layer, 2> hidden;
  std::vector<Head> experts;  ///< at least one
  Layer gate;                 ///< of the inputs, a row for each expert; empty with one
  std::array<float, kTargets> widening{};
  float usual_distance = 1;  ///< 99 of 100 training inputs lie within
};

/// Networks that take deep features behind the other inputs.
struct DeepPart {
  PatchNetworks patches;
  std::vector<CodecModel> codecs;
  bool usual = false;  ///< taken unless other features are asked for
};

struct Model {
  std::uint32_t inputs_version = 0;
  std::uint32_t inputs = 0;                   ///< without deep features
  bool half_weights = false;                  ///< weights are stored as binary16, which holds all of them exactly
  double least_bound = 0, largest_bound = 0;  ///< of the training, relative
  std::string record;                         ///< JSON: what it was trained on and how well it did
  std::vector<CodecModel> codecs;
  std::optional<DeepPart> deep;

  /// Null for a codec that it does not know. `with_deep`: the network that takes deep features.
  const CodecModel* by_name(const std::string& codec, bool with_deep = false) const;
};

struct Quantiles {
  double low = 0, middle = 0, high = 0;
};

struct Prediction {
  std::array<Quantiles, kTargets> targets;
  double distance = 0;  ///< of the inputs from those of the training, 1: the usual
};

/// Evaluates a network: additions and multiplications in a fixed order. `inputs` are as many as its layers have columns.
Prediction predict(const CodecModel& model, std::span<const double> inputs);

/// The newest version that is read. Version 1 has quern's codecs with one expert each, version 2 peers and experts,
/// version 3 weights of binary16, peers with steps of powers of two, and deep features.
inline constexpr std::uint16_t kModelVersion = 3;
inline constexpr std::size_t kMostExperts = 16;
inline constexpr std::size_t kMostModelBytes = std::size_t{1} << 24;

Vector<std::uint8_t> write_model(const Model& model);
/// Fails with bad_magic, unsupported_version (newer), checksum_mismatch, truncated or corrupt.
Result<Model> read_model(std::span<const std::uint8_t> bytes);

/// The model that ships with the library.
std::span<const std::uint8_t> builtin_model();
/// The same, read once. What is part of the library is not held against its SHA-256.
const Result<Model>& shipped_model();

}  // namespace quern::surrogate

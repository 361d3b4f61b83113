// The policy of presets, in small.
#include "tests/unit_moments/presets.h"

#include <stdexcept>

namespace quern::testing {
namespace {

using namespace codec::tensor;

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

std::uint64_t code(const TensorDescription& description, const TensorRequest& request, const TensorInputs& inputs,
                   Bytes& decoded) {
  SerialRunner runner;
  const auto encoded = encode_tensor(description, request, inputs, runner);
  check(encoded.status());
  decoded.assign(static_cast<std::size_t>(description.bytes()), 0xee);
  TensorInputs known = inputs;
  known.values = {};
  check(decode_tensor(description, encoded.value(), known, decoded, runner));
  return encoded.value().total_bytes() + 24 + 8 * description.chunks();
}

}  // namespace

CodedSizes code_parameter(const Preset& preset, const Parameter& parameter, const Parameter* base, Parameter& decoded) {
  const TensorDescription& description = parameter.description;
  decoded.description = description;
  const bool small = description.elems() < 4096 || description.shape.rank() < 2;
  const auto base_of = [&](const Bytes Parameter::*part) {
    return base == nullptr ? std::span<const std::uint8_t>{} : std::span<const std::uint8_t>(base->*part);
  };
  const auto request = [&](Mode mode, double bound) {
    TensorRequest r;
    if (!small && bound > 0) r.mode = mode;
    r.bound = bound;
    return r;
  };
  CodedSizes sizes;
  sizes.raw = 3 * description.bytes();
  sizes.exp_avg_sq = code(description, request(Mode::logq, preset.log_bound),
                          {parameter.exp_avg_sq, base_of(&Parameter::exp_avg_sq), {}}, decoded.exp_avg_sq);
  sizes.exp_avg = code(description, request(Mode::updq, preset.eps),
                       {parameter.exp_avg, base_of(&Parameter::exp_avg), decoded.exp_avg_sq}, decoded.exp_avg);
  TensorInputs inputs{parameter.weight, base_of(&Parameter::weight), {}};
  Bytes direction(decoded.exp_avg.size());
  Bytes base_direction(direction.size());
  if (base != nullptr) {
    update_direction(decoded.exp_avg, decoded.exp_avg_sq, direction);
    update_direction(base->exp_avg, base->exp_avg_sq, base_direction);
    inputs.direction = direction;
    inputs.base_direction = base_direction;
  }
  const bool absolute = preset.weight_bound != 0;
  TensorRequest weights = request(Mode::ebq, absolute ? preset.weight_bound : preset.weight_deviations);
  weights.bound_in_deviations = !absolute;
  sizes.weight = code(description, weights, inputs, decoded.weight);
  return sizes;
}

}  // namespace quern::testing

// Not a test: writes the golden tensors. usage: make_golden_tensors FOLDER. Run after a change of the format; those of
// released versions stay.
#include <cstdio>

#include "tests/unit_tensor/golden_tensor.h"

namespace quern::codec::tensor {
namespace {

bool add(const std::filesystem::path& folder, const char* name, ElementType type, Mode mode, Bytes values,
         Bytes base = {}, Bytes companion = {}) {
  GoldenTensor tensor;
  tensor.description = description_of(type, values.size() / element_bytes(type));
  tensor.mode = mode;
  TensorInputs inputs;
  inputs.values = values;
  inputs.base = base;
  inputs.companion = companion;
  TensorRequest request;
  request.mode = mode;
  const auto plan = plan_tensor(tensor.description, request, inputs);
  if (!plan.ok()) {
    std::fprintf(stderr, "%s: %s\n", name, plan.status().text().c_str());
    return false;
  }
  Bytes out(chunk_bound(tensor.description, 0));
  AlignedBuffer scratch;
  const auto size = encode_chunk(*plan, inputs, 0, out, scratch);
  if (!size.ok()) return false;
  out.resize(*size);
  tensor.side.assign(plan->side.begin(), plan->side.end());
  tensor.chunk = std::move(out);
  tensor.values = std::move(values);
  tensor.base = std::move(base);
  tensor.companion = std::move(companion);
  write_golden(tensor, folder / (std::string(name) + ".tensor"));
  return true;
}

/// Rows of 64 values of two scales.
Bytes rows(std::size_t elems) {
  const Bytes large = make_values(ElementType::f32, elems, "weights", 5);
  Bytes values(4 * elems);
  for (std::size_t i = 0; i < elems; ++i) {
    float value = 0;
    std::memcpy(&value, large.data() + 4 * i, 4);
    put(values, i, 4, word_of(ElementType::f32, i / 512 % 2 == 0 ? value : value / 4096));
  }
  return values;
}

/// 0.9 of the values, and noise of one size for all: small values change most of their bits.
Bytes decayed(const Bytes& base) {
  Bytes values(base.size());
  std::mt19937_64 random(6);
  for (std::size_t i = 0; i < base.size() / 4; ++i) {
    float value = 0;
    std::memcpy(&value, base.data() + 4 * i, 4);
    const double noise = static_cast<double>(random() % 1024) - 512;
    put(values, i, 4, word_of(ElementType::f32, 0.9 * static_cast<double>(value) + 1e-7 * noise));
  }
  return values;
}

bool add_all(const std::filesystem::path& folder) {
  const Bytes weights = make_values(ElementType::f32, 6000, "weights");
  const Bytes half = make_values(ElementType::f16, 3000, "weights");
  Bytes copy;
  for (std::size_t i = 0; i < 400; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, weights.data() + 4 * i, 4);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    copy.push_back(static_cast<std::uint8_t>(rounded));
    copy.push_back(static_cast<std::uint8_t>(rounded >> 8));
  }
  const Bytes master(weights.begin(), weights.begin() + 1600);
  bool good = add(folder, "raw_i16", ElementType::i16, Mode::raw, make_values(ElementType::i16, 300, "noise"));
  good = good &&
         add(folder, "constant_f64", ElementType::f64, Mode::constant, make_values(ElementType::f64, 300, "constant"));
  good = good &&
         add(folder, "planes_bf16", ElementType::bf16, Mode::planes, make_values(ElementType::bf16, 3000, "weights"));
  good = good && add(folder, "planes_f32_previous", ElementType::f32, Mode::planes, rows(8192));
  good = good && add(folder, "planes_u8_two_parts", ElementType::u8, Mode::planes,
                     make_values(ElementType::u8, 33001, "small"));
  good = good &&
         add(folder, "planes_i64_runs", ElementType::i64, Mode::planes, make_values(ElementType::i64, 700, "small"));
  good = good && add(folder, "planes_boolean_packed", ElementType::boolean, Mode::planes,
                     make_values(ElementType::boolean, 1003, "noise"));
  good =
      good && add(folder, "planes_f64", ElementType::f64, Mode::planes, make_values(ElementType::f64, 1500, "weights"));
  good =
      good && add(folder, "planes_noise", ElementType::u32, Mode::planes, make_values(ElementType::u32, 200, "noise"));
  good = good && add(folder, "delta_f32_scaled", ElementType::f32, Mode::delta, decayed(weights), weights);
  good = good && add(folder, "delta_f16", ElementType::f16, Mode::delta, drifted(half, 2, 3), half);
  good = good && add(folder, "derived_bf16", ElementType::bf16, Mode::derived, copy, {}, master);
  return good;
}

}  // namespace
}  // namespace quern::codec::tensor

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_tensors FOLDER\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  return quern::codec::tensor::add_all(argv[1]) ? 0 : 1;
}

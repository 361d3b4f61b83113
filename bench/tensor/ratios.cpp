// Ratios of the tensor codec's lossless modes on a folder of checkpoints of one training run (step00400, 401, 410, 500
// .safetensors with param.*, exp_avg.* and exp_avg_sq.*): each stream alone, and against a base some steps before,
// beside zstd of the same bytes. Usage: tensor_ratios FOLDER
#include <cstdio>
#include <string>

#include <zstd.h>

#include "codecs/tensor/tensor.h"
#include "kernels/common/bits.h"
#include "tests/support/safetensors_file.h"

namespace {

using namespace quern;
using namespace quern::codec::tensor;
using Tensors = std::map<std::string, testing::StoredTensor>;

struct Sizes {
  std::uint64_t raw = 0;
  std::uint64_t coded = 0;
  std::uint64_t zstd3 = 0;
  std::uint64_t zstd19 = 0;
  std::map<std::string, int> modes;

  void add(const Sizes& other) {
    raw += other.raw;
    coded += other.coded;
    zstd3 += other.zstd3;
    zstd19 += other.zstd19;
  }
};

std::uint64_t zstd_bytes(const std::vector<std::uint8_t>& bytes, int level) {
  std::vector<std::uint8_t> out(ZSTD_compressBound(bytes.size()));
  return ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
}

/// Codes all tensors whose name begins with `prefix`, decodes them again and compares.
Sizes measure(const Tensors& tensors, const std::string& prefix, const Tensors* base) {
  Sizes sizes;
  SerialRunner runner;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) != 0) continue;
    TensorInputs inputs;
    inputs.values = tensor.bytes;
    if (base != nullptr) inputs.base = base->at(name).bytes;
    const auto encoded = encode_tensor(tensor.description, {}, inputs, runner);
    std::vector<std::uint8_t> back(tensor.bytes.size());
    inputs.values = {};
    if (!encoded.ok() || !decode_tensor(tensor.description, *encoded, inputs, back, runner).ok() ||
        back != tensor.bytes) {
      std::printf("%s does not come back\n", name.c_str());
      std::exit(1);
    }
    sizes.raw += tensor.bytes.size();
    sizes.coded += encoded->total_bytes();
    sizes.zstd3 += zstd_bytes(tensor.bytes, 3);
    sizes.zstd19 += zstd_bytes(tensor.bytes, 19);
    ++sizes.modes[mode_name(encoded->mode)];
  }
  return sizes;
}

void print(const char* what, const Sizes& sizes) {
  const auto ratio = [&](std::uint64_t bytes) { return static_cast<double>(sizes.raw) / static_cast<double>(bytes); };
  std::printf("%-34s %10llu %10llu  %.4f   zstd -3 %.4f -19 %.4f ", what, static_cast<unsigned long long>(sizes.raw),
              static_cast<unsigned long long>(sizes.coded), ratio(sizes.coded), ratio(sizes.zstd3),
              ratio(sizes.zstd19));
  for (const auto& [mode, count] : sizes.modes) std::printf(" %s:%d", mode.c_str(), count);
  std::printf("\n");
}

Tensors bf16_copies(const Tensors& tensors) {
  Tensors copies;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind("param.", 0) != 0) continue;
    testing::StoredTensor copy{{ElementType::bf16, tensor.description.shape}, {}};
    for (std::size_t i = 0; i < tensor.bytes.size(); i += 4) {
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + i, 4);
      const std::uint32_t bits = kernels::float_to_bfloat(value);
      copy.bytes.push_back(static_cast<std::uint8_t>(bits));
      copy.bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
    }
    copies[name] = copy;
  }
  return copies;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tensor_ratios FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  const char* const steps[] = {"step00400", "step00401", "step00410", "step00500"};
  std::map<std::string, Tensors> files;
  for (const char* step : steps) {
    files[step] = testing::read_safetensors(folder + "/" + step + ".safetensors");
    if (files[step].empty()) {
      std::fprintf(stderr, "cannot read %s of %s\n", step, folder.c_str());
      return 1;
    }
  }
  const Tensors& first = files["step00400"];
  print("bf16 weights", measure(bf16_copies(first), "param.", nullptr));
  for (const char* step : steps) {
    const Tensors* const base = step == steps[0] ? nullptr : &first;
    Sizes all;
    for (const char* prefix : {"param.", "exp_avg.", "exp_avg_sq."}) {
      const Sizes sizes = measure(files[step], prefix, base);
      print((std::string(step) + (base != nullptr ? " on 400 " : " ") + prefix).c_str(), sizes);
      all.add(sizes);
    }
    print((std::string(step) + " all").c_str(), all);
    if (base == nullptr) {
      all.raw += all.raw / 6;
      print("the same and bf16 copies, derived", all);
    }
  }
  return 0;
}

// Ratios on a real training run's checkpoints, when $QUERN_TEST_DATA holds them: each figure is a floor that a change
// must not fall below.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/common/bits.h"
#include "tests/support/safetensors_file.h"
#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {
namespace {

using Tensors = std::map<std::string, testing::StoredTensor>;

class TensorWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("QUERN_TEST_DATA");
    if (folder == nullptr) GTEST_SKIP() << "no checkpoints: set QUERN_TEST_DATA";
    for (const int step : {400, 401, 410, 500})
      steps_[step] = testing::read_safetensors(std::string(folder) + "/weights/gpt-run/step00" + std::to_string(step) +
                                               ".safetensors");
    if (steps_[400].empty()) GTEST_SKIP() << "no checkpoints in " << folder;
  }

  /// Coded bytes of a step, after the tensors came back bit for bit.
  static std::uint64_t coded(const Tensors& tensors, const Tensors* base) {
    std::uint64_t bytes = 0;
    SerialRunner runner;
    for (const auto& [name, tensor] : tensors) {
      TensorInputs inputs;
      inputs.values = tensor.bytes;
      if (base != nullptr) inputs.base = base->at(name).bytes;
      const auto encoded = encode_tensor(tensor.description, {}, inputs, runner);
      EXPECT_TRUE(encoded.ok()) << name;
      if (!encoded.ok()) continue;
      inputs.values = {};
      Bytes back(tensor.bytes.size());
      EXPECT_TRUE(decode_tensor(tensor.description, *encoded, inputs, back, runner).ok()) << name;
      EXPECT_EQ(back, tensor.bytes) << name;
      bytes += encoded->total_bytes();
    }
    return bytes;
  }
  static std::uint64_t raw(const Tensors& tensors) {
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : tensors) bytes += tensor.bytes.size();
    return bytes;
  }
  static double ratio(std::uint64_t raw_bytes, std::uint64_t coded_bytes) {
    return static_cast<double>(raw_bytes) / static_cast<double>(coded_bytes);
  }

  std::map<int, Tensors> steps_;
};

TEST_F(TensorWeights, StateAndDerivedCopies) {
  const Tensors& state = steps_[400];
  const std::uint64_t bytes = coded(state, nullptr);
  EXPECT_GE(ratio(raw(state), bytes), 1.21);
  Tensors copies;
  SerialRunner runner;
  for (const auto& [name, tensor] : state) {
    if (name.rfind("param.", 0) != 0) continue;
    testing::StoredTensor copy{{ElementType::bf16, tensor.description.shape}, Bytes(tensor.bytes.size() / 2)};
    for (std::size_t i = 0; i < copy.bytes.size() / 2; ++i) {
      float master = 0;
      std::memcpy(&master, tensor.bytes.data() + 4 * i, 4);
      put(copy.bytes, i, 2, kernels::float_to_bfloat(master));
    }
    TensorInputs inputs;
    inputs.values = copy.bytes;
    inputs.companion = tensor.bytes;
    const auto derived = encode_tensor(copy.description, {}, inputs, runner);
    ASSERT_TRUE(derived.ok());
    EXPECT_EQ(derived->mode, Mode::derived) << name;
    EXPECT_EQ(derived->total_bytes(), 0u);
    copies[name] = std::move(copy);
  }
  EXPECT_GE(ratio(raw(state) + raw(copies), bytes), 1.41);
  EXPECT_GE(ratio(raw(copies), coded(copies, nullptr)), 1.50);
}

TEST_F(TensorWeights, StatesOnABase) {
  const struct {
    int step;
    double floor;
  } cases[] = {{401, 1.70}, {410, 1.40}, {500, 1.25}};
  for (const auto& [step, floor] : cases)
    EXPECT_GE(ratio(raw(steps_[step]), coded(steps_[step], &steps_[400])), floor) << step;
}

}  // namespace
}  // namespace quern::codec::tensor

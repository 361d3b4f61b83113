// Tokens counted by vectors are those counted one by one.
#include "coding/token_tally.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit_coding/instruction_sets.h"

namespace quern::coding::test {
namespace {

std::vector<std::int32_t> codes_of_every_size(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::int32_t> codes(count);
  for (std::int32_t& code : codes) {
    const auto magnitude = static_cast<std::int32_t>(random() & kernels::kMaxMagnitude) >> random() % 30;
    code = random() % 2 == 0 ? magnitude : -magnitude;
  }
  return codes;
}

TEST(Coding_TokenTally, CountsEveryCodeThatIsNotSkipped) {
  const std::vector<std::int32_t> codes = codes_of_every_size(3000);
  std::vector<std::uint8_t> skipped(codes.size());
  for (std::size_t i = 0; i < skipped.size(); ++i) skipped[i] = i % 7 == 3 ? 1 : 0;
  for_instruction_sets([&](const kernels::ResidualKernels& kernels) {
    TokenTally tally;
    for (const std::size_t count : {0, 1, 3, 4, 31, 255, 256, 257, 1027, 3000}) {
      for (const bool some_skipped : {false, true}) {
        TokenCounts expected{};
        for (std::size_t i = 0; i < count; ++i)
          if (!some_skipped || skipped[i] == 0) ++expected[kernels::token_of(kernels::magnitude_of(codes[i]))];
        tally.clear();
        tally.add(kernels, codes.data(), some_skipped ? skipped.data() : nullptr, count);
        EXPECT_EQ(tally.counts(), expected) << count << (some_skipped ? " with some skipped" : "");
      }
    }
  });
}

TEST(Coding_TokenTally, RowsAddUp) {
  const std::vector<std::int32_t> codes = codes_of_every_size(2000);
  const kernels::ResidualKernels& kernels = kernels::residual_kernels(kernels::best_isa());
  TokenTally whole;
  whole.add(kernels, codes.data(), nullptr, codes.size());
  TokenTally parts;
  for (std::size_t at = 0; at < codes.size(); at += 100) parts.add(kernels, codes.data() + at, nullptr, 100);
  EXPECT_EQ(parts.counts(), whole.counts());
}

}  // namespace
}  // namespace quern::coding::test

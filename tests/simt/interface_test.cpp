// The stand-in for CUDA's headers declares what they declare: constants and types of functions. Needs a toolkit's
// headers.
#include <gtest/gtest.h>

#include "tests/simt/interface_table.h"

namespace quern::testing {
namespace {

TEST(Interface, StandIn_DeclaresWhatCudaDeclares) {
  const auto ours = stand_in_interface();
  const auto theirs = cuda_interface();
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i].value, theirs[i].value) << ours[i].name;
}

}  // namespace
}  // namespace quern::testing

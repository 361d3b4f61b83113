// Two slots that take turns: every piece is finished once, in the order of starts, while one other is under way.
#include "libcompress/cuda/staged/double_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace quern::cuda {
namespace {

struct Slot {
  int piece = -1;  ///< under way
};

/// Runs pieces 0, 1, ... through the slots; `failing` fails at its start.
struct Feeder {
  std::vector<int> finished;
  int started = 0;
  int under_way = 0;
  int most_under_way = 0;

  Status operator()(DoubleBuffer<Slot>& slots, int pieces, int failing = -1) {
    return slots.run([&] { return started < pieces; },
                     [&](Slot& slot) -> Status {
                       if (slot.piece < 0) return {};
                       finished.push_back(slot.piece);
                       slot.piece = -1;
                       --under_way;
                       return {};
                     },
                     [&](Slot& slot) -> Status {
                       EXPECT_EQ(slot.piece, -1);
                       if (started == failing) return Status(StatusCode::internal, "a start that fails");
                       slot.piece = started++;
                       most_under_way = std::max(most_under_way, ++under_way);
                       return {};
                     });
  }
};

TEST(DoubleBuffer, AnyNumberOfPieces_FinishInOrder) {
  DoubleBuffer<Slot> slots;
  for (int pieces = 0; pieces < 9; ++pieces) {
    Feeder run;
    ASSERT_TRUE(run(slots, pieces).ok());
    std::vector<int> expected;
    for (int i = 0; i < pieces; ++i) expected.push_back(i);
    EXPECT_EQ(run.finished, expected);
    EXPECT_EQ(run.most_under_way, std::min(pieces, 2));
    for (const Slot& slot : slots) EXPECT_EQ(slot.piece, -1);
  }
}

TEST(DoubleBuffer, FailedStart_LeavesTheOtherSlotUnderWay) {
  DoubleBuffer<Slot> slots;
  Feeder run;
  EXPECT_EQ(run(slots, 7, 4).code(), StatusCode::internal);
  EXPECT_EQ(run.finished, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(std::count_if(slots.begin(), slots.end(), [](const Slot& slot) { return slot.piece == 3; }), 1);
}

}  // namespace
}  // namespace quern::cuda

// The text of a status: numbers in their places, cut to fit.
#include <array>
#include <string>

#include <gtest/gtest.h>

#include <quern/status.h>

namespace quern {
namespace {

std::string text_of(const char* message, std::int64_t a = 0, std::int64_t b = 0) {
  return Status(StatusCode::corrupt, message, a, b).text();
}

TEST(Status_Text, Numbers_ArePutIn) {
  EXPECT_EQ(text_of("chunk {0} of {1}", 3, -12), "chunk 3 of -12");
  EXPECT_EQ(text_of("{1}{0}", 1, 2), "21");
  EXPECT_EQ(text_of("{0}", INT64_MIN), "-9223372036854775808");
}

TEST(Status_Text, Thousandths_AreDecimal) {
  EXPECT_EQ(text_of("best {0.3}, asked {1.3}", 41394, 7), "best 41.394, asked 0.007");
  EXPECT_EQ(text_of("{0.3}", 1000000), "1000.000");
  EXPECT_EQ(text_of("{0.3}", INT64_MAX), "9223372036854775.807");
}

TEST(Status_Text, OtherBraces_StayAsTheyAre) {
  EXPECT_EQ(text_of("{2} {} {0 {0.4} {0.", 5), "{2} {} {0 {0.4} {0.");
  EXPECT_EQ(text_of("{"), "{");
}

TEST(Status_Text, SmallRoom_CutsAndEnds) {
  std::array<char, 6> room;
  room.fill('x');
  EXPECT_EQ(Status(StatusCode::corrupt, "ab{0}", 12345).write_text(room), 5u);
  EXPECT_STREQ(room.data(), "ab123");
}

}  // namespace
}  // namespace quern

// Buffers on loan: what they hold while they are, and when memory is taken anew.
#include "libcompress/core/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory_resource>

namespace quern {
namespace {

/// Counts what was taken from the heap and is not given back.
class Counting final : public std::pmr::memory_resource {
 public:
  std::size_t held = 0;
  std::size_t taken = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    held += bytes;
    ++taken;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    held -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(BufferPool, BuffersOnLoan_AreApartAndAligned) {
  BufferPool pool(1000);
  auto a = pool.lend();
  auto b = pool.lend(5000);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->span().size(), 1000u);
  EXPECT_EQ(b->span().size(), 5000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a->span().data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->span().data()) % 64, 0u);
  std::ranges::fill(a->span(), std::uint8_t{1});
  std::ranges::fill(b->span(), std::uint8_t{2});
  EXPECT_TRUE(std::ranges::all_of(a->span(), [](std::uint8_t v) { return v == 1; }));
  EXPECT_TRUE(std::ranges::all_of(b->span(), [](std::uint8_t v) { return v == 2; }));
}

TEST(BufferPool, MemoryThatWasGivenBack_ServesAgain) {
  BufferPool pool;
  const std::uint8_t* first = nullptr;
  {
    auto lease = pool.lend(4096);
    ASSERT_TRUE(lease.ok());
    first = lease->span().data();
  }
  auto smaller = pool.lend(64);
  ASSERT_TRUE(smaller.ok());
  EXPECT_EQ(smaller->span().data(), first);
  EXPECT_EQ(smaller->span().size(), 64u);
}

TEST(BufferPool, OneGivenBackThatIsTooSmall_Grows) {
  BufferPool pool;
  ASSERT_TRUE(pool.lend(64).ok());
  // Also where large blocks have pages of their own.
  for (const std::size_t bytes : {std::size_t{100000}, (std::size_t{1} << 20) + 1, std::size_t{9} << 20}) {
    auto lease = pool.lend(bytes);
    ASSERT_TRUE(lease.ok());
    ASSERT_EQ(lease->span().size(), bytes);
    lease->span().front() = lease->span().back() = 7;
  }
}

TEST(BufferPool, MoreThanThereIs_IsAnErrorAndTheNextLoanIsNot) {
  BufferPool pool;
  EXPECT_EQ(pool.lend((std::size_t{1} << 62) + 1).status().code(), StatusCode::out_of_memory);
  auto lease = pool.lend(128);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->span().size(), 128u);
}

TEST(BufferPool, Cleared_HoldsWhatIsOnLoan) {
  Counting memory;
  const MemoryScope scope(&memory);
  BufferPool pool(256);
  {
    auto kept = pool.lend();
    ASSERT_TRUE(kept.ok());
    ASSERT_TRUE(pool.lend().ok());
    const std::size_t both = memory.held;
    pool.clear();
    EXPECT_EQ(memory.held, both - 256);
    EXPECT_EQ(kept->span().size(), 256u);
  }
  pool.clear();
  EXPECT_TRUE(pool.lend().ok());
  EXPECT_GE(memory.taken, 3u);
}

}  // namespace
}  // namespace quern

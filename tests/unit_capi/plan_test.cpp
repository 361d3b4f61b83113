// Plans and queued calls on host memory: the bytes of the one-shot calls, and what is refused.
#include <cmath>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

struct DestroyPlan {
  void operator()(quern_plan* plan) const { quern_plan_destroy(plan); }
};

class Plan : public ::testing::Test {
 protected:
  Plan() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::sin(0.01 * static_cast<double>(i));
  }
  quern_array array() { return make_array(QUERN_F64, {12, 50}, values_.data()); }

  quern_status make(const char* settings, const quern_array& like) {
    quern_plan* plan = nullptr;
    const quern_status status = quern_plan_create(context_.get(), make_params(settings).get(), &like, &plan);
    plan_.reset(plan);
    return status;
  }

  std::vector<double> values_ = std::vector<double>(600);
  ContextHandle context_ = make_context();
  std::unique_ptr<quern_plan, DestroyPlan> plan_;
};

TEST_F(Plan, QueuedCalls_GiveTheBytesOfTheOneShotCalls) {
  ASSERT_EQ(make("rel=1e-4", make_array(QUERN_F64, {12, 50}, nullptr)), QUERN_OK) << quern_last_error(context_.get());
  std::uint64_t room = 0;
  std::uint64_t workspace = 1;
  ASSERT_EQ(quern_plan_bound(plan_.get(), &room), QUERN_OK);
  ASSERT_EQ(quern_plan_workspace(plan_.get(), &workspace), QUERN_OK);
  EXPECT_EQ(workspace, 0u);
  for (int step = 0; step < 3; ++step) {
    for (double& value : values_) value *= 1.5;
    const quern_array input = array();
    std::vector<std::uint8_t> stream(room);
    std::uint64_t size = 0;
    ASSERT_EQ(
        quern_compress_async(context_.get(), plan_.get(), &input, nullptr, 0, stream.data(), room, &size, nullptr),
        QUERN_OK)
        << quern_last_error(context_.get());
    stream.resize(size);
    EXPECT_EQ(stream, compressed(context_.get(), make_params("rel=1e-4").get(), input));
    std::vector<double> back(values_.size());
    quern_array output = make_array(QUERN_F64, {12, 50}, back.data());
    ASSERT_EQ(quern_decompress_async(context_.get(), stream.data(), size, &output, nullptr, 0, nullptr), QUERN_OK);
    EXPECT_EQ(quern_verify(context_.get(), &input, stream.data(), size, nullptr), QUERN_OK);
    EXPECT_NEAR(back[77], values_[77], 1e-2);
  }
}

TEST_F(Plan, ParametersChangedAfterwards_DoNotReachThePlan) {
  const auto params = make_params("abs=1e-3");
  quern_plan* plan = nullptr;
  const quern_array input = array();
  ASSERT_EQ(quern_plan_create(context_.get(), params.get(), &input, &plan), QUERN_OK);
  plan_.reset(plan);
  ASSERT_EQ(quern_params_parse(params.get(), "abs=0.5"), QUERN_OK);
  std::vector<std::uint8_t> stream(1 << 16);
  std::uint64_t size = 0;
  ASSERT_EQ(
      quern_compress_async(context_.get(), plan, &input, nullptr, 0, stream.data(), stream.size(), &size, nullptr),
      QUERN_OK);
  stream.resize(size);
  EXPECT_EQ(stream, compressed(context_.get(), make_params("abs=1e-3").get(), input));
}

TEST_F(Plan, BoundThatTheTypeCannotHave_IsRefusedAtOnce) {
  EXPECT_EQ(make("pwrel=1e-3", make_array(QUERN_I32, {10}, nullptr)), QUERN_ERROR_INVALID_BOUND);
  EXPECT_EQ(plan_, nullptr);
}

TEST_F(Plan, ArrayOfOtherTypeOrExtents_IsRefused) {
  ASSERT_EQ(make("abs=1e-3", array()), QUERN_OK);
  std::vector<std::uint8_t> stream(1 << 16);
  std::uint64_t size = 0;
  for (const quern_array& other :
       {make_array(QUERN_F64, {50, 12}, values_.data()), make_array(QUERN_F32, {12, 50}, values_.data())}) {
    EXPECT_EQ(quern_compress_async(context_.get(), plan_.get(), &other, nullptr, 0, stream.data(), stream.size(), &size,
                                   nullptr),
              QUERN_ERROR_INVALID_ARGUMENT);
  }
}

TEST_F(Plan, QueueForHostMemory_IsRefused) {
  ASSERT_EQ(make("abs=1e-3", array()), QUERN_OK);
  quern_array input = array();
  std::vector<std::uint8_t> stream(1 << 16);
  std::uint64_t size = 0;
  int queue = 0;
  EXPECT_EQ(quern_compress_async(context_.get(), plan_.get(), &input, nullptr, 0, stream.data(), stream.size(), &size,
                                 &queue),
            QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_decompress_async(context_.get(), stream.data(), size, &input, nullptr, 0, &queue),
            QUERN_ERROR_INVALID_ARGUMENT);
}

TEST_F(Plan, NullArguments_AreRefused) {
  const quern_array input = array();
  quern_plan* plan = nullptr;
  std::uint64_t bytes = 0;
  EXPECT_EQ(quern_plan_create(nullptr, make_params("abs=1").get(), &input, &plan), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_plan_create(context_.get(), nullptr, &input, &plan), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_plan_create(context_.get(), make_params("abs=1").get(), nullptr, &plan),
            QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_plan_bound(nullptr, &bytes), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_compress_async(context_.get(), nullptr, &input, nullptr, 0, nullptr, 0, &bytes, nullptr),
            QUERN_ERROR_INVALID_ARGUMENT);
  quern_plan_destroy(nullptr);
}

}  // namespace
}  // namespace quern::testing

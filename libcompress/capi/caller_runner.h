// The caller's threads as the library's runner.
#pragma once

#include <cstddef>

#include <quern/execution.h>
#include <quern/quern.h>

namespace quern::capi {

class CallerRunner final : public TaskRunner {
 public:
  explicit CallerRunner(const quern_runner& runner) : runner_(runner) {}
  void run(std::size_t tasks, const TaskBody& body) override {
    Call call{&body};
    runner_.run(runner_.user, tasks, &run_body, &call);
  }
  std::size_t width() const override { return runner_.width; }

 private:
  struct Call {
    const TaskBody* body;
  };
  static void run_body(void* argument, std::size_t index) { (*static_cast<Call*>(argument)->body)(index); }

  quern_runner runner_;
};

}  // namespace quern::capi

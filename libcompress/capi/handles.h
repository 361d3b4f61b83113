// What the opaque handles of the C interface are.
#pragma once

#include <optional>
#include <string>

#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/quern.h>

#include "libcompress/capi/barrier.h"

namespace quern::capi {

/// The caller's threads as the library's runner.
class CallerRunner final : public TaskRunner {
 public:
  explicit CallerRunner(const quern_runner& runner) : runner_(runner) {}
  void run(std::size_t tasks, const std::function<void(std::size_t)>& body) override;
  std::size_t width() const override { return runner_.width; }

 private:
  quern_runner runner_;
};

}  // namespace quern::capi

struct quern_context {
  quern::Execution execution;
  std::optional<quern::capi::CallerRunner> runner;
  quern::capi::ErrorText error;
};

struct quern_params {
  quern::CompressOptions options;
};

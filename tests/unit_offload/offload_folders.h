// Optimizers over folders of the system, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "offload/optimizer.h"

namespace quern::testing {

/// A folder of its own for each test.
class Offload : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = info->name();
    std::replace(name.begin(), name.end(), '/', '-');
    root_ = std::filesystem::temp_directory_path() / ("quern-offload-" + std::to_string(::getpid()) + name);
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  offload::FolderOptions folder(const std::string& name, const std::string& turn = "") const {
    offload::FolderOptions options;
    options.path = String((root_ / name).string());
    if (!turn.empty()) options.turn_file = String((root_ / turn).string());
    return options;
  }
  std::unique_ptr<offload::Optimizer> open(const offload::OptimizerOptions& options) {
    auto made = offload::Optimizer::open(storage::system_files(), options, report_);
    EXPECT_TRUE(made.ok()) << report_.problem << made.status().text();
    return made.ok() ? std::move(made).value() : nullptr;
  }
  StatusCode refused(const offload::OptimizerOptions& options) {
    report_ = {};
    const auto made = offload::Optimizer::open(storage::system_files(), options, report_);
    EXPECT_FALSE(made.ok());
    EXPECT_FALSE(report_.problem.empty() && made.status().text().empty());
    return made.status().code();
  }

  std::filesystem::path root_;
  storage::Report report_;
};

}  // namespace quern::testing

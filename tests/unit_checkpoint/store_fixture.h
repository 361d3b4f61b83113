// A store on a disk in memory, and what is asked of a report.
#pragma once

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/convert/checkpoint_files.h"
#include "checkpoint/store/store.h"
#include "tests/faults/simulated_disk.h"

namespace quern::testing {

/// Collects what is loaded.
class MemorySink final : public checkpoint::FileSink {
 public:
  Status write(std::span<const std::uint8_t> bytes, checkpoint::Report&) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::vector<std::uint8_t> bytes_;
};

class StoreFixture : public ::testing::Test {
 protected:
  bool notes_say(std::string_view part) const {
    for (const String& note : report_.notes)
      if (std::string_view(note).find(part) != std::string_view::npos) return true;
    return false;
  }

  SimulatedDisk disk_;
  checkpoint::Store store_{disk_, "store"};
  checkpoint::Report report_;
  SerialRunner runner_;
};

}  // namespace quern::testing

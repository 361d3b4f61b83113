// What the opaque handles of the C interface are.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/execution.h>
#include <quern/models.h>
#include <quern/quern.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/caller_memory.h"
#include "libcompress/capi/caller_runner.h"

namespace quern::capi {

/// Models that the caller gave, and the codecs that find them.
struct GivenModels : Allocated {
  ModelList list;
  CodecsWithModels codecs{list};
};

}  // namespace quern::capi

struct quern_context {
  explicit quern_context(const quern_allocator& allocator) noexcept : memory(allocator) {}

  quern::capi::CallerMemory memory;
  quern::Execution execution;
  std::optional<quern::capi::CallerRunner> runner;
  std::unique_ptr<quern::Device> device;
  quern::capi::ErrorLine error;
  std::unique_ptr<quern::capi::GivenModels> models;

  const quern::Registry& codecs() const { return models ? models->codecs.registry() : quern::builtin_codecs(); }
};

struct quern_params {
  explicit quern_params(const quern_allocator& allocator) noexcept : memory(allocator), options(made_in(memory)) {}

  mutable quern::capi::CallerMemory memory;
  quern::CompressOptions options;

 private:
  static quern::CompressOptions made_in(std::pmr::memory_resource& memory) {
    const quern::MemoryScope scope(&memory);
    return {};
  }
};

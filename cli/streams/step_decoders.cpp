#include "cli/files/step_decoders.h"

#include <utility>

#include "cli/args/exit_codes.h"
#include "cli/models/model_files.h"

namespace quern::cli {

StepDecoders::StepDecoders(std::vector<std::span<const std::uint8_t>> streams, std::string name)
    : streams_(std::move(streams)), name_(std::move(name)) {
  for (const auto& stream : streams_) {
    MemorySource source(stream);
    const auto found = inspect_reference(source, codecs());
    references_.push_back(found.ok() ? *found : std::nullopt);
  }
}

std::unique_ptr<Decoder> StepDecoders::open(std::size_t step, const Execution& execution,
                                            const DecompressOptions& options) {
  return check(try_open(step, execution, options), Phase::decode, name_);
}

Result<std::unique_ptr<Decoder>> StepDecoders::try_open(std::size_t step, const Execution& execution,
                                                        const DecompressOptions& options) {
  const auto& reference = references_[step];
  const std::size_t depth = reference ? reference->depth : 0;
  if (depth > step)
    return Status(StatusCode::reference_missing,
                  "the stream was predicted from the array whose values have the hash {0.x}; of the steps before it, "
                  "{1} are missing",
                  static_cast<std::int64_t>(reference->hash), static_cast<std::int64_t>(depth - step));
  sources_.clear();
  if (depth > 0 && step == next_ && view_.data != nullptr) {
    sources_.push_back(std::make_unique<MemorySource>(streams_[step]));
    return open_step_beside(*sources_[0], view_, codecs(), execution, options);
  }
  std::vector<ByteSource*> chain;
  for (std::size_t i = step - depth; i <= step; ++i) {
    sources_.push_back(std::make_unique<MemorySource>(streams_[i]));
    chain.push_back(sources_.back().get());
  }
  return open_step_chain(chain, codecs(), execution, options);
}

void StepDecoders::keep(std::size_t step, const StreamInfo& info, Buffer values) {
  view_ = {};
  if (!predicts_next(step)) return;
  values_ = std::move(values);
  view_ = {values_.data(), info.dtype, info.shape};
  next_ = step + 1;
}

}  // namespace quern::cli

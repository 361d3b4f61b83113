#include "cli/streams/step_decoders.h"

#include <algorithm>
#include <utility>

#include "cli/args/exit_codes.h"
#include "cli/models/model_files.h"

namespace quern::cli {

bool may_predict_next(const StreamInfo& info) {
  return dynamic_cast<const ReferenceCodec*>(builtin_codecs().by_id(info.codec_id)) != nullptr;
}

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
  forget();
  if (!predicts_next(step)) return;
  values_ = std::move(values);
  view_ = {values_.data(), info.dtype, info.shape};
  next_ = step + 1;
}

void StepDecoders::forget() {
  view_ = {};
  values_ = Buffer();
}

Result<std::uint64_t> StepDecoders::approach(std::size_t step, const StreamInfo& info, const Execution& execution,
                                             const DecompressOptions& options) {
  const std::size_t depth = references_[step] ? references_[step]->depth : 0;
  std::uint64_t bytes_read = 0;
  // A step whose key step is missing is refused where it is opened.
  for (std::size_t i = step - std::min(depth, step); i < step; ++i) {
    auto decoder = try_open(i, execution, options);
    if (!decoder.ok()) return decoder.status();
    const StreamInfo& here = (*decoder)->info();
    if (here.dtype != info.dtype || !(here.shape == info.shape))
      return Status(StatusCode::corrupt, "a step of the chain has another type or shape");
    Buffer values(info.shape.elems() * dtype_bytes(info.dtype), name_);
    const auto count = (*decoder)->pull(values.span());
    if (!count.ok()) return count.status();
    bytes_read += (*decoder)->report().bytes_read;
    keep(i, here, std::move(values));
  }
  return bytes_read;
}

}  // namespace quern::cli

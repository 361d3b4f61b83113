// Decoders of the streams of one file, each of which may have been predicted from the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/compress.h>
#include <quern/steps.h>

#include "cli/files/memory.h"

namespace quern::cli {

/// Whether later streams may be predicted from one of this codec.
bool may_predict_next(const StreamInfo& info);

/// One step after the other costs each stream once, as long as whole steps are kept; any other step costs what it needs
/// of the streams from its key step on.
class StepDecoders {
 public:
  /// The streams' bytes outlive the decoders. What is no stream of an array is found out where it is opened.
  StepDecoders(std::vector<std::span<const std::uint8_t>> streams, std::string name);

  std::size_t count() const { return streams_.size(); }
  /// What a step was predicted from.
  const std::optional<ReferenceId>& reference(std::size_t step) const { return references_[step]; }

  /// A decoder of a step, to be used before the next call. Throws CliError, with Exit::missing where the file lacks
  /// steps that this one needs.
  std::unique_ptr<Decoder> open(std::size_t step, const Execution& execution, const DecompressOptions& options);

  Result<std::unique_ptr<Decoder>> try_open(std::size_t step, const Execution& execution,
                                            const DecompressOptions& options);

  /// Whether the values of a step are worth keeping.
  bool predicts_next(std::size_t step) const { return step + 1 < count() && references_[step + 1].has_value(); }
  /// Takes all values of a step, if the next one was predicted from them, in the place of those kept so far.
  void keep(std::size_t step, const StreamInfo& info, Buffer values);
  /// Frees what is kept.
  void forget();
  /// Memory that kept values take.
  std::uint64_t kept_bytes() const { return values_.size(); }
  /// Keeps the values of the step before, from those of the key step on, one step after the other: takes memory for two
  /// steps, however long the chain is. They are of `info`'s type and shape, else it fails. Bytes read of the streams.
  Result<std::uint64_t> approach(std::size_t step, const StreamInfo& info, const Execution& execution,
                                 const DecompressOptions& options = {});

 private:
  std::vector<std::span<const std::uint8_t>> streams_;
  std::string name_;
  std::vector<std::optional<ReferenceId>> references_;
  std::vector<std::unique_ptr<MemorySource>> sources_;  ///< of the decoder opened last
  Buffer values_;                                       ///< of the step before `next_`
  ArrayView view_;
  std::size_t next_ = 0;
};

}  // namespace quern::cli

#include "codecs/stencil/plan/choose_parts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/cuts.h"
#include "codecs/stencil/plan/measured_choice.h"
#include "codecs/stencil/plan/trial.h"

namespace quern::codec::stencil {
namespace {

// Bytes that streams have for each chunk, for each inner chunk, and in the header for each part.
constexpr std::uint64_t kChunkHead = 6;
constexpr std::uint64_t kInnerHead = 4;
constexpr std::uint64_t kPartHead = 6;
constexpr std::uint64_t kMostChunkElems = UINT64_C(1) << 22;  // of the stream, where parts are chosen

/// What is seen of a run of slices.
class PartSample final : public PlanSample {
 public:
  PartSample(const PlanSample& all, std::uint64_t first, std::uint64_t elems)
      : all_(all), first_(first), elems_(std::min(elems, all.elems() - std::min(first, all.elems()))) {}
  std::uint64_t elems() const override { return elems_; }
  Result<ConstBox3> look(std::uint64_t first, const ConstBox3& place, void* room,
                         std::uint8_t* special_room) const override {
    return all_.look(first_ + first, place, room, special_room);
  }

 private:
  const PlanSample& all_;
  std::uint64_t first_;
  std::uint64_t elems_;
};

/// The request for a run of slices by itself.
class PartRequest {
 public:
  PartRequest(const PlanRequest& array, std::uint64_t begin, std::uint64_t slices, std::uint64_t memory_limit)
      : shape_(part_shape(array.shape, slices)),
        sample_(*array.sample, begin * (array.shape.elems() / array.shape[0]), shape_.elems()),
        request_(array) {
    request_.shape = shape_;
    request_.sample = &sample_;
    request_.memory_limit = memory_limit;
  }
  PartRequest(const PartRequest&) = delete;
  PartRequest& operator=(const PartRequest&) = delete;
  const PlanRequest& get() const { return request_; }

 private:
  Shape shape_;
  PartSample sample_;
  PlanRequest request_;
};

/// A run of slices, and how it is coded by itself.
struct CodedPart {
  std::uint64_t slices = 0;
  std::uint64_t bytes = 0;
  PartEncoding encoding;
};

class Chooser {
 public:
  Chooser(const PlanRequest& request, const LayoutChoice& choice, const kernels::StencilKernels& kernels)
      : request_(request), choice_(choice), kernels_(kernels) {
    // Parts of a large array are planned as that is: not every layout encodes all of it.
    choice_.brief = true;
    const std::uint64_t most = most_encoded_whole(request);
    if (!choice_.comparison && most > 0 && !wants_psnr(request) && request.shape.elems() > most)
      choice_.comparison = Comparison::blocks;
  }

  Result<CodedPart> plan(std::uint64_t begin, std::uint64_t slices) {
    // What is kept of the whole and of other parts is not there for this one.
    const PartRequest part(request_, begin, slices, request_.memory_limit - std::min(held_, request_.memory_limit));
    QUERN_ASSIGN_OR_RETURN(ChosenLayout chosen, choose_layout(part.get(), choice_, kernels_));
    if (chosen.encoded && !hold(chosen.encoded->bytes())) chosen.encoded.reset();
    const std::uint64_t heads = kInnerHead * chunks_of(part.get().shape, chosen.way.layout) + kPartHead;
    return CodedPart{slices, chosen.bytes + heads,
                     PartEncoding{{slices, chosen.way.layout},
                                  encode_spec(part.get(), chosen.way, choice_.parts, kernels_),
                                  std::move(chosen.encoded)}};
  }

  /// What the array takes as a whole.
  std::uint64_t whole_bytes(const ChosenLayout& whole) {
    if (whole.encoded) held_ = whole.encoded->bytes();
    return whole.bytes + kChunkHead * chunks_of(request_.shape, whole.way.layout);
  }

  /// The parts that proposed cuts make; nothing once they take `most` bytes.
  Result<Vector<CodedPart>> plan_all(const Vector<Cut>& cuts, std::uint64_t most) {
    Vector<CodedPart> parts;
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i <= cuts.size();) {
      // Up to the next sure cut.
      Vector<CodedPart> group;
      const std::uint64_t group_begin = begin;
      do {
        const std::uint64_t end = i < cuts.size() ? cuts[i].slice : request_.shape[0];
        QUERN_ASSIGN_OR_RETURN(CodedPart part, plan(begin, end - begin));
        group.push_back(std::move(part));
        begin = end;
        ++i;
      } while (i <= cuts.size() && !cuts[i - 1].sure);
      QUERN_RETURN_IF_ERROR(join(group_begin, begin, group));
      for (CodedPart& part : group) {
        bytes += part.bytes;
        parts.push_back(std::move(part));
      }
      if (bytes >= most) return Vector<CodedPart>();
    }
    return parts;
  }

  /// From here on nothing is kept: parts have all of the memory.
  void keep_nothing() {
    keeps_ = false;
    held_ = 0;
    parts_held_ = 0;
  }

  ChosenParts result(Vector<CodedPart> parts) const {
    ChosenParts chosen;
    Vector<std::uint64_t> slices;
    for (CodedPart& part : parts) {
      slices.push_back(part.slices);
      chosen.parts.push_back(std::move(part.encoding));
    }
    chosen.chunk_slices = fewest_chunk_slices(slices);
    return chosen;
  }

 private:
  /// Whether chunks of so many bytes are kept: those of all parts together as far as those of one array are.
  bool hold(std::uint64_t bytes) {
    if (!keeps_ || !may_keep(request_, parts_held_ + bytes)) return false;
    parts_held_ += bytes;
    held_ += bytes;
    return true;
  }
  /// Joins neighbours where they are smaller as one part, from the first on, while all that is
  /// encoded for it is no more than the slices from `begin` to `end`, which they are.
  Status join(std::uint64_t begin, std::uint64_t end, Vector<CodedPart>& parts) {
    std::uint64_t left = end - begin;
    for (std::size_t i = 0; i + 1 < parts.size();) {
      const std::uint64_t slices = parts[i].slices + parts[i + 1].slices;
      if (slices > left) return {};
      left -= slices;
      QUERN_ASSIGN_OR_RETURN(CodedPart joined, plan(begin, slices));
      if (joined.bytes <= parts[i].bytes + parts[i + 1].bytes) {
        parts[i] = std::move(joined);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      } else {
        begin += parts[i].slices;
        ++i;
      }
    }
    return {};
  }

  static std::uint64_t chunks_of(const Shape& shape, const Layout& layout) {
    const auto counts = make_grid(shape, layout).counts();
    return counts[0] * counts[1] * counts[2];
  }

  const PlanRequest& request_;
  LayoutChoice choice_;
  const kernels::StencilKernels& kernels_;
  bool keeps_ = true;
  std::uint64_t held_ = 0;        ///< bytes of what is kept
  std::uint64_t parts_held_ = 0;  ///< of them of parts, joined ones counted again
};

std::uint64_t bytes_of(const Vector<CodedPart>& parts, std::uint64_t chunk_slices, std::uint64_t slices) {
  std::uint64_t bytes = kChunkHead * ((slices + chunk_slices - 1) / chunk_slices);
  for (const CodedPart& part : parts) bytes += part.bytes;
  return bytes;
}

std::uint64_t chunk_slices_of(const Vector<CodedPart>& parts) {
  Vector<std::uint64_t> slices;
  for (const CodedPart& part : parts) slices.push_back(part.slices);
  return fewest_chunk_slices(slices);
}

/// Whether chunks of the stream are larger than those of the array as a whole, and than what is still decoded quickly
/// where a region or a damaged byte concerns one.
bool makes_large_chunks(const PlanRequest& request, std::uint64_t chunk_slices, const ChosenLayout& whole) {
  const std::uint64_t elems = chunk_slices * (request.shape.elems() / request.shape[0]);
  const auto own = make_grid(request.shape, whole.way.layout).chunk;
  return elems > kMostChunkElems && elems > own[0] * own[1] * own[2];
}

/// Whether parts that were asked for can be planned.
Status check_parts(const PlanRequest& request, const LayoutChoice& choice, std::span<const std::uint64_t> slices) {
  if (request.sample->elems() < request.shape.elems())
    return Status(StatusCode::invalid_argument,
                  "stencil: parts can be asked for in arrays of at most 64 MiB; leave the setting out, or give "
                  "parts=off, or compress the runs of slices as arrays of their own");
  std::uint64_t left = request.shape[0];
  for (const std::uint64_t n : slices) {
    if (n == 0 || n > left)
      return Status(StatusCode::invalid_argument, "stencil: slices of parts must add up to the leading axis");
    left -= n;
    if (choice.axes && choice.axes->second > part_shape(request.shape, n).rank())
      return Status(StatusCode::invalid_argument,
                    "stencil: the axes of layout do not fit a part of one slice, which has an axis less than the "
                    "array; give smaller numbers of axes, or parts of two slices or more");
  }
  if (left > 0) return Status(StatusCode::invalid_argument, "stencil: slices of parts must add up to the leading axis");
  return {};
}

}  // namespace

Result<std::optional<ChosenParts>> choose_parts(const PlanRequest& request, const LayoutChoice& choice,
                                                const kernels::StencilKernels& kernels, ChosenLayout& whole) {
  // Where the whole was encoded there is memory for parts, too: whether an array is cut does not hang on the limit.
  const bool measured = comparison_of(request, choice) == Comparison::whole;
  if (!measured || choice.axes || request.max_chunks != UINT64_MAX) return std::optional<ChosenParts>();
  QUERN_ASSIGN_OR_RETURN(const Vector<Cut> cuts, propose_cuts(request));
  if (cuts.empty()) return std::optional<ChosenParts>();
  Chooser chooser(request, choice, kernels);
  const std::uint64_t most = chooser.whole_bytes(whole);
  auto parts = chooser.plan_all(cuts, most);
  if (parts.status().code() == StatusCode::memory_limit) {
    whole.encoded.reset();
    chooser.keep_nothing();
    parts = chooser.plan_all(cuts, most);
  }
  if (parts.status().code() == StatusCode::memory_limit)
    return Status(StatusCode::memory_limit,
                  "encoding slices in parts needs {0} bytes at least, the limit is {1}; --set parts=off needs less",
                  parts.status().first(), static_cast<std::int64_t>(request.memory_limit));
  if (!parts.ok()) return parts.status();
  if (parts->size() < 2) return std::optional<ChosenParts>();
  const std::uint64_t chunk_slices = chunk_slices_of(*parts);
  if (bytes_of(*parts, chunk_slices, request.shape[0]) >= most || makes_large_chunks(request, chunk_slices, whole))
    return std::optional<ChosenParts>();
  return std::optional<ChosenParts>(chooser.result(std::move(*parts)));
}

Result<ChosenParts> take_parts(const PlanRequest& request, const LayoutChoice& choice,
                               const kernels::StencilKernels& kernels, std::span<const std::uint64_t> slices) {
  QUERN_RETURN_IF_ERROR(check_parts(request, choice, slices));
  Chooser chooser(request, choice, kernels);
  Vector<CodedPart> parts;
  std::uint64_t begin = 0;
  for (const std::uint64_t n : slices) {
    QUERN_ASSIGN_OR_RETURN(CodedPart part, chooser.plan(begin, n));
    parts.push_back(std::move(part));
    begin += n;
  }
  return chooser.result(std::move(parts));
}

}  // namespace quern::codec::stencil

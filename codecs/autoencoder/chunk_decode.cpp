// Bytes to a chunk. The bytes are hostile: whatever they are, nothing is read or written out of bounds.
#include <cstring>

#include "codecs/autoencoder/chunk.h"
#include "codecs/autoencoder/chunk_head.h"
#include "codecs/autoencoder/plane.h"
#include "codecs/autoencoder/work_values.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "kernels/common/number_elements.h"
#include "kernels/entropy/rans.h"
#include "libcompress/core/element_of.h"
#include "libcompress/format/reader.h"

namespace quern::codec::autoencoder {
namespace {

Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }

struct DecodeMemory {
  DecodeMemory(Arena& arena, const Extents& chunk, std::size_t block_elems)
      : values(arena, chunk),
        number_tables(arena.take<kernels::TokenTable>(kernels::kContextBins)),
        residual_tables(arena.take<kernels::TokenTable>(kernels::kContextBins)),
        predicted(arena.take<std::int64_t>(block_elems)) {}
  WorkValues values;
  kernels::TokenTable* number_tables;
  kernels::TokenTable* residual_tables;
  std::int64_t* predicted;  ///< of one block
};

std::size_t block_elems(const ChunkSpec& spec) {
  return static_cast<std::size_t>(spec.block[0] * spec.block[1] * spec.block[2]);
}

/// A block as its numbers tell it.
struct BlockNumbers {
  unsigned method = 0;
  unsigned level = 0;
  std::int64_t mean = 0;
  Slopes slopes{};
};

template <class Element>
class ChunkReader {
 public:
  using Bits = typename Element::Bits;

  ChunkReader(const ChunkSpec& spec, const MutableBox3& out, DecodeMemory& memory)
      : spec_(spec), out_(out), memory_(memory), blocks_(out.extents, spec.block) {}

  Status run(std::span<const std::uint8_t> in) {
    if (in.empty()) return corrupt("autoencoder: a chunk is empty");
    const std::uint8_t mode = in[0];
    in = in.subspan(1);
    if (mode == static_cast<std::uint8_t>(Mode::raw)) return raw(in);
    if (mode == static_cast<std::uint8_t>(Mode::constant)) return constant(in);
    if (mode == static_cast<std::uint8_t>(Mode::blocks)) return blocks(in);
    return corrupt("autoencoder: a chunk of an unknown kind");
  }

 private:
  Bits* row(std::uint64_t z, std::uint64_t y) const {
    return static_cast<Bits*>(out_.data) + z * out_.strides[0] + y * out_.strides[1];
  }
  template <class F>
  void for_each_row(const F& f) const {
    for (std::uint64_t z = 0; z < out_.extents[0]; ++z)
      for (std::uint64_t y = 0; y < out_.extents[1]; ++y) f(row(z, y));
  }

  Status raw(std::span<const std::uint8_t> in) const {
    const auto bytes = static_cast<std::size_t>(out_.extents[2]) * sizeof(Bits);
    if (in.size() != out_.elems() * sizeof(Bits)) return corrupt("autoencoder: a raw chunk has the wrong size");
    for_each_row([&](Bits* to) {
      std::memcpy(to, in.data(), bytes);
      in = in.subspan(bytes);
    });
    return {};
  }

  Status constant(std::span<const std::uint8_t> in) const {
    if (in.size() != sizeof(Bits)) return corrupt("autoencoder: a constant chunk has the wrong size");
    Bits value;
    std::memcpy(&value, in.data(), sizeof(value));
    for_each_row([&](Bits* to) { std::fill_n(to, out_.extents[2], value); });
    return {};
  }

  Status blocks(std::span<const std::uint8_t> in) {
    QUERN_ASSIGN_OR_RETURN(head_, read_head(in));
    if (head_.masked != (out_.special != nullptr)) return corrupt("autoencoder: a chunk and its mask do not agree");
    QUERN_RETURN_IF_ERROR(check_networks());
    Reader reader(in);
    const std::uint64_t elems = out_.elems();
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(elems));
    const Reader exceptions_at = reader;
    QUERN_RETURN_IF_ERROR(walk_exceptions(reader, exceptions, [](std::uint64_t, Bits) {}));
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t number_bytes, reader.varint(in.size()));
    QUERN_ASSIGN_OR_RETURN(const auto numbers, reader.bytes(number_bytes));
    Reader numbers_reader(numbers);
    QUERN_RETURN_IF_ERROR(numbers_.open(0, numbers_reader, numbers));
    QUERN_RETURN_IF_ERROR(coding::fill_token_tables(head_.numbers, memory_.number_tables, number_tables_));
    if (head_.has_residuals) {
      QUERN_RETURN_IF_ERROR(residuals_.open(head_.stream_bits, reader, in));
      QUERN_RETURN_IF_ERROR(coding::fill_token_tables(head_.residuals, memory_.residual_tables, residual_tables_));
    } else if (reader.remaining() != 0) {
      return corrupt("autoencoder: bytes are left over after a chunk");
    }
    QUERN_RETURN_IF_ERROR(decode_blocks());
    Reader again = exceptions_at;
    return walk_exceptions(again, exceptions, [&](std::uint64_t index, Bits bits) {
      const std::uint64_t columns = out_.extents[2];
      row(index / columns / out_.extents[1], index / columns % out_.extents[1])[index % columns] = bits;
    });
  }

  Status check_networks() const {
    if (!head_.networks.used()) return {};
    if (spec_.model == nullptr && spec_.model_missing)
      return Status(StatusCode::missing_model, "the stream needs its model, which was not found");
    for (std::size_t p = 0; p < models::kMostPredictors; ++p)
      if (head_.networks.latent_step[p] != 0 && (spec_.model == nullptr || p >= spec_.model->predictors.size()))
        return corrupt("autoencoder: a chunk uses a network that there is not");
    return {};
  }

  template <class Visit>
  Status walk_exceptions(Reader& reader, std::uint64_t count, const Visit& visit) const {
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < count; ++i, ++next) {
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t gap, reader.varint(out_.elems()));
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, reader.unsigned_of(sizeof(Bits)));
      next += gap;
      if (next >= out_.elems()) return corrupt("autoencoder: an exception lies outside its chunk");
      visit(next, static_cast<Bits>(bits));
    }
    return {};
  }

  std::int64_t number(std::uint32_t bin) { return kernels::decode_residual(numbers_.sources[0], *number_tables_[bin]); }

  Status decode_blocks() {
    memory_.values.clear();
    std::size_t rows = 0;
    for (std::size_t b = 0; b < blocks_.count(); ++b) {
      const Block block = blocks_.at(b);
      BlockNumbers numbers;
      QUERN_RETURN_IF_ERROR(read_numbers(block, numbers));
      if (numbers_.sources[0].failed) return corrupt("autoencoder: numbers of blocks are cut short");
      kernels::RansSource& stream = residuals_.sources[rows & residuals_.mask];
      if (numbers.level > 0) {
        if (!head_.has_residuals) return corrupt("autoencoder: a block has residuals, and its chunk has none");
        ++rows;
      }
      rebuild(block, numbers, stream);
      if (numbers.level > 0 && stream.failed) return corrupt("autoencoder: a stream is too short");
    }
    if (!numbers_.finished() || (head_.has_residuals && !residuals_.finished()))
      return corrupt("autoencoder: a stream does not end where it should");
    return {};
  }

  /// What a block is predicted by; where that is not Lorenzo, `memory_.predicted` gets the predictions.
  Status read_numbers(const Block& block, BlockNumbers& numbers) {
    const std::int64_t method = number(kMethodBins + history_.method) + history_.method;
    const std::int64_t level = number(kLevelBin) + history_.level;
    if (method < 0 || method >= kMostMethods || level < 0 || level > WorkValues::kMostLevel)
      return corrupt("autoencoder: a block has an unknown method or level");
    numbers.method = static_cast<unsigned>(method);
    numbers.level = static_cast<unsigned>(level);
    history_.method = numbers.method;
    history_.level = numbers.level;
    if (numbers.method == kLorenzo) return {};
    history_.mean = cut_value(static_cast<std::uint64_t>(history_.mean) + static_cast<std::uint64_t>(number(kMeanBin)));
    if (numbers.method == kPlane)
      for (std::size_t a = 0; a < 3; ++a)
        if (spec_.block[a] > 1) numbers.slopes[a] = number(kSlopeBin);
    if (numbers.method < kFirstNetwork) {
      predict_plane(block, spec_.block, history_.mean, numbers.slopes, memory_.predicted);
      return {};
    }
    return read_latents(block, numbers.method - kFirstNetwork);
  }

  Status read_latents(const Block& block, std::size_t network) {
    if (head_.networks.latent_step[network] == 0) return corrupt("autoencoder: a block uses a network without a step");
    latents_.resize(spec_.model->predictors[network].latents());
    for (std::size_t i = 0; i < latents_.size(); ++i)
      latents_[i] = static_cast<std::int32_t>(number(latent_bin(network, i, latents_.size())));
    predict_block(*spec_.model, network, *spec_.networks, head_.networks, latents_, networks_, memory_.predicted);
    const std::uint64_t mean = static_cast<std::uint64_t>(history_.mean) << kMeanShift;
    // From the whole block to its part in the chunk; this is at or before where it comes from.
    std::size_t to = 0;
    for (std::uint64_t z = 0; z < block.extents[0]; ++z)
      for (std::uint64_t y = 0; y < block.extents[1]; ++y)
        for (std::uint64_t x = 0; x < block.extents[2]; ++x)
          memory_.predicted[to++] = cut_value(
              mean + static_cast<std::uint64_t>(memory_.predicted[(z * spec_.block[1] + y) * spec_.block[2] + x]));
    return {};
  }

  void rebuild(const Block& block, const BlockNumbers& numbers, kernels::RansSource& stream) {
    WorkValues& values = memory_.values;
    const double unit = head_.format.unit();
    for_each_element(block, [&](const Extents& at, std::size_t i) {
      const std::size_t here = values.index(at);
      if (is_special(out_, at)) {
        values.set(here, values.repeated(here));
        return;
      }
      const std::int64_t predicted = numbers.method == kLorenzo ? values.lorenzo(here) : memory_.predicted[i];
      std::int64_t code = 0;
      if (numbers.level > 0) {
        const std::uint32_t bin = kernels::context_bin(values.context_sum(here, numbers.level));
        code = kernels::decode_residual(stream, *residual_tables_[bin]);
        values.set_magnitude(here, code);
      }
      const std::int64_t value =
          cut_value(static_cast<std::uint64_t>(predicted) + (static_cast<std::uint64_t>(code) << kFractionBits));
      values.set(here, value);
      row(at[0], at[1])[at[2]] = Element::bits(static_cast<double>(value) * unit + head_.format.base);
    });
  }

  const ChunkSpec& spec_;
  const MutableBox3& out_;
  DecodeMemory& memory_;
  BlockGrid blocks_;
  ChunkHead head_;
  BlockHistory history_;
  coding::StreamReader numbers_, residuals_;
  coding::ServingTables number_tables_{}, residual_tables_{};
  std::vector<std::int32_t> latents_;
  NetworkMemory networks_;
};

}  // namespace

std::size_t decode_scratch_bytes(const ChunkSpec& spec) {
  Arena arena(nullptr);
  const DecodeMemory memory(arena, spec.most, block_elems(spec));
  return arena.used();
}

Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) {
  Arena arena(scratch.data());
  DecodeMemory memory(arena, out.extents, block_elems(spec));
  if (arena.used() > scratch.size())
    return Status(StatusCode::internal, "autoencoder: scratch is too small for a chunk");
  return kernels::with_number_element(element_of(spec.dtype), [&](auto element) -> Status {
    return ChunkReader<decltype(element)>(spec, out, memory).run(in);
  });
}

}  // namespace quern::codec::autoencoder

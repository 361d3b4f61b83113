#include "codecs/stencil/prequantized_chunk.h"

#include <utility>

#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/integer_chunk.h"
#include "kernels/common/quantizers.h"
#include "libcompress/core/arena.h"
#include "libcompress/core/element_of.h"
#include "libcompress/core/quantizer_rules.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

namespace {

constexpr std::int64_t kMostCode = INT64_C(1) << 30;  ///< so that what encoders add to codes stays within 32 bits

/// Calls f.operator()<Quantizer>() for the quantizer of an element type under an absolute bound.
template <class F>
void with_absolute_quantizer(DType dtype, F&& f) {
  kernels::with_quantizer(element_of(dtype), kernels::QuantizerKind::absolute,
                          [&]<class Q, class Exact>() { f.template operator()<Q>(); });
}

/// A code as the quantizer has it, as a number.
template <class Q>
std::int64_t signed_code(typename Q::Word code, bool is_unsigned) {
  if (is_unsigned) return static_cast<std::int64_t>(code);
  return static_cast<std::make_signed_t<typename Q::Word>>(code);
}

template <class Q>
void find_codes(const EncodeSpec& spec, const ConstBox3& in, const QuantizerRules& rules, PrequantizedChunk& found) {
  using Bits = typename Q::Bits;
  const Q quantizer = kernels::make_quantizer<Q>(rules.params);
  const bool is_unsigned = spec.dtype == DType::u8 || spec.dtype == DType::u16 || spec.dtype == DType::u32;
  const auto* const data = static_cast<const Bits*>(in.data);
  const std::size_t rows = static_cast<std::size_t>(in.extents[0] * in.extents[1]);
  const std::size_t columns = static_cast<std::size_t>(in.extents[2]);
  const std::size_t most_exceptions = rows * columns / 8;
  Vector<std::pair<std::uint64_t, Bits>> exceptions;
  found.codes.resize(rows * columns);
  std::int32_t last = 0;
  for (std::size_t r = 0, at = 0; r < rows; ++r) {
    const Bits* const row = data + row_offset(in, r);
    const std::uint8_t* const special = special_row(in, r);
    for (std::size_t x = 0; x < columns; ++x, ++at) {
      if (special == nullptr || special[x] == 0) {
        typename Q::Word code = 0;
        static_cast<void>(quantizer.encode(row[x], code));
        const std::int64_t number = signed_code<Q>(code, is_unsigned);
        const bool kept = quantizer.decode(code, false) == row[x] && -kMostCode < number && number < kMostCode;
        if (kept) last = static_cast<std::int32_t>(number);
        if (!kept) exceptions.emplace_back(at, row[x]);
        if (exceptions.size() > most_exceptions) {
          found.codes.clear();
          return;
        }
      }
      found.codes[at] = last;
    }
  }
  Writer writer(found.head);
  writer.u8(static_cast<std::uint8_t>(Mode::prequantized));
  if (is_float(spec.dtype)) {
    writer.f64(rules.params.step);
  } else {
    writer.varint(rules.params.int_half);
  }
  write_exceptions(exceptions, writer);
}

/// Reads the step that codes are multiples of.
Status read_step(DType dtype, Reader& reader, kernels::QuantizerParams& params) {
  if (is_integer(dtype)) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t half, reader.varint(largest_half(dtype)));
    set_int_step(half, dtype, params);
    return {};
  }
  QUERN_ASSIGN_OR_RETURN(params.step, reader.f64());
  if (!is_float_step(dtype, params.step))
    return Status(StatusCode::corrupt, "stencil: the step of prequantized elements is no step");
  return {};
}

/// The box that the chunk of codes is decoded to: `room`, or where that is null the elements' own memory.
MutableBox3 code_box(DType dtype, const MutableBox3& out, std::int32_t* room) {
  if (room == nullptr) return integer_box(dtype, out);
  MutableBox3 box = out;
  box.data = room;
  box.strides = {out.extents[1] * out.extents[2], out.extents[2]};
  return box;
}

}  // namespace

PrequantizedChunk prequantized_chunk(const EncodeSpec& spec, const ConstBox3& in) {
  PrequantizedChunk found;
  const QuantizerRules rules = quantizer_rules(spec.dtype, {BoundKind::abs, spec.bound});
  if (rules.kind != kernels::QuantizerKind::absolute) return found;
  with_absolute_quantizer(spec.dtype, [&]<class Q>() { find_codes<Q>(spec, in, rules, found); });
  found.box = in;
  found.box.data = found.codes.data();
  found.box.strides = {in.extents[1] * in.extents[2], in.extents[2]};
  found.spec = integer_spec(spec);
  found.spec.bound = 0.5;
  return found;
}

Status decode_prequantized(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                           std::span<std::uint8_t> scratch) {
  Reader reader(in);
  kernels::QuantizerParams params;
  QUERN_RETURN_IF_ERROR(read_step(spec.dtype, reader, params));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(out.elems()));
  const Reader exceptions_at = reader;
  Arena arena(scratch.data());
  const bool narrow = dtype_bytes(spec.dtype) < sizeof(std::int32_t);
  std::int32_t* const room = narrow ? arena.take<std::int32_t>(static_cast<std::size_t>(out.elems())) : nullptr;
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  Status status;
  with_absolute_quantizer(spec.dtype, [&]<class Q>() {
    status = check_exceptions<typename Q::Bits>(reader, exceptions, out.elems());
    if (!status.ok()) return;
    const auto codes = in.last(reader.remaining());
    if (codes.empty() || !may_be_inside(codes[0])) {
      status = Status(StatusCode::corrupt, "stencil: a chunk of prequantized elements holds no chunk of codes");
      return;
    }
    status = decode_chunk(integer_spec(spec), codes, code_box(spec.dtype, out, room), scratch.subspan(arena.used()));
    if (!status.ok()) return;
    const Q quantizer = kernels::make_quantizer<Q>(params);
    spread_integers<typename Q::Bits>(room, out, [&](std::int32_t code) {
      return quantizer.decode(static_cast<typename Q::Word>(static_cast<std::int64_t>(code)), false);
    });
    Reader again = exceptions_at;
    status = put_exceptions<typename Q::Bits>(again, exceptions, out.elems(), out);
  });
  return status;
}

}  // namespace quern::codec::stencil

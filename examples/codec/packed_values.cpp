// Exact and quantized runs.
#include "examples/codec/packed_values.h"

#include <cstring>

#include <quern/memory.h>

#include "examples/codec/quantizer.h"

namespace quern::codec::packing {
namespace {

constexpr std::uint8_t kExact = 0;
constexpr std::uint8_t kQuantized = 1;
constexpr unsigned kCodeBits = 64;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

bool may_quantize(const ValueRun& run) {
  return run.bound.kind == BoundKind::abs && (run.dtype == DType::f32 || run.dtype == DType::f64);
}

unsigned bits_of(DType dtype) { return static_cast<unsigned>(8 * dtype_bytes(dtype)); }

std::size_t encode_exact(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  const std::size_t width = dtype_bytes(run.dtype);
  Vector<std::uint64_t> words(in.size() / width);
  ByteReader bits(in);
  for (std::uint64_t& word : words) word = bits.unsigned_of(width);
  ByteWriter writer(out);
  writer.u8(kExact);
  pack_words(words, bits_of(run.dtype), run.packing, writer);
  return writer.fits() ? writer.size() : 0;
}

template <class T>
std::size_t encode_quantized(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  const Quantizer<T> quantizer(run.bound.value);
  if (!quantizer.works()) return 0;
  Vector<std::uint64_t> codes(in.size() / sizeof(T));
  Vector<std::uint64_t> refused;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    T x;
    std::memcpy(&x, in.data() + i * sizeof(T), sizeof(T));
    std::int64_t code = 0;
    if (!quantizer.quantize(x, code)) {
      refused.push_back(i);
      code = before;
    }
    codes[i] = static_cast<std::uint64_t>(code);
    before = code;
  }
  ByteWriter writer(out);
  writer.u8(kQuantized);
  writer.varint(refused.size());
  for (std::size_t r = 0; r < refused.size(); ++r) writer.varint(refused[r] - (r > 0 ? refused[r - 1] + 1 : 0));
  for (const std::uint64_t i : refused) writer.bytes(in.subspan(static_cast<std::size_t>(i) * sizeof(T), sizeof(T)));
  pack_words(codes, kCodeBits, run.packing, writer);
  return writer.fits() ? writer.size() : 0;
}

Status decode_exact(const ValueRun& run, ByteReader& in, std::span<std::uint8_t> out) {
  const std::size_t width = dtype_bytes(run.dtype);
  Vector<std::uint64_t> words(out.size() / width);
  QUERN_RETURN_IF_ERROR(unpack_words(in, bits_of(run.dtype), run.packing, words));
  ByteWriter values(out);
  for (const std::uint64_t word : words) values.unsigned_of(word, width);
  return {};
}

template <class T>
Status decode_quantized(const ValueRun& run, ByteReader& in, std::span<std::uint8_t> out) {
  const Quantizer<T> quantizer(run.bound.value);
  if (!quantizer.works()) return corrupt("values are quantized under a bound that has no step");
  const std::size_t count = out.size() / sizeof(T);
  // Each refused value takes a byte of the stream at least: the list is no longer than the input.
  const std::uint64_t listed = in.varint(count);
  Vector<std::size_t> refused;
  for (std::uint64_t r = 0; r < listed && in.ok(); ++r) {
    const std::size_t first = refused.empty() ? 0 : refused.back() + 1;
    const std::uint64_t gap = in.varint(count);
    if (!in.ok() || gap >= count - first) return corrupt("a value that is stored as it is lies outside");
    refused.push_back(first + static_cast<std::size_t>(gap));
  }
  const auto exact = in.bytes(refused.size() * sizeof(T));
  if (!in.ok()) return corrupt("the values that are stored as they are are cut off");
  Vector<std::uint64_t> codes(count);
  QUERN_RETURN_IF_ERROR(unpack_words(in, kCodeBits, run.packing, codes));
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    if (!quantizer.value(static_cast<std::int64_t>(codes[i]), x)) return corrupt("a code stands for no finite number");
    std::memcpy(out.data() + i * sizeof(T), &x, sizeof(T));
  }
  for (std::size_t r = 0; r < refused.size(); ++r)
    std::memcpy(out.data() + refused[r] * sizeof(T), exact.data() + r * sizeof(T), sizeof(T));
  return {};
}

Status decode_mode(const ValueRun& run, ByteReader& in, std::span<std::uint8_t> out) {
  const std::uint8_t mode = in.u8();
  if (mode == kExact && in.ok()) return decode_exact(run, in, out);
  if (mode != kQuantized || !may_quantize(run)) return corrupt("the values are coded in a way that does not exist");
  return run.dtype == DType::f32 ? decode_quantized<float>(run, in, out) : decode_quantized<double>(run, in, out);
}

}  // namespace

std::size_t encode_values(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  std::size_t bytes = 0;
  if (may_quantize(run))
    bytes = run.dtype == DType::f32 ? encode_quantized<float>(run, in, out) : encode_quantized<double>(run, in, out);
  return bytes > 0 ? bytes : encode_exact(run, in, out);
}

std::uint64_t most_encoded_bytes(const ValueRun& run, std::uint64_t bytes) {
  return 1 + most_packed_bytes(bytes / dtype_bytes(run.dtype), bits_of(run.dtype), run.packing);
}

Status decode_values(const ValueRun& run, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  ByteReader reader(in);
  QUERN_RETURN_IF_ERROR(decode_mode(run, reader, out));
  if (reader.remaining() != 0) return corrupt("bytes are left over after the packed values");
  return {};
}

std::uint64_t working_bytes_of_values(std::uint64_t bytes) {
  // A word for each value, of one byte at least; the list of refused ones, which doubles as it grows, only for values
  // of four bytes and more.
  return 8 * bytes + 4096;
}

}  // namespace quern::codec::packing

// 8-bit and 4-bit codes with one scale a block, in the maps that 8-bit and 4-bit optimizers keep their moments in
// (T. Dettmers, "8-bit Optimizers via Block-wise Quantization", arXiv:2110.02861): for interchange with them and for a
// fixed rate. There is no bound here: a small second moment may become 0.
#include <array>

#include "codecs/tensor/bounded/lossy_chunk.h"

namespace quern::codec::tensor {
namespace {

constexpr double kPowersOfTen[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};

/// Values of codes, ascending, at most 1.
struct CodeMap {
  std::array<float, 256> values{};
  std::size_t count = 0;
};

/// Dynamic tree map: for each power of ten from 10^(1 - exponents) to 1, the middles of equal parts of [0.1, 1], twice
/// as many parts as for the power before; 0 and 1. With signs, half as many parts and their negatives.
constexpr CodeMap dynamic_map(bool with_sign, unsigned exponents) {
  CodeMap map;
  const auto push = [&](double v) { map.values[map.count++] = static_cast<float>(v); };
  for (unsigned e = 0; e < exponents; ++e) {
    const unsigned parts = 1u << (with_sign ? e : e + 1);
    for (unsigned j = 0; j < parts; ++j) {
      const double middle = (0.1 + 0.9 * (2 * j + 1) / (2 * parts)) * kPowersOfTen[6 + e + 1 - exponents];
      push(middle);
      if (with_sign) push(-middle);
    }
  }
  push(0);
  push(1);
  for (std::size_t i = 1; i < map.count; ++i)  // insertion sort
    for (std::size_t j = i; j > 0 && map.values[j] < map.values[j - 1]; --j) {
      const float v = map.values[j];
      map.values[j] = map.values[j - 1];
      map.values[j - 1] = v;
    }
  return map;
}

/// 1/16, 2/16, ... 1: without 0.
constexpr CodeMap sixteenths() {
  CodeMap map;
  for (; map.count < 16; ++map.count) map.values[map.count] = static_cast<float>(map.count + 1) / 16;
  return map;
}

constexpr CodeMap kSigned8 = dynamic_map(true, 7);
constexpr CodeMap kUnsigned8 = dynamic_map(false, 7);
constexpr CodeMap kSigned4 = dynamic_map(true, 3);
constexpr CodeMap kUnsigned4 = sixteenths();
static_assert(kSigned8.count == 256 && kUnsigned8.count == 256 && kSigned4.count == 16);

struct BlockForm {
  std::size_t block;
  unsigned code_bits;
  const CodeMap* with_sign;
  const CodeMap* without;
};
constexpr BlockForm kForm8{256, 8, &kSigned8, &kUnsigned8};
constexpr BlockForm kForm4{128, 4, &kSigned4, &kUnsigned4};

constexpr std::uint8_t kUnsignedSide = 0;
constexpr std::uint8_t kSignedSide = 1;

/// The nearest code, the lower one on a tie.
unsigned nearest_code(const CodeMap& map, float x) {
  std::size_t low = 0;
  std::size_t high = map.count - 1;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const float between = (map.values[middle] + map.values[middle + 1]) / 2;
    if (x <= between)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<unsigned>(low);
}

std::size_t code_bytes(const BlockForm& form, std::size_t elems) { return (elems * form.code_bits + 7) / 8; }
std::size_t blocks_of(const BlockForm& form, std::size_t elems) { return (elems + form.block - 1) / form.block; }

Status plan_blocks(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  QUERN_RETURN_IF_ERROR(check_bounded(plan.description, true));
  std::uint8_t side = kUnsignedSide;
  for (std::size_t i = 0; i < inputs.values.size() / 4; ++i)
    if (value_at(inputs.values, i) < 0) side = kSignedSide;
  plan.side.push_back(side);
  return {};
}

Status check_side(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  if (side.size() != 1 || side[0] > kSignedSide)
    return Status(StatusCode::corrupt, "tensor: the side of block codes says whether there are signs");
  return {};
}

template <const BlockForm& Form>
Result<std::size_t> encode_blocks(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& input,
                                  std::span<std::uint8_t> out, AlignedBuffer&) {
  const CodeMap& map = plan.side[0] == kSignedSide ? *Form.with_sign : *Form.without;
  const std::size_t elems = input.elems;
  Vector<std::uint8_t> coded;
  Vector<std::uint8_t> codes(code_bytes(Form, elems));
  SpecialRuns special;
  for (std::size_t begin = 0; begin < elems; begin += Form.block) {
    const std::size_t end = std::min(begin + Form.block, elems);
    std::uint32_t most = 0;  // bit patterns of magnitudes are in the order of the magnitudes
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t bits = bits_at(input.values, i);
      if (is_finite_bits(bits)) most = std::max(most, bits & 0x7fffffffu);
    }
    append_number(most, 4, coded);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t bits = bits_at(input.values, i);
      const bool finite = is_finite_bits(bits);
      if (!finite) special.add(static_cast<std::uint32_t>(i), bits);
      const float x = finite && most != 0 ? std::bit_cast<float>(bits) / std::bit_cast<float>(most) : 0;
      const std::size_t at = i * Form.code_bits;
      codes[at / 8] = static_cast<std::uint8_t>(codes[at / 8] | nearest_code(map, x) << at % 8);
    }
  }
  coded.insert(coded.end(), codes.begin(), codes.end());
  special.write(coded);
  return finish_chunk(input, coded, {}, out);
}

Result<TensorNeeds> needs_of_blocks(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_side(description, side));
  return TensorNeeds{};
}

template <const BlockForm& Form>
Status decode_blocks(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs&,
                     const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                     AlignedBuffer&) {
  QUERN_RETURN_IF_ERROR(check_side(description, side));
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  const CodeMap& map = side[0] == kSignedSide ? *Form.with_sign : *Form.without;
  const std::size_t elems = input.elems;
  ByteReader reader(bytes);
  const auto scales = reader.bytes(blocks_of(Form, elems) * 4);
  const auto codes = reader.bytes(code_bytes(Form, elems));
  if (!reader.ok()) return status_of(reader.fault());
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, elems));
  reader.expect_end();
  if (!reader.ok()) return status_of(reader.fault());
  constexpr unsigned kMask = (1u << Form.code_bits) - 1;
  for (std::size_t i = 0; i < elems; ++i) {
    const std::size_t at = i * Form.code_bits;
    const unsigned code = codes[at / 8] >> at % 8 & kMask;
    const float value = map.values[code] * value_at(scales, i / Form.block);
    put_bits(out, i, std::bit_cast<std::uint32_t>(value));
  }
  for (std::size_t s = 0; s < special.places().size(); ++s) put_bits(out, special.places()[s], special.bits()[s]);
  return {};
}

}  // namespace

const ModeCoder kBlk8Coder{Mode::blk8, plan_blocks, encode_blocks<kForm8>, needs_of_blocks, decode_blocks<kForm8>};
const ModeCoder kBlk4Coder{Mode::blk4, plan_blocks, encode_blocks<kForm4>, needs_of_blocks, decode_blocks<kForm4>};

}  // namespace quern::codec::tensor

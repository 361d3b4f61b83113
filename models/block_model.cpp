// The stored form of models for blocks.
#include "models/block_model.h"

#include <algorithm>
#include <bit>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "models/model_file.h"
#include "models/network_bytes.h"

namespace quern::models {
namespace {

constexpr std::uint8_t kMostUnitBits = 14;
/// What a network may take to evaluate, by what it makes: its numbers by those of a block and its latents, and products
/// by values of a block. Trained ones have at most 37 and 17280 (64 channels, which is the most).
constexpr std::uint64_t kMostTensorElems = 64;
constexpr std::uint64_t kMostProducts = std::uint64_t{1} << 16;

/// Null, or why nobody would train such a network: it is to take memory and time without end.
const char* check_work(const kernels::Network& network, std::uint64_t block_elems, std::uint64_t latents) {
  if (kernels::network_elems(network) > kMostTensorElems * (block_elems + latents))
    return "a network of the model has too many numbers for its blocks";
  if (kernels::network_products(network) > kMostProducts * block_elems)
    return "a network of the model takes too many products for its blocks";
  return nullptr;
}

Status read_predictor(Reader& in, std::size_t block_elems, BlockPredictor& predictor) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t kind, in.u8());
  if (kind != static_cast<std::uint8_t>(BlockPredictorKind::principal_components) &&
      kind != static_cast<std::uint8_t>(BlockPredictorKind::autoencoder))
    return Status(StatusCode::corrupt, "the model has a predictor of the unknown kind {0}", kind);
  predictor.kind = static_cast<BlockPredictorKind>(kind);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t encodes, in.u8());
  if (encodes > 1) return Status(StatusCode::corrupt, "the model's flag of an encoder is {0}", encodes);
  if (encodes == 1) {
    QUERN_ASSIGN_OR_RETURN(predictor.encoder, read_network(in));
  }
  QUERN_ASSIGN_OR_RETURN(predictor.decoder, read_network(in));
  const std::size_t latents = predictor.latents();
  if (latents > kMostLatents || predictor.decoder.out().elems() != block_elems)
    return Status(StatusCode::corrupt, "a decoder of the model does not fit its blocks");
  if (encodes == 1 && (predictor.encoder.in.elems() != block_elems || predictor.encoder.out().elems() != latents))
    return Status(StatusCode::corrupt, "an encoder of the model does not fit its blocks");
  for (const kernels::Network* network : {&predictor.encoder, &predictor.decoder})
    if (const char* const wrong = check_work(*network, block_elems, latents); wrong != nullptr)
      return Status(StatusCode::corrupt, wrong);
  return {};
}

Status read_body(Reader& in, BlockModel& model) {
  for (std::uint32_t& extent : model.block) {
    QUERN_ASSIGN_OR_RETURN(extent, in.u8());
    if (!std::has_single_bit(extent))
      return Status(StatusCode::corrupt, "the model's blocks have an extent of {0}, no power of two", extent);
  }
  if (model.block_elems() > kMostBlockElems) return Status(StatusCode::corrupt, "the model's blocks are too large");
  QUERN_ASSIGN_OR_RETURN(model.unit_bits, in.u8());
  if (model.unit_bits > kMostUnitBits)
    return Status(StatusCode::corrupt, "the model's numbers have {0} bits of fraction", model.unit_bits);
  QUERN_ASSIGN_OR_RETURN(model.record, read_record(in));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t predictors, in.varint(kMostPredictors));
  if (predictors == 0) return Status(StatusCode::corrupt, "the model has no predictor");
  model.predictors.resize(predictors);
  for (BlockPredictor& predictor : model.predictors)
    QUERN_RETURN_IF_ERROR(read_predictor(in, model.block_elems(), predictor));
  return in.expect_end();
}

}  // namespace

bool BlockModel::can_encode() const {
  return std::none_of(predictors.begin(), predictors.end(),
                      [](const BlockPredictor& p) { return p.encoder.layers.empty(); });
}

Vector<std::uint8_t> write_block_model(const BlockModel& model) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  begin_model_file(kBlockModelKind, out);
  for (const std::uint32_t extent : model.block) out.u8(static_cast<std::uint8_t>(extent));
  out.u8(model.unit_bits);
  write_record(model.record, out);
  out.varint(model.predictors.size());
  for (const BlockPredictor& predictor : model.predictors) {
    out.u8(static_cast<std::uint8_t>(predictor.kind));
    const bool encodes = !predictor.encoder.layers.empty();
    out.u8(encodes ? 1 : 0);
    if (encodes) write_network(predictor.encoder, out);
    write_network(predictor.decoder, out);
  }
  seal_model_file(bytes);
  return bytes;
}

Result<BlockModel> read_block_model(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(Reader in, open_model_file(bytes, kBlockModelKind));
  BlockModel model;
  QUERN_RETURN_IF_ERROR(read_body(in, model));
  return model;
}

BlockModel decoding_half(const BlockModel& model) {
  BlockModel half;
  half.block = model.block;
  half.unit_bits = model.unit_bits;
  for (const BlockPredictor& predictor : model.predictors)
    half.predictors.push_back({predictor.kind, {}, predictor.decoder});
  return half;
}

bool is_decoding_half(const BlockModel& model) {
  return model.record.empty() && std::all_of(model.predictors.begin(), model.predictors.end(),
                                             [](const BlockPredictor& p) { return p.encoder.layers.empty(); });
}

ModelId model_id(const BlockModel& model) { return id_of_file(write_block_model(decoding_half(model))); }

}  // namespace quern::models

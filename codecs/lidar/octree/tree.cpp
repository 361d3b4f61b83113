#include "codecs/lidar/octree/tree.h"

#include "codecs/lidar/octree/tree_coder.h"

namespace quern::codec::lidar {

namespace {

template <class Coder, class BlockOf>
Status run_coder(Coder& coder, const Surroundings& surroundings, const BlockLimits& limits,
                 const BlockPrediction& prediction, BlockOf& block) {
  const auto run = [&]<Expectation kExpects>() {
    return TreeCoder<Coder, kExpects>(coder, surroundings, limits, prediction, block).run();
  };
  if (prediction.expected.cubes.empty()) return run.template operator()<Expectation::none>();
  if (prediction.expected.weights.empty()) return run.template operator()<Expectation::marked>();
  if (prediction.known.cubes.empty()) return run.template operator()<Expectation::weighed>();
  return run.template operator()<Expectation::known>();
}

}  // namespace

Vector<std::uint8_t> encode_block(const Block& block, const Surroundings& surroundings,
                                  const BlockPrediction& prediction) {
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  const BlockLimits limits{block.cubes.size(), UINT32_MAX, !block.counts.empty()};
  const Status status = run_coder(writer, surroundings, limits, prediction, block);
  writer.finish();
  if (!status.ok()) bytes.clear();
  return bytes;
}

Status decode_block(std::span<const std::uint8_t> bytes, const Surroundings& surroundings, std::uint64_t cubes,
                    bool counted, std::uint64_t points, Block& block, const BlockPrediction& prediction) {
  BitReader reader(bytes);
  const BlockLimits limits{cubes, points, counted};
  QUERN_RETURN_IF_ERROR(run_coder(reader, surroundings, limits, prediction, block));
  std::uint64_t found = 0;
  for (const std::uint32_t count : block.counts) found += count;
  if (reader.has_more() || block.cubes.size() != cubes || (counted && found != points))
    return Status(StatusCode::corrupt, "an octree does not have the {0} cubes that its block promises",
                  static_cast<std::int64_t>(cubes));
  return {};
}

}  // namespace quern::codec::lidar

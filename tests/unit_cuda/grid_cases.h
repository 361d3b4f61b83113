// Whole arrays for the lorenzo kernels on CUDA: every element type, quantizer and tile shape on small awkward grids,
// and what the CPU's kernels make of them chunk by chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/lorenzo/cuda/entry_points.h"
#include "tests/unit_kernels/chunk_cases.h"

namespace quern::kernels::testing {

/// A contiguous array cut into chunks: extents slowest axis first. Chunks are numbered with axis 2 fastest.
struct CudaGrid {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> chunk{1, 1, 1};
};

inline std::uint64_t chunk_count(const CudaGrid& grid) {
  std::uint64_t n = 1;
  for (std::size_t a = 0; a < 3; ++a) n *= (grid.extents[a] + grid.chunk[a] - 1) / grid.chunk[a];
  return n;
}
inline std::uint32_t chunk_tiles(const CudaGrid& grid, TileShape tile) {
  const auto n = tile_counts({grid.chunk, {0, 0}}, tile);
  return static_cast<std::uint32_t>(n[0] * n[1] * n[2]);
}

struct GridCase {
  std::string name;
  ChunkRules rules;
  CudaGrid grid;
  std::vector<std::uint8_t> elements;
};

/// The chunks of a grid in their order: f(chunk's number, byte offset of its first element, box).
template <class F>
void for_each_chunk(const GridCase& c, F&& f) {
  const auto& n = c.grid.extents;
  const auto& size = c.grid.chunk;
  std::size_t number = 0;
  for (std::uint64_t z = 0; z < n[0]; z += size[0])
    for (std::uint64_t y = 0; y < n[1]; y += size[1])
      for (std::uint64_t x = 0; x < n[2]; x += size[2]) {
        const ChunkBox box{{std::min(size[0], n[0] - z), std::min(size[1], n[1] - y), std::min(size[2], n[2] - x)},
                           {n[1] * n[2], n[2]}};
        f(number++, ((z * n[1] + y) * n[2] + x) * element_bytes(c.rules.element), box);
      }
}

/// The chunks as the CPU's kernels encode them, without gaps; the values instead where those take no more bytes.
struct EncodedGrid {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> offsets{0};
  std::vector<bool> raw;
};

/// The values of a chunk in C order.
inline std::vector<std::uint8_t> values_of(const GridCase& c, std::size_t offset, const ChunkBox& box) {
  const std::size_t size = element_bytes(c.rules.element);
  std::vector<std::uint8_t> out;
  for (std::uint64_t z = 0; z < box.extents[0]; ++z)
    for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
      const auto row =
          c.elements.begin() + static_cast<std::ptrdiff_t>(offset + (z * box.strides[0] + y * box.strides[1]) * size);
      out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(box.extents[2] * size));
    }
  return out;
}

class CpuGrid {
 public:
  EncodedGrid encode(const GridCase& c) {
    EncodedGrid out;
    std::vector<std::uint8_t> chunk;
    for_each_chunk(c, [&](std::size_t, std::size_t offset, const ChunkBox& box) {
      const auto tiles = tile_counts(box, c.rules.tile);
      chunk.resize(max_lorenzo_chunk_bytes(c.rules.element, tiles[0] * tiles[1] * tiles[2]));
      chunk.resize(kernels_.encode(c.rules, c.elements.data() + offset, box, chunk.data(), scratch_.get()));
      const auto values = values_of(c, offset, box);
      out.raw.push_back(chunk.size() >= values.size());
      if (out.raw.back()) chunk = values;
      out.bytes.insert(out.bytes.end(), chunk.begin(), chunk.end());
      out.offsets.push_back(out.bytes.size());
    });
    return out;
  }
  /// Decodes chunks at any offsets; `damaged` holds 1 for those that were refused. What is not decoded stays as it is.
  void decode(const GridCase& c, const EncodedGrid& in, std::vector<std::uint8_t>& elements,
              std::vector<std::uint32_t>& damaged) {
    damaged.assign(in.offsets.size() - 1, 0);
    for_each_chunk(c, [&](std::size_t number, std::size_t offset, const ChunkBox& box) {
      if (in.raw[number] || in.offsets[number] == in.offsets[number + 1]) return;
      const std::uint64_t begin = in.offsets[number];
      const std::uint64_t end = in.offsets[number + 1];
      const bool good =
          begin <= end && end <= in.bytes.size() && end - begin <= 0xffffffffu &&
          kernels_.decode(c.rules, in.bytes.data() + begin, end - begin, elements.data() + offset, box, scratch_.get());
      damaged[number] = good ? 0 : 1;
    });
  }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  const LorenzoKernels& kernels_ = lorenzo_kernels(best_isa());
  std::unique_ptr<Line[]> scratch_{
      new Line[1 + std::max(kernels_.encode_scratch_bytes, kernels_.decode_scratch_bytes) / sizeof(Line)]};
};

inline constexpr Element kAllElements[] = {Element::f16, Element::bf16, Element::f32, Element::f64,
                                           Element::i8,  Element::i16,  Element::i32, Element::i64,
                                           Element::u8,  Element::u16,  Element::u32, Element::u64};
inline constexpr TileShape kAllTiles[] = {TileShape::line, TileShape::plane, TileShape::block};
inline constexpr QuantizerKind kAllQuantizers[] = {QuantizerKind::absolute, QuantizerKind::pointwise,
                                                   QuantizerKind::exact};

/// Grids for a tile shape: one element, ragged chunks along every axis, chunks wider than the array, the most tiles
/// that a chunk of the widest elements may have.
inline std::vector<CudaGrid> awkward_grids(TileShape tile) {
  switch (tile) {
    case TileShape::line:
      return {{{1, 1, 1}, {1, 1, 1024}}, {{1, 2, 1033}, {1, 1, 4096}}, {{1, 1, 2500}, {1, 1, 2048}}};
    case TileShape::plane: return {{{1, 1, 5}, {1, 32, 32}}, {{2, 37, 33}, {1, 64, 64}}, {{1, 40, 70}, {1, 32, 64}}};
    case TileShape::block: break;
  }
  return {{{1, 1, 1}, {4, 8, 32}}, {{5, 9, 33}, {4, 8, 64}}, {{3, 17, 40}, {4, 16, 64}}};
}

inline GridCase make_grid_case(Element element, QuantizerKind kind, TileShape tile, const CudaGrid& grid,
                               Content content, std::mt19937_64& random) {
  GridCase c;
  c.rules = make_case_rules(element, kind, tile);
  c.grid = grid;
  c.name = "element " + std::to_string(static_cast<int>(element)) + " tile " + std::to_string(static_cast<int>(tile)) +
           " quantizer " + std::to_string(static_cast<int>(kind)) + " content " +
           std::to_string(static_cast<int>(content)) + " extents";
  for (const std::uint64_t n : grid.extents) {
    c.name += ' ';
    c.name += std::to_string(n);
  }
  const std::size_t size = element_bytes(element);
  const std::size_t count = grid.extents[0] * grid.extents[1] * grid.extents[2];
  c.elements.resize(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = element_at(element, content, i, random);
    std::memcpy(c.elements.data() + i * size, &bits, size);
  }
  return c;
}

/// Calls f for every element type, quantizer and tile shape on every awkward grid, contents by turns.
template <class F>
void for_each_grid_case(F&& f) {
  std::mt19937_64 random(kChunkSeed);
  std::size_t turn = 0;
  for (const Element element : kAllElements)
    for (const TileShape tile : kAllTiles)
      for (const QuantizerKind kind : kAllQuantizers) {
        if (kind == QuantizerKind::pointwise && !is_float_element(element)) continue;
        for (const CudaGrid& grid : awkward_grids(tile))
          f(make_grid_case(element, kind, tile, grid, kContents[turn++ % std::size(kContents)], random));
      }
}

}  // namespace quern::kernels::testing

// What all chunks of an array share: how axes are merged, and the cut into chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/references.h>
#include <quern/status.h>

#include "codecs/stencil/levels/form.h"
#include "models/model_reference.h"

namespace quern {
class Reader;
class Writer;
}  // namespace quern

namespace quern::codec::stencil {

/// How the array's axes become the three axes of the grid: [0, first) [first, second) [second, rank); and whether
/// chunks are walked in raster order or from coarse to fine.
struct Layout {
  std::uint8_t first = 0;
  std::uint8_t second = 0;
  bool levels = false;                                  ///< coarse to fine
  bool sequential = false;                              ///< the same, but planes of the first axis one after another
  bool wavelet = false;                                 ///< neither, but under the wavelet transform
  bool edges = false;                                   ///< coarse to fine, with groups that are not linear
  std::optional<ReferenceId> reference = std::nullopt;  ///< chunks may be predicted from this array's

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Chunks have at most this many elements, lines at most kLineElems; a plane with its halos at most kPlaneElems.
inline constexpr std::uint64_t kChunkElems = UINT64_C(1) << 21;
inline constexpr std::uint64_t kLineElems = UINT64_C(1) << 18;
inline constexpr std::uint64_t kPlaneElems = UINT64_C(1) << 19;

bool supports(DType dtype, BoundKind kind);

/// Merged extents, in one chunk.
ChunkGrid merged_grid(const Shape& shape, const Layout& layout);
/// The grid of a layout: merged extents, the longest axis halved until a chunk is small enough.
ChunkGrid make_grid(const Shape& shape, const Layout& layout);

/// The i-th chunk, in C order, of a grid over an array whose elements of `width` bytes lie in C order at `data`; smaller
/// at the upper ends. `special`: a byte an element, or null.
ConstBox3 chunk_of_array(const ChunkGrid& grid, std::uint64_t i, const std::uint8_t* data, std::size_t width,
                         const std::uint8_t* special);

/// The axes of chunks in levels.
LevelsForm levels_form(const Shape& shape, const Layout& layout, const ChunkGrid& grid);

/// The number that a layout's order of walking is stored as.
std::uint8_t order_number(const Layout& layout);
/// False where a number stands for no order.
bool set_order(std::uint8_t number, Layout& layout);
/// What parameters say of a reference.
void write_reference(const ReferenceId& reference, Writer& writer);
Result<ReferenceId> read_reference(Reader& reader);

/// Codec parameters as stored.
Vector<std::uint8_t> write_params(const Layout& layout);
/// Those of an array whose chunks may have networks: `reference` is what models::write_model_reference wrote.
Vector<std::uint8_t> write_params(const Layout& layout, std::span<const std::uint8_t> reference);

struct StoredParams {
  Layout layout;
  std::optional<models::ModelReference> model = std::nullopt;  ///< chunks may have its networks
};
/// Reads them back; `corrupt` when they break a rule. The model is not looked into.
Result<StoredParams> read_params(std::span<const std::uint8_t> bytes, const Shape& shape);

}  // namespace quern::codec::stencil

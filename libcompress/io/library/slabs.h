// Arrays that a library reads and writes in boxes: walking a shape in boxes of bounded size, and readers and writers
// that turn them into a plain run of elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <quern/io.h>

namespace quern::io {

/// A box that is contiguous in C order.
struct Slab {
  std::array<std::uint64_t, kMaxRank> start{};
  std::array<std::uint64_t, kMaxRank> count{};
  std::size_t rank = 0;
  std::uint64_t elems = 1;
};

/// Cuts a shape into slabs of at most `max_elems` elements (one element at least), in C order.
class SlabWalker {
 public:
  SlabWalker(const Shape& shape, std::uint64_t max_elems);
  /// The next slab, or nothing after the last.
  std::optional<Slab> next();

 private:
  Shape shape_;
  std::array<std::uint64_t, kMaxRank> at_{};
  std::size_t cut_axis_ = 0;     ///< slabs take some of this axis, one of each slower and all of each faster axis
  std::uint64_t rows_ = 1;       ///< at most so many of the cut axis
  std::uint64_t row_elems_ = 1;  ///< elements of one of the cut axis
  bool done_ = false;
};

/// Bytes a slab has at most.
inline constexpr std::uint64_t kSlabBytes = UINT64_C(1) << 24;

/// Reads slab after slab; kinds say how one is read.
class SlabReader : public ArrayReader {
 public:
  const ArrayMeta& meta() const override { return meta_; }
  Result<std::size_t> read(std::span<std::uint8_t> out) override;
  const void* mapped() const override { return nullptr; }

 protected:
  /// `items` is the shape the library sees, whose items have `item_bytes` (two elements when complex).
  SlabReader(ArrayMeta meta, const Shape& items, std::size_t item_bytes);
  virtual Status read_slab(const Slab& slab, void* out) = 0;

 private:
  ArrayMeta meta_;
  std::size_t item_bytes_;
  SlabWalker walker_;
  std::vector<std::uint8_t> buffer_;
  std::size_t buffer_at_ = 0;
};

/// Collects slabs and writes them; kinds say how one is written and how the file is closed.
class SlabWriter : public ArrayWriter {
 public:
  Status write(std::span<const std::uint8_t> bytes) override;
  Status finish() override;

 protected:
  SlabWriter(const Shape& items, std::size_t item_bytes);
  virtual Status write_slab(const Slab& slab, const void* data) = 0;
  virtual Status close_file() = 0;

 private:
  std::size_t item_bytes_;
  std::uint64_t array_bytes_;
  std::uint64_t remaining_;
  SlabWalker walker_;
  std::optional<Slab> slab_;
  std::vector<std::uint8_t> buffer_;
};

/// Syncs a file that a library has written and closed.
Status sync_file(const std::string& path);

}  // namespace quern::io

// Reading (with byte swapping or mapping) and buffered writing of one run of elements.
#include "libcompress/io/flat_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace quern::io {
namespace {

constexpr std::size_t kWriteBuffer = std::size_t{1} << 18;

template <class Word>
void swap_words(std::span<std::uint8_t> bytes) {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes.data() + at, &word, sizeof(Word));
  }
}

void swap_elements(std::span<std::uint8_t> bytes, std::size_t element_bytes) {
  switch (element_bytes) {
    case 2: swap_words<std::uint16_t>(bytes); break;
    case 4: swap_words<std::uint32_t>(bytes); break;
    case 8: swap_words<std::uint64_t>(bytes); break;
    default: break;
  }
}

/// A read-only mapping of a whole file, or nothing.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::uint64_t size) {
    if (size == 0 || size > SIZE_MAX) return;
    void* base = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED) return;
    base_ = static_cast<const std::uint8_t*>(base);
    size_ = static_cast<std::size_t>(size);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != nullptr) ::munmap(const_cast<std::uint8_t*>(base_), size_);
  }
  const std::uint8_t* base() const { return base_; }

 private:
  const std::uint8_t* base_ = nullptr;
  std::size_t size_ = 0;
};

class FlatReader final : public ArrayReader {
 public:
  FlatReader(PosixFile file, ArrayMeta meta, const FlatLayout& layout)
      : file_(std::move(file)),
        meta_(std::move(meta)),
        layout_(layout),
        element_bytes_(dtype_bytes(meta_.dtype)),
        remaining_(meta_.shape.elems() * element_bytes_) {
    const bool usable = file_.has_size() && !layout_.swap_bytes && layout_.offset % element_bytes_ == 0;
    if (usable && remaining_ != 0) mapping_ = std::make_unique<Mapping>(file_.descriptor(), file_.size());
  }

  const ArrayMeta& meta() const override { return meta_; }

  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    const std::size_t whole = out.size() - out.size() % element_bytes_;
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(whole, remaining_));
    if (want == 0 && remaining_ != 0)
      return Status(StatusCode::invalid_argument, "the buffer has {0} bytes; an element has {1}",
                    static_cast<std::int64_t>(out.size()), static_cast<std::int64_t>(element_bytes_));
    QUERN_ASSIGN_OR_RETURN(const std::size_t got, file_.read(out.first(want)));
    if (got < want)
      return Status(StatusCode::truncated, "the input ended {0} bytes before the array did",
                    static_cast<std::int64_t>(remaining_ - got));
    remaining_ -= got;
    if (layout_.swap_bytes) swap_elements(out.first(got), element_bytes_);
    if (remaining_ == 0) QUERN_RETURN_IF_ERROR(check_end());
    return got;
  }

  const void* mapped() const override {
    return mapping_ == nullptr || mapping_->base() == nullptr ? nullptr : mapping_->base() + layout_.offset;
  }

 private:
  // The size of a regular file was compared when it was opened; a stream shows its end only now.
  Status check_end() {
    if (file_.has_size() || end_checked_) return {};
    end_checked_ = true;
    std::array<std::uint8_t, 1> probe{};
    QUERN_ASSIGN_OR_RETURN(const std::size_t more, file_.read(probe));
    if (more != 0)
      return {StatusCode::trailing_data, "the input goes on after the {0} elements of its shape; check shape and type",
              static_cast<std::int64_t>(meta_.shape.elems())};
    return {};
  }

  PosixFile file_;
  ArrayMeta meta_;
  FlatLayout layout_;
  std::size_t element_bytes_;
  std::uint64_t remaining_;
  bool end_checked_ = false;
  std::unique_ptr<Mapping> mapping_;
};

class FlatWriter final : public ArrayWriter {
 public:
  FlatWriter(PosixFile file, std::uint64_t array_bytes, std::vector<std::uint8_t> head)
      : file_(std::move(file)), array_bytes_(array_bytes), remaining_(array_bytes), buffer_(std::move(head)) {}

  Status write(std::span<const std::uint8_t> bytes) override {
    if (bytes.size() > remaining_)
      return {StatusCode::invalid_argument, "more bytes were written than the {0} of the array",
              static_cast<std::int64_t>(array_bytes_)};
    remaining_ -= bytes.size();
    if (buffer_.size() + bytes.size() > kWriteBuffer) QUERN_RETURN_IF_ERROR(flush());
    if (bytes.size() >= kWriteBuffer) return file_.write(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }

  Status finish() override {
    if (remaining_ != 0)
      return {StatusCode::invalid_argument, "{0} of the array's {1} bytes were not written",
              static_cast<std::int64_t>(remaining_), static_cast<std::int64_t>(array_bytes_)};
    QUERN_RETURN_IF_ERROR(flush());
    return file_.sync_and_close();
  }

 private:
  Status flush() {
    const Status status = file_.write(buffer_);
    buffer_.clear();
    return status;
  }

  PosixFile file_;
  std::uint64_t array_bytes_;
  std::uint64_t remaining_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

std::unique_ptr<ArrayReader> make_flat_reader(PosixFile file, ArrayMeta meta, const FlatLayout& layout) {
  return std::make_unique<FlatReader>(std::move(file), std::move(meta), layout);
}

std::unique_ptr<ArrayWriter> make_flat_writer(PosixFile file, std::uint64_t array_bytes,
                                              std::vector<std::uint8_t> head) {
  return std::make_unique<FlatWriter>(std::move(file), array_bytes, std::move(head));
}

bool needs_swap(bool stored_big_endian, std::size_t element_bytes) {
  return element_bytes > 1 && stored_big_endian != (std::endian::native == std::endian::big);
}

}  // namespace quern::io

#include "offload/packed_file.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "offload/folders.h"

namespace quern::offload {
namespace {

using codec::tensor::packed_chunks;
using storage::File;

constexpr std::size_t kSizeBytes = 4;

/// One call at a time on a worker, whose outcome somebody waits for.
class Ahead {
 public:
  explicit Ahead(Worker& worker) : worker_(worker) {}
  /// What runs uses what the caller owns.
  ~Ahead() { (void)wait(); }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  template <class Body>
  void start(const Body& body) {
    runs_ = true;
    try {
      worker_.post([this, &body] { end(guarded(body)); });
    } catch (const std::bad_alloc&) {
      end(out_of_memory());
    }
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !runs_; });
    return status_;
  }

 private:
  static Status out_of_memory() { return Status(StatusCode::out_of_memory, "out of memory"); }
  template <class Body>
  static Status guarded(const Body& body) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  }
  void end(Status status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    runs_ = false;
    changed_.notify_all();
  }

  Worker& worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool runs_ = false;
  Status status_;
};

/// first(i), then second(i), for each i; first(i + 1) on the worker beside second(i).
template <class First, class Second>
Status in_two_stages(Worker& worker, std::size_t count, const First& first, const Second& second) {
  std::size_t next = 0;
  const auto stage = [&] { return first(next); };
  Ahead ahead(worker);
  ahead.start(stage);
  for (std::size_t i = 0; i < count; ++i) {
    QUERN_RETURN_IF_ERROR(ahead.wait());
    next = i + 1;
    if (next < count) ahead.start(stage);
    QUERN_RETURN_IF_ERROR(second(i));
  }
  return {};
}

/// As where the hash does not fit: what damage looks like does not depend on how the file is coded.
Status damaged() { return Status(StatusCode::checksum_mismatch, "the file is damaged"); }

std::uint32_t size_at(const Vector<std::uint8_t>& sizes, std::size_t chunk) {
  std::uint32_t size = 0;
  for (unsigned b = 0; b < kSizeBytes; ++b) size |= std::uint32_t{sizes[kSizeBytes * chunk + b]} << 8 * b;
  return size;
}

}  // namespace

Stopwatch::Stopwatch(double& seconds) : seconds_(seconds), begin_(seconds_now()) {}
Stopwatch::~Stopwatch() { seconds_ += seconds_now() - begin_; }

FileCoder::FileCoder(bool own_thread) {
  try {
    worker_ = std::make_unique<Worker>(own_thread);
  } catch (const std::system_error&) {
    worker_ = std::make_unique<Worker>(false);
  }
}

Status write_packed(File& file, const SubgroupData& data, FileCoder& coder, Moved& moved) {
  const std::size_t count = packed_chunks(data.moments.values());
  Vector<std::uint8_t> sizes(kSizeBytes * count);
  std::uint64_t at = 0;
  const auto pack = [&](std::size_t chunk) {
    const Stopwatch watch(moved.coding_seconds);
    return coder.packer_.pack(data.moments, reinterpret_cast<const float*>(data.weights.data()), chunk,
                              coder.chunks_[chunk % 2]);
  };
  const auto write = [&](std::size_t chunk) {
    const Stopwatch watch(moved.path_seconds);
    const Vector<std::uint8_t>& bytes = coder.chunks_[chunk % 2];
    for (unsigned b = 0; b < kSizeBytes; ++b)
      sizes[kSizeBytes * chunk + b] = static_cast<std::uint8_t>(bytes.size() >> 8 * b);
    const Status status = storage::write_fully(file, at, bytes);
    at += bytes.size();
    return status;
  };
  QUERN_RETURN_IF_ERROR(in_two_stages(*coder.worker_, count, pack, write));
  moved.bytes = at + sizes.size();
  const Stopwatch watch(moved.path_seconds);
  return storage::write_fully(file, at, sizes);
}

Status read_packed(File& file, const StoredSubgroup& stored, FileCoder& coder, SubgroupData& data, Moved& moved) {
  const std::size_t count = packed_chunks(data.moments.values());
  Vector<std::uint8_t> sizes(kSizeBytes * count);
  Vector<std::uint64_t> begins(count + 1);
  {
    const Stopwatch watch(moved.path_seconds);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, file.size());
    if (size != stored.packed_bytes || size < sizes.size())
      return Status(StatusCode::corrupt, "the file has {0} bytes, not {1}", static_cast<std::int64_t>(size),
                    static_cast<std::int64_t>(stored.packed_bytes));
    QUERN_RETURN_IF_ERROR(storage::read_fully(file, size - sizes.size(), sizes));
  }
  const std::uint64_t most =
      codec::tensor::most_packed_bytes(codec::tensor::kPackedValues, data.moments.form()) + stored.beside_bytes;
  for (std::size_t c = 0; c < count; ++c) {
    begins[c + 1] = begins[c] + size_at(sizes, c);
    if (size_at(sizes, c) > most) return damaged();
  }
  if (begins[count] != stored.packed_bytes - sizes.size()) return damaged();
  moved.bytes = stored.packed_bytes;
  const auto read = [&](std::size_t chunk) {
    const Stopwatch watch(moved.path_seconds);
    Vector<std::uint8_t>& bytes = coder.chunks_[chunk % 2];
    bytes.resize(size_at(sizes, chunk));
    return storage::read_fully(file, begins[chunk], bytes);
  };
  const auto unpack = [&](std::size_t chunk) {
    const Stopwatch watch(moved.coding_seconds);
    const Status status =
        coder.packer_.unpack(coder.chunks_[chunk % 2], chunk, stored.beside_bytes, data.weight(), data.moments);
    return status.code() == StatusCode::corrupt ? damaged() : status;
  };
  return in_two_stages(*coder.worker_, count, read, unpack);
}

}  // namespace quern::offload

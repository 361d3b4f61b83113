// Kinds of existing files by their first bytes, where the name does not tell.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include <quern/io.h>

#include "libcompress/io/error.h"

namespace quern::io {
namespace {

constexpr std::string_view kHdf5("\x89HDF\r\n\x1a\n", 8);
constexpr std::string_view kNpy("\x93NUMPY", 6);
constexpr std::string_view kZip("PK\x03\x04", 4);
constexpr std::string_view kStream("\x89QRNX\r\n\n", 8);
// Behind magic, size and version of a stream: its feature bits, of which one says that it holds records.
constexpr std::size_t kFeaturesAt = 14;
constexpr unsigned kRecordsBit = 2;
constexpr std::array<std::uint64_t, 4> kHdf5Places{0, 512, 1024, 2048};  // behind a user block

/// Some bytes of a regular file; all zeros beyond its end, and where it cannot be read.
class Bytes {
 public:
  explicit Bytes(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    regular_ = fd_ >= 0 && fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
    size_ = regular_ ? static_cast<std::uint64_t>(info.st_size) : 0;
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (fd_ >= 0) close(fd_);
  }
  std::array<char, 16> at(std::uint64_t offset) const {
    std::array<char, 16> out{};
    if (regular_ && pread(fd_, out.data(), out.size(), static_cast<off_t>(offset)) < 0) out = {};
    return out;
  }
  std::uint64_t size() const { return size_; }

 private:
  int fd_;
  bool regular_ = false;
  std::uint64_t size_ = 0;
};

bool begins(const std::array<char, 16>& bytes, std::string_view magic) {
  return std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_netcdf3(const std::array<char, 16>& bytes) {
  return begins(bytes, "CDF") && (bytes[3] == 1 || bytes[3] == 2 || bytes[3] == 5);
}

/// The length of a JSON header, then the header.
bool is_safetensors(const std::array<char, 16>& bytes, std::uint64_t size) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return size > 10 && length >= 2 && length <= size - 8 && bytes[8] == '{' && (bytes[9] == '"' || bytes[9] == '}');
}

Status refuse(const std::string& path, const char* what, std::string& detail) {
  return fail(detail, StatusCode::unsupported, path + " " + what);
}

}  // namespace

Result<FileKind> input_kind(const std::string& path, std::string& detail) {
  const FileKind named = file_kind(path);
  if (path == "-" || named == FileKind::npy || named == FileKind::netcdf) return named;
  const Bytes file(path);
  const auto first = file.at(0);
  if (is_netcdf3(first)) return FileKind::netcdf;
  if (named == FileKind::hdf5) return named;
  for (const std::uint64_t place : kHdf5Places)
    if (begins(file.at(place), kHdf5)) return FileKind::hdf5;
  if (begins(first, kNpy)) return FileKind::npy;
  if (begins(first, kStream) && (first[kFeaturesAt] & kRecordsBit) != 0)
    return refuse(path, "is a quern stream of records already; quern info tells what it holds.", detail);
  if (begins(first, kStream))
    return refuse(path,
                  "is a quern stream already; bring its array back with quern decompress, or check it against "
                  "its original with quern verify ORIGINAL STREAM.",
                  detail);
  if (begins(first, kZip))
    return refuse(path, "is a zip archive, as .npz files are; unpack it with unzip and give the .npy files in it.",
                  detail);
  if (is_safetensors(first, file.size()))
    return refuse(path, "is a safetensors file, which holds many tensors; quern checkpoint save takes it.", detail);
  return FileKind::raw;
}

}  // namespace quern::io

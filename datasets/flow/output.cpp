// Raw files (little endian, C order, no header) and the choice between the formats.
#include "datasets/flow/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>
#include <type_traits>

#include "datasets/flow/pending_file.h"

#ifdef QUERN_FLOW_HDF5
#include "datasets/flow/hdf5_file.h"
#endif

namespace quern::flow {
namespace {

/// Appends `values` as little-endian elements of type T.
template <class T>
void encode(std::span<const double> values, std::vector<unsigned char>& bytes) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<Bits>(static_cast<T>(values[i]));
    for (std::size_t b = 0; b < sizeof(T); ++b) bytes[i * sizeof(T) + b] = static_cast<unsigned char>(bits >> (8 * b));
  }
}

/// 0, or the errno of the write that failed.
int write_all(int fd, std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

Status write_raw(const std::string& path, std::span<const double> values, ElementType type, std::string& detail) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  const Status failed(StatusCode::io_error, "cannot write a raw file");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    detail = io_detail("create", path, errno);
    return failed;
  }
  std::vector<unsigned char> bytes;
  int error = 0;
  for (std::size_t at = 0; at < values.size() && error == 0; at += kBlock) {
    const auto block = values.subspan(at, std::min(kBlock, values.size() - at));
    if (type == ElementType::f32) {
      encode<float>(block, bytes);
    } else {
      encode<double>(block, bytes);
    }
    error = write_all(fd, bytes);
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return {};
  detail = io_detail("write", path, error);
  return failed;
}

std::string join(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

/// Gives a finished file its name and counts it.
Status finish(PendingFile& file, Written& written, std::string& detail) {
  QUERN_RETURN_IF_ERROR(file.commit(detail));
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file.path(), ignored);
  if (!ignored) written.bytes += size;
  written.files.push_back(file.path());
  return {};
}

Status write_raw_fields(const Solver& solver, const OutputOptions& options, std::span<double> values, Written& written,
                        std::string& detail) {
  const std::string_view ending = options.type == ElementType::f32 ? "f32" : "f64";
  for (const QuantityInfo& info : quantities()) {
    PendingFile file(join(options.directory, output_name(info.name, solver.step(), solver.grid(), ending)));
    solver.field(info.quantity, values);
    QUERN_RETURN_IF_ERROR(write_raw(file.temporary(), values, options.type, detail));
    QUERN_RETURN_IF_ERROR(finish(file, written, detail));
  }
  return {};
}

Status write_hdf5_fields(const Solver& solver, const OutputOptions& options, std::span<double> values, Written& written,
                         std::string& detail) {
#ifdef QUERN_FLOW_HDF5
  PendingFile file(join(options.directory, output_name("flow", solver.step(), solver.grid(), "h5")));
  QUERN_RETURN_IF_ERROR(write_hdf5(file.temporary(), solver, options, values, detail));
  return finish(file, written, detail);
#else
  static_cast<void>(solver), static_cast<void>(options), static_cast<void>(values), static_cast<void>(written);
  detail = "this build has no HDF5; use the raw format, or build again with the HDF5 development package installed";
  return Status(StatusCode::unsupported, "no HDF5 in this build");
#endif
}

}  // namespace

bool has_hdf5() {
#ifdef QUERN_FLOW_HDF5
  return true;
#else
  return false;
#endif
}

std::string output_name(std::string_view what, std::uint64_t step, const Grid& grid, std::string_view ending) {
  std::string digits = std::to_string(step);
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  std::string name = std::string(what) + "_t" + digits + "_";
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (axis > 0) name += 'x';
    name += std::to_string(grid.cells[axis]);
  }
  return name + "." + std::string(ending);
}

Status write_fields(const Solver& solver, const OutputOptions& options, Written& written, std::string& detail) {
  const auto start = std::chrono::steady_clock::now();
  try {
    std::vector<double> values(solver.grid().elems());
    if (options.format != OutputFormat::hdf5)
      QUERN_RETURN_IF_ERROR(write_raw_fields(solver, options, values, written, detail));
    if (options.format != OutputFormat::raw)
      QUERN_RETURN_IF_ERROR(write_hdf5_fields(solver, options, values, written, detail));
    written.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {};
  } catch (const std::bad_alloc&) {
    detail = "not enough memory to convert a field for writing";
    return Status(StatusCode::out_of_memory, "not enough memory to convert a field for writing");
  }
}

}  // namespace quern::flow

// Bisection of the expected sizes, then secants through the measured ones.
#include "cli/h5/quota.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/h5/file.h"
#include "cli/h5/pack_plan.h"
#include "cli/h5/pack_write.h"
#include "cli/h5/values.h"
#include "cli/messages/messages.h"

namespace quern::cli {
namespace {

constexpr double kLeastPsnr = 1;  // dB
constexpr double kMostPsnr = H5Args::kMostSharedPsnr;
constexpr double kPoorPsnr = 30;       // dB; fields look different below
constexpr double kFull = 0.985;        // of the size: a file that takes as much is as good as any
constexpr double kAim = 0.994;         // of the size
constexpr double kLeastSlope = 0.002;  // of the size, a dB
constexpr int kPacks = 4;

/// A dataset as far as its size depends on the PSNR.
struct Part {
  std::vector<ExpectedSize> sizes;
  double now = 0;  ///< bytes it takes in the input, which it does not exceed

  double bytes_at(double psnr) const {
    if (sizes.empty()) return now;
    const auto above =
        std::find_if(sizes.begin(), sizes.end(), [&](const ExpectedSize& s) { return s.psnr_db >= psnr; });
    if (above == sizes.end()) return now;
    if (above == sizes.begin()) return std::min(above->bytes, now);
    const ExpectedSize& below = *(above - 1);
    const double part = (psnr - below.psnr_db) / (above->psnr_db - below.psnr_db);
    return std::min(below.bytes + part * (above->bytes - below.bytes), now);
  }
};

struct Expectation {
  std::vector<Part> parts;
  double rest = 0;  ///< bytes of the file that no PSNR changes

  double bytes_at(double psnr) const {
    double sum = rest;
    for (const Part& part : parts) sum += part.bytes_at(psnr);
    return sum;
  }
  /// The highest PSNR whose file is expected to have so many bytes.
  double psnr_for(double bytes, double floor) const {
    double low = floor, high = kMostPsnr;
    if (bytes_at(high) <= bytes) return high;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (bytes_at(middle) <= bytes ? low : high) = middle;
    }
    return low;
  }
};

Expectation expectation_of(const H5Args& args, hid_t file, const H5Tree& tree) {
  Expectation out;
  double all = 0;
  for (const std::string& name : fields_without_bound(file, tree, args)) {
    InputArray array;
    std::string why;
    if (!open_dataset(args.input, name, array, why)) continue;  // packing says why
    const H5Id dataset = h5_open_at(file, tree.objects[h5_find_dataset(file, tree, name)].address);
    Part part;
    part.now = static_cast<double>(H5Dget_storage_size(dataset.get()));
    part.sizes = expected_sizes(array, args.codec, args.run);
    all += part.now;
    out.parts.push_back(std::move(part));
  }
  out.rest = std::max(static_cast<double>(file_bytes(args.input)) - all, 0.0);
  return out;
}

struct Measured {
  double psnr = 0;
  double bytes = 0;
};

}  // namespace

void pack_to_size(const H5Args& args, hid_t file, const H5Tree& tree, const PackOnce& pack) {
  const Expectation expected = expectation_of(args, file, tree);
  const auto size = static_cast<double>(*args.total_size);
  const double floor = std::max(args.psnr_floor, kLeastPsnr);
  std::optional<Measured> fits, exceeds, before;
  bool done = false;
  const auto try_at = [&](double psnr, bool any_that_fits) {
    H5Args how = args;
    how.bound = ErrorBound{BoundKind::psnr, psnr};
    const auto bytes = static_cast<double>(pack(how, [&](std::uint64_t b) {
      const auto now = static_cast<double>(b);
      done = now <= size && (any_that_fits || now >= kFull * size || psnr >= kMostPsnr);
      return done;
    }));
    if (bytes <= size && (!fits || psnr > fits->psnr)) fits = Measured{psnr, bytes};
    if (bytes > size && (!exceeds || psnr < exceeds->psnr)) exceeds = Measured{psnr, bytes};
    if (!args.run.quiet && !args.run.json)
      print_note(fmt::format("{}: {:.2f} dB take {:.0f} bytes", args.input, psnr, bytes));
    if (done && psnr < kPoorPsnr && !expected.parts.empty())
      print_note(
          fmt::format("{}: the size leaves {:.1f} dB to each field, which is little; --psnr-floor sets the least",
                      args.input, psnr));
    return Measured{psnr, bytes};
  };
  double psnr = expected.psnr_for(kAim * size, floor);
  for (int i = 0; i < kPacks && !done; ++i) {
    const Measured last = try_at(psnr, expected.parts.empty());
    if (done) return;
    if (last.bytes > size && psnr <= floor)
      fail(Exit::bound, fmt::format("{}: {:.6g} dB take {:.0f} bytes, and --total-size allows {}; raise it, or lower "
                                    "--psnr-floor",
                                    args.input, psnr, last.bytes, *args.total_size));
    // Bytes a dB: measured between the last two, or as expected around here.
    double slope = expected.bytes_at(psnr + 1) - expected.bytes_at(psnr - 1);
    slope = before && before->psnr != psnr ? (last.bytes - before->bytes) / (last.psnr - before->psnr) : slope / 2;
    slope = std::max(slope, kLeastSlope * size);
    if (fits && before && before->bytes == last.bytes) break;  // nothing depends on the PSNR
    before = last;
    psnr = last.psnr + (kAim * size - last.bytes) / slope;
    if (fits && exceeds) {
      const double width = exceeds->psnr - fits->psnr;
      if (width < 0.01) break;
      psnr = std::clamp(psnr, fits->psnr + 0.1 * width, exceeds->psnr - 0.1 * width);
    }
    psnr = std::clamp(psnr, floor, kMostPsnr);
  }
  if (!fits) try_at(floor, true);
  if (!done && fits) try_at(fits->psnr, true);
  if (!done)
    fail(Exit::bound, fmt::format("{}: --total-size {} is less than the file takes at {:.6g} dB; raise it", args.input,
                                  *args.total_size, floor));
}

}  // namespace quern::cli

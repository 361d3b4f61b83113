#include "offload/schedule/choose_form.h"

#include <algorithm>

namespace quern::offload {
namespace {

constexpr double kWorthwhile = 0.05;  ///< of a path's time

double slower(const PathRates& path) {
  // What has not been read yet is known by its writes.
  return path.read > 0 ? std::min(path.read, path.write) : path.write;
}

}  // namespace

PathRates packed_rates(const PathRates& path, const CodingRates& coding) {
  return {std::min(path.read / coding.share, coding.unpack), std::min(path.write / coding.share, coding.pack)};
}

Vector<bool> folders_to_pack(std::span<const PathRates> paths, const CodingRates& coding, const UpdateRate& update,
                             const Vector<bool>& packed, unsigned cores) {
  Vector<bool> out = packed;
  double all = 0;
  Vector<std::size_t> order;
  for (std::size_t p = 0; p < paths.size(); ++p) {
    if (!(paths[p].write > 0)) continue;
    all += slower(paths[p]);
    order.push_back(p);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return slower(paths[a]) < slower(paths[b]); });
  // Seconds of processors for one byte of the state, of which each path has a part in proportion to its rate.
  double work = update.bytes > 0 ? static_cast<double>(update.threads) / update.bytes : 0;
  for (const std::size_t p : order) {
    const double rate = slower(paths[p]);
    const double part = rate / all;
    const double coded_work = work + part * (1 / coding.pack + 1 / coding.unpack);
    const double plain = part / rate;
    const double coded = std::max({part * coding.share / rate, part / coding.pack, part / coding.unpack,
                                   coded_work / static_cast<double>(cores)});
    out[p] = coded < plain * (packed[p] ? 1 + kWorthwhile : 1 - kWorthwhile);
    if (out[p]) work = coded_work;
  }
  return out;
}

}  // namespace quern::offload

// Timing and telling.
#include "bench/gpu/session.h"

#include <algorithm>

namespace quern::bench {
namespace {

Members spread_members(const Spread& spread) {
  Members members;
  members.number("median", spread.median).number("least", spread.least).number("most", spread.most);
  return members;
}

Members timing_members(const Timing& timing) {
  Members members;
  members.count("repeats", timing.repeats);
  members.object("device_ms", spread_members(timing.device)).object("host_ms", spread_members(timing.host));
  return members;
}

/// GB/s.
double rate(double bytes, double milliseconds) { return bytes / milliseconds * 1e-6; }

Members machine_members(const Machine& machine) {
  Members members;
  members.text("name", machine.name);
  members.text("capability", std::to_string(machine.major) + "." + std::to_string(machine.minor));
  members.count("multiprocessors", static_cast<std::uint64_t>(machine.multiprocessors));
  members.count("clock_khz", static_cast<std::uint64_t>(machine.clock_khz));
  members.count("memory_clock_khz", static_cast<std::uint64_t>(machine.memory_clock_khz));
  members.count("memory_bus_bits", static_cast<std::uint64_t>(machine.memory_bus_bits));
  // Two transfers a clock.
  members.number("memory_peak_gbs", 2e-6 * machine.memory_clock_khz * machine.memory_bus_bits / 8);
  members.count("l2_bytes", machine.l2_bytes).count("memory_bytes", machine.memory_bytes);
  members.count("driver", static_cast<std::uint64_t>(machine.driver));
  members.count("runtime", static_cast<std::uint64_t>(machine.runtime));
  return members;
}

Machine open_machine(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
  return describe_machine();
}

}  // namespace

std::string_view element_name(kernels::Element element) { return element == kernels::Element::f64 ? "f64" : "f32"; }
std::string_view tile_name(kernels::TileShape tile) {
  return tile == kernels::TileShape::line ? "line" : tile == kernels::TileShape::plane ? "plane" : "block";
}

Session::Session(const Options& options)
    : options_(options),
      machine_(open_machine(options.device)),
      report_(options.out),
      stopwatch_(options.repeats, options.seconds_each, machine_.l2_bytes) {
  report_.line("machine", machine_members(machine_));
}

bool Session::wants(std::string_view subject) const {
  const auto& wanted = options_.subjects;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), subject) != wanted.end();
}

double Session::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}
bool Session::out_of_time() const { return seconds() > options_.seconds; }

bool Session::has_room(std::uint64_t bytes) const {
  constexpr std::uint64_t kSpare = UINT64_C(64) << 20;
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free >= bytes && free - bytes >= kSpare;
}

void Session::time_copy(std::uint64_t bytes) {
  DeviceArray<std::uint8_t> from(bytes), to(bytes);
  check(cudaMemset(from.data(), 1, bytes), "cudaMemset");
  const Timing timing = stopwatch_.time(
      [&](cudaStream_t stream) {
        return cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream);
      },
      Cache::cold, Queueing::calls);
  const double gbs = rate(2.0 * static_cast<double>(bytes), timing.device.median);
  copy_rate_ = std::max(copy_rate_, gbs);
  Members members;
  report_.line("copy", members.count("bytes", bytes).number("gbs", gbs).join(timing_members(timing)));
}

void Session::time_step(const BenchArray& array, std::string_view subject, std::string_view step,
                        const StepBytes& bytes, const Work& work) {
  const auto once = [&](Cache cache, Queueing queueing) {
    const Timing timing = stopwatch_.time(work, cache, queueing);
    const auto input = static_cast<double>(bytes.input), stored = static_cast<double>(bytes.stored);
    const double gbs = rate(input, timing.device.median);
    // What a single pass could do: the input once, what is stored once.
    const double limit = copy_rate_ / (1 + stored / input);
    Members members = describe(array);
    members.text("subject", subject).text("step", step);
    members.text("cache", cache == Cache::warm ? "warm" : "cold");
    members.text("queueing", queueing == Queueing::graph ? "graph" : "calls");
    members.count("input_bytes", bytes.input).count("stored_bytes", bytes.stored).count("moved_bytes", bytes.moved);
    if (bytes.stored != 0) members.number("ratio", input / stored);
    members.join(timing_members(timing));
    members.number("gbs", gbs).number("limit_gbs", limit).number("percent_of_limit", 100 * gbs / limit);
    members.number("percent_of_copy", 100 * rate(static_cast<double>(bytes.moved), timing.device.median) / copy_rate_);
    report_.line("timing", members);
  };
  once(Cache::cold, Queueing::calls);
  if (array.bytes() > 4 * machine_.l2_bytes) return;
  once(Cache::warm, Queueing::calls);
  once(Cache::warm, Queueing::graph);
}

void Session::tell(const BenchArray& array, std::string_view subject, const Members& members) {
  Members all = describe(array);
  report_.line("check", all.text("subject", subject).join(members));
}

Members Session::describe(const BenchArray& array) {
  Members members;
  members.text("element", element_name(array.element)).text("tile", tile_name(array.tile));
  members.text("shape", std::to_string(array.extents[0]) + "x" + std::to_string(array.extents[1]) + "x" +
                            std::to_string(array.extents[2]));
  members.count("bytes", array.bytes()).text("field", array.field).number("bound", array.bound);
  return members;
}

}  // namespace quern::bench

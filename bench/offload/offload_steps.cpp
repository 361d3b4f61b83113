// Steps of Adam over moments at rest: in the cache and in memory beside Adam in binary32, and over throttled folders
// beside a swap of all three arrays in binary32. usage: offload_steps FOLDER [MB_PER_SECOND]
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/offload/throttled_files.h"
#include "offload/optimizer.h"
#include "storage/publish_file.h"

namespace {

using namespace quern;
using Clock = std::chrono::steady_clock;
using codec::tensor::AtRestMoments;
using codec::tensor::ElementType;
using kernels::AtRestForm;

double seconds_of(const std::function<void()>& body) {
  const auto begin = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "offload_steps: %s\n", what);
  std::exit(1);
}

float made_up(std::uint64_t i) {
  const std::uint64_t bits = kernels::at_rest_mix64(i);
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<float>(bits >> (16 * k) & 0xffff) * 0x1p-16f - 0.5f;
  return sum;
}

kernels::AdamRule rule_of(std::uint64_t step) {
  codec::tensor::AdamSettings settings;
  settings.decay = 0.1;
  settings.step = step;
  return make_adam_rule(settings);
}

/// One thread; best of the rounds, the ways by turns.
void compare_in_memory(const char* where, std::size_t values, int rounds, int repeats) {
  std::vector<float> weights(values), first(values), second(values);
  std::vector<std::uint16_t> gradient(values), copy(values);
  for (std::size_t i = 0; i < values; ++i) {
    weights[i] = made_up(i);
    first[i] = 1e-3f * made_up(2 * i);
    second[i] = 1e-6f * (0.1f + made_up(3 * i) * made_up(3 * i));
    gradient[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(1e-3f * made_up(5 * i)));
  }
  SerialRunner runner;
  AtRestMoments eight = AtRestMoments::make(values, 0, {8, true}).value();
  AtRestMoments four = AtRestMoments::make(values, 0, {4, true}).value();
  for (AtRestMoments* const moments : {&eight, &four})
    require(moments->encode(1, 0, first.data(), second.data(), runner).ok(), "no memory");
  const auto& adam = kernels::adam_kernels(kernels::best_isa());
  double best[3] = {1e9, 1e9, 1e9};
  for (int round = 0; round < rounds; ++round) {
    best[0] = std::min(best[0], seconds_of([&] {
                         for (int r = 0; r < repeats; ++r)
                           adam.step_bf16(rule_of(1000), gradient.data(), values, weights.data(), first.data(),
                                          second.data());
                       }));
    int way = 0;
    for (AtRestMoments* const moments : {&eight, &four}) {
      ++way;
      best[way] = std::min(best[way], seconds_of([&] {
                             for (int r = 0; r < repeats; ++r) {
                               const auto step = static_cast<std::uint64_t>(1000 + round * repeats + r);
                               require(moments
                                           ->step(1, step, rule_of(1000), {gradient.data(), ElementType::bf16},
                                                  weights.data(), copy.data(), runner)
                                           .ok(),
                                       "no memory");
                             }
                           }));
    }
  }
  const double count = static_cast<double>(values) * repeats / 1e6;
  std::printf("| %s, %zu values | %.0f | %.0f | %.0f | %.2f | %.2f |\n", where, values, count / best[0],
              count / best[1], count / best[2], best[0] / best[1], best[0] / best[2]);
}

struct FolderCase {
  const char* name;
  std::vector<double> rates;  ///< of each folder, MB/s
};

constexpr std::uint64_t kValues = UINT64_C(1) << 24;
constexpr std::uint64_t kSubgroup = UINT64_C(1) << 20;
constexpr int kSteps = 4;
constexpr std::uint64_t kDone = 1000;  ///< steps before those that are measured

std::vector<std::string> make_folders(bench::ThrottledFiles& files, const std::string& root, const FolderCase& c) {
  std::vector<std::string> folders;
  for (std::size_t f = 0; f < c.rates.size(); ++f) {
    folders.push_back(root + "/" + std::to_string(f));
    files.add(folders.back(), c.rates[f] * 1e6);
  }
  return folders;
}

struct Measured {
  double seconds = 0;  ///< a step
  double bytes = 0;    ///< a step, read and written
};

Measured offloaded(const std::string& root, const FolderCase& c, const AtRestForm& form, std::uint64_t memory) {
  bench::ThrottledFiles files;
  offload::OptimizerOptions options;
  options.region_values = {kValues};
  options.subgroup_values = kSubgroup;
  options.form = form;
  options.memory_limit = memory;
  for (const std::string& folder : make_folders(files, root, c)) options.folders.emplace_back().path = String(folder);
  storage::Report report;
  auto optimizer = offload::Optimizer::open(files, options, report);
  require(optimizer.ok(), report.problem.c_str());
  // Moments as they are after many steps of gradients around 1e-3.
  const auto source = [](const offload::RegionPart& part) {
    for (std::uint64_t i = 0; i < part.count; ++i) {
      part.weights[i] = made_up(part.begin + i);
      part.first[i] = 4e-4f * made_up(3 * (part.begin + i));
      part.second[i] = 1e-6f * (1 + 0.5f * made_up(5 * (part.begin + i)));
    }
    return Status();
  };
  require((*optimizer)->load(kDone, source, report).ok(), report.problem.c_str());
  constexpr std::size_t kShift = 977;  // a step: other gradients, of the same sizes
  std::vector<std::uint16_t> gradient(kValues + 16 * kShift), copy(kValues);
  // As second moments are after many steps, those of a block are within some binades of each other.
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(
        kernels::at_rest_mix64(i) % 2 == 0 ? 1e-3f + 4e-4f * made_up(7 * i) : -1e-3f + 4e-4f * made_up(7 * i)));
  offload::RegionStep region;
  region.copy = copy.data();
  const auto step = [&] {
    region.gradient = {gradient.data() + ((*optimizer)->step_count() - kDone) * kShift, ElementType::bf16};
    require((*optimizer)->step(std::span(&region, 1), {}, report).ok(), report.problem.c_str());
  };
  for (int s = 0; s < 4; ++s) step();  // rates become known
  const auto moved = [&] {
    double bytes = 0;
    for (const auto& folder : (*optimizer)->usage().folders)
      bytes += static_cast<double>(folder.bytes_read + folder.bytes_written);
    return bytes;
  };
  const double before = moved();
  Measured m;
  m.seconds = seconds_of([&] {
                for (int s = 0; s < kSteps; ++s) step();
              }) /
              kSteps;
  m.bytes = (moved() - before) / kSteps;
  return m;
}

/// Weights and moments in binary32, a file a subgroup, read ahead by one and written behind, as swappers of optimizer
/// state do. Files are dealt out by turns.
Measured swapped(const std::string& root, const FolderCase& c) {
  bench::ThrottledFiles files;
  const auto folders = make_folders(files, root, c);
  storage::Report report;
  const std::size_t groups = kValues / kSubgroup;
  std::vector<std::unique_ptr<offload::Worker>> readers, writers;
  for (std::size_t f = 0; f < folders.size(); ++f) {
    require(storage::make_with_parents(files, String(folders[f]), report).ok(), report.problem.c_str());
    readers.push_back(std::make_unique<offload::Worker>(true));
    writers.push_back(std::make_unique<offload::Worker>(true));
  }
  struct Buffer {
    std::vector<float> arrays = std::vector<float>(3 * kSubgroup);
    bool ready = false;
    bool busy = false;
  };
  std::vector<Buffer> buffers(4);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint16_t> gradient(kSubgroup, 0x3a00);
  const auto path_of = [&](std::size_t g) { return folders[g % folders.size()] + "/raw" + std::to_string(g); };
  const auto bytes_of = [](Buffer& b) {
    return std::span(reinterpret_cast<std::uint8_t*>(b.arrays.data()), 12 * kSubgroup);
  };
  for (std::size_t g = 0; g < groups; ++g) {
    const auto file = storage::system_files().create(path_of(g));
    require(file.ok() && storage::write_fully(**file, 0, bytes_of(buffers[0])).ok(), "cannot write");
  }
  const auto& adam = kernels::adam_kernels(kernels::best_isa());
  const auto step = [&](std::uint64_t number) {
    std::size_t asked = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      while (asked < groups && asked < g + buffers.size() - 1) {
        Buffer& b = buffers[asked % buffers.size()];
        std::unique_lock lock(mutex);
        if (asked > g && b.busy) break;
        changed.wait(lock, [&] { return !b.busy; });
        b.busy = true;
        const std::size_t group = asked++;
        readers[group % folders.size()]->post([&, group] {
          const auto file = files.open(path_of(group));
          require(file.ok() && storage::read_fully(**file, 0, bytes_of(b)).ok(), "cannot read");
          const std::lock_guard inner(mutex);
          b.ready = true;
          changed.notify_all();
        });
      }
      Buffer& b = buffers[g % buffers.size()];
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return b.ready; });
      }
      float* const at = b.arrays.data();
      adam.step_bf16(rule_of(number), gradient.data(), kSubgroup, at, at + kSubgroup, at + 2 * kSubgroup);
      writers[g % folders.size()]->post([&, g] {
        (void)files.remove(path_of(g));
        const auto file = files.create(path_of(g));
        require(file.ok() && storage::write_fully(**file, 0, bytes_of(b)).ok(), "cannot write");
        const std::lock_guard inner(mutex);
        b.ready = b.busy = false;
        changed.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    changed.wait(lock,
                 [&] { return std::none_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.busy; }); });
  };
  step(1);
  Measured m;
  m.seconds = seconds_of([&] {
                for (int s = 0; s < kSteps; ++s) step(static_cast<std::uint64_t>(s) + 2);
              }) /
              kSteps;
  m.bytes = 24.0 * kValues;
  return m;
}

void compare_in_folders(const std::string& root, const FolderCase& c, int& run) {
  double sum = 0;
  for (const double rate : c.rates) sum += rate;
  const auto next = [&] { return root + "/" + std::to_string(run++); };
  const Measured raw = swapped(next(), c);
  std::printf("| %s | swap in binary32 | %.2f | %.0f | %.2f | 1 |\n", c.name, raw.seconds, raw.bytes / 1e6,
              raw.bytes / raw.seconds / 2e6 / sum);
  const std::uint64_t few = 4 * offload::plain_bytes(kSubgroup, {8, true}) + (1 << 20);
  for (const auto& [name, form, memory] :
       {std::tuple("8 bits, memory for 4 subgroups", AtRestForm{8, true}, few),
        std::tuple("4 bits, memory for 4 subgroups", AtRestForm{4, true}, few),
        std::tuple("8 bits, memory of the swap", AtRestForm{8, true}, std::uint64_t{4 * 12 * kSubgroup})}) {
    const Measured m = offloaded(next(), c, form, memory);
    std::printf("| %s | %s | %.2f | %.0f | %.2f | %.2f |\n", c.name, name, m.seconds, m.bytes / 1e6,
                m.bytes / m.seconds / 2e6 / sum, raw.seconds / m.seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: offload_steps FOLDER [MB_PER_SECOND]\n"), 2;
  const double rate = argc > 2 ? std::atof(argv[2]) : 200;
  require(rate > 0, "the rate must be above 0");
  std::printf("Million values a second on one thread, %s.\n\n", kernels::isa_name(kernels::best_isa()));
  std::printf(
      "| where | Adam in binary32 | 8 bits | 4 bits | 8 bits / Adam | 4 bits / Adam |\n|---|---|---|---|---|---|\n");
  compare_in_memory("cache", std::size_t{1} << 14, 200, 20);
  compare_in_memory("memory", std::size_t{1} << 24, 7, 1);
  std::printf(
      "\n%llu values; seconds a step, MB moved a step, share of the folders' rate, times as fast as the swap.\n\n",
      static_cast<unsigned long long>(kValues));
  std::printf("| folders | way | seconds | MB | share | times |\n|---|---|---|---|---|---|\n");
  int run = 0;
  compare_in_folders(argv[1], {"one", {rate}}, run);
  compare_in_folders(argv[1], {"two, 2 to 1", {rate, rate / 2}}, run);
  return 0;
}

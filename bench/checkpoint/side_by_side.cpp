// What a second thread can give a save, told by processor time alone, so that a busy machine does not matter: each
// parallel step's tasks are run one after the other and timed, and dealt to the threads as a pool would deal them.
// usage: side_by_side FOLDER exact|moments|balanced MIB_A_TENSOR TENSORS
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/convert/set_coding.h"

namespace {

using namespace quern;
using checkpoint::Report;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Runs tasks in order; how long each step would take on 1, 2, 4, ... threads.
class TimingRunner final : public TaskRunner {
 public:
  static constexpr std::size_t kThreads[] = {1, 2, 4, 8};
  void run(std::size_t tasks, const TaskBody& body) override {
    const bool outermost = depth_++ == 0;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < tasks; ++i) {
      const double begin = processor_seconds();
      body(i);
      seconds.push_back(processor_seconds() - begin);
    }
    --depth_;
    if (!outermost) return;
    for (const std::size_t threads : kThreads) {
      std::vector<double> busy(threads);
      for (const double one : seconds) *std::min_element(busy.begin(), busy.end()) += one;
      in_steps[threads] += *std::max_element(busy.begin(), busy.end());
    }
  }
  std::size_t width() const override { return 2; }
  std::map<std::size_t, double> in_steps;

 private:
  int depth_ = 0;
};

struct Tensor {
  std::string name;
  std::vector<float> values;
};

class Tensors final : public checkpoint::TensorSet {
 public:
  explicit Tensors(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  std::size_t count() const override { return tensors_.size(); }
  checkpoint::SetTensor tensor(std::size_t i) const override {
    checkpoint::SetTensor out;
    out.name = tensors_[i].name;
    out.what = {checkpoint::ElementType::f32,
                *Shape::try_make(std::vector<std::uint64_t>{tensors_[i].values.size() / 768, 768})};
    return out;
  }
  Result<std::span<const std::uint8_t>> values(std::size_t i, AlignedBuffer&, Report&) override {
    return std::span(reinterpret_cast<const std::uint8_t*>(tensors_[i].values.data()), 4 * tensors_[i].values.size());
  }

 private:
  std::vector<Tensor> tensors_;
};

std::vector<Tensor> make_tensors(double mib, int count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Tensor> out;
  const auto rows = static_cast<std::size_t>(mib * (1 << 20) / 4 / 768);
  for (int t = 0; t < count; ++t) {
    const std::string name = "layer" + std::to_string(t) + ".weight";
    Tensor weight{"model." + name, {}}, first{"optimizer.exp_avg." + name, {}},
        second{"optimizer.exp_avg_sq." + name, {}};
    for (std::size_t r = 0; r < rows; ++r) {
      const float scale = 1e-3f * std::exp(normal(random));
      for (int c = 0; c < 768; ++c) {
        const float g = scale * normal(random);
        weight.values.push_back(0.02f * normal(random));
        first.values.push_back(g);
        second.values.push_back(g * g + 1e-12f);
      }
    }
    for (Tensor* one : {&weight, &first, &second}) out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: side_by_side FOLDER exact|moments|balanced MIB_A_TENSOR TENSORS\n");
    return 1;
  }
  const std::string folder = std::string(argv[1]) + "/side-by-side";
  Tensors set(make_tensors(std::atof(argv[3]), std::atoi(argv[4])));
  for (int turn = 0; turn < 2; ++turn) {
    std::filesystem::remove_all(folder);
    const checkpoint::Store store(checkpoint::system_files(), String(folder));
    checkpoint::FileSaveOptions options;
    options.preset = checkpoint::parse_preset(argv[2]).value();
    TimingRunner runner;
    Report report;
    const double begin = processor_seconds();
    checkpoint::SetCoding coding(set, options, runner);
    Status status = coding.prepare(report);
    auto session = checkpoint::SaveSession::begin(store, options.save, runner, report);
    if (status.ok() && session.ok()) status = coding.run(**session, report);
    if (status.ok() && session.ok()) status = (*session)->commit(report).status();
    if (!status.ok() || !session.ok()) {
      std::fprintf(stderr, "%s\n", report.problem.c_str());
      return 1;
    }
    const double all = processor_seconds() - begin;
    const double serial = all - runner.in_steps[1];
    std::printf("%s, %s MiB: %.3f processor seconds, %.3f of them outside of parallel steps;", argv[2], argv[3], all,
                serial);
    for (const std::size_t threads : TimingRunner::kThreads)
      std::printf(" %zu threads %.2fx", threads, all / (serial + runner.in_steps[threads]));
    std::printf("\n");
  }
  std::filesystem::remove_all(folder);
  return 0;
}

#include "tests/unit_checkpoint/training_run.h"

#include <cmath>
#include <cstring>

#include "checkpoint/restore/restore.h"
#include "codecs/tensor/replay.h"
#include "kernels/tensor/adam.h"

namespace quern::testing {

using checkpoint::ElementType;

Bytes bytes_of(const std::vector<float>& values) {
  Bytes out(values.size() * 4);
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> out(bytes.size() / 4);
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

namespace {

using kernels::AdamDecay;
using kernels::AdamOrder;
using Step = void (*)(const kernels::AdamConstants&, float, float&, float&, float&);

Step step_of(const kernels::AdamRule& rule) {
  const bool decays = rule.decay == AdamDecay::decoupled;
  if (rule.order == AdamOrder::separate)
    return decays ? kernels::adam_step<AdamOrder::separate, AdamDecay::decoupled>
                  : kernels::adam_step<AdamOrder::separate, AdamDecay::none>;
  return decays ? kernels::adam_step<AdamOrder::fused, AdamDecay::decoupled>
                : kernels::adam_step<AdamOrder::fused, AdamDecay::none>;
}

}  // namespace

TrainingRun::TrainingRun(kernels::AdamOrder order, std::uint64_t rows, std::uint64_t columns) : order_(order) {
  parameters_.push_back({"a", {rows, columns}, {}, {}, {}, {}});
  parameters_.push_back({"b", {64}, {}, {}, {}, {}});
  for (Parameter& p : parameters_) {
    std::size_t count = 1;
    for (const std::uint64_t extent : p.shape) count *= static_cast<std::size_t>(extent);
    p.w.resize(count);
    for (std::size_t i = 0; i < count; ++i) p.w[i] = 0.05F * std::sin(static_cast<float>(i * i % 8191));
    p.m.resize(count);
    p.v.resize(count);
    p.gradient.resize(count);
  }
}

void TrainingRun::step() {
  ++steps_;
  codec::tensor::AdamSettings settings;
  settings.order = order_;
  settings.beta2 = .95;
  settings.step = steps_;
  for (Parameter& p : parameters_) {
    settings.decay = p.shape.size() == 2 ? .1 : 0;
    const kernels::AdamRule rule = codec::tensor::make_adam_rule(settings);
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      seed_ = seed_ * 1664525U + 1013904223U;
      const float scale = 1e-4F * (1 + static_cast<float>(i % 64) * 0.1F) * (1 + static_cast<float>(i / 640));
      const float g = scale * (static_cast<float>(seed_ >> 8) / 8388608.0F - 1);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &g, 4);
      p.gradient[i] = static_cast<std::uint16_t>(bits >> 16);
      const std::uint32_t narrow = std::uint32_t{p.gradient[i]} << 16;
      float wide = 0;
      std::memcpy(&wide, &narrow, 4);
      step_of(rule)(rule.constants, wide, p.w[i], p.m[i], p.v[i]);
    }
  }
}

RunTensors TrainingRun::state() const {
  RunTensors out;
  for (const Parameter& p : parameters_) {
    out.push_back({"param." + p.name, ElementType::f32, p.shape, bytes_of(p.w)});
    out.push_back({"exp_avg." + p.name, ElementType::f32, p.shape, bytes_of(p.m)});
    out.push_back({"exp_avg_sq." + p.name, ElementType::f32, p.shape, bytes_of(p.v)});
  }
  RunTensor copy{"model.a", ElementType::bf16, parameters_[0].shape, {}};
  for (const float w : parameters_[0].w) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &w, 4);
    bits += 0x7FFF + (bits >> 16 & 1);
    copy.values.push_back(static_cast<std::uint8_t>(bits >> 16));
    copy.values.push_back(static_cast<std::uint8_t>(bits >> 24));
  }
  out.push_back(std::move(copy));
  return out;
}

RunTensors TrainingRun::gradients() const {
  RunTensors out;
  for (const Parameter& p : parameters_) {
    RunTensor tensor{"grad." + p.name, ElementType::bf16, p.shape, Bytes(p.gradient.size() * 2)};
    std::memcpy(tensor.values.data(), p.gradient.data(), tensor.values.size());
    out.push_back(std::move(tensor));
  }
  return out;
}

std::string TrainingRun::rule() {
  return R"({"optimizer":"adamw","order":"fused","betas":[0.9,0.95],"eps":1e-8,"weight_decay":0.1,)"
         R"("groups":[{"max_rank":1,"weight_decay":0}]})";
}

String put_file(SimulatedDisk& disk, const std::string& name, const RunTensors& tensors,
                const checkpoint::Metadata& metadata) {
  (void)disk.make_folder("in");
  const String path = checkpoint::join({"in/", name, ".safetensors"});
  checkpoint::SafetensorsHeader header;
  header.metadata = metadata;
  header.has_metadata = !metadata.empty();
  Bytes data;
  for (const RunTensor& tensor : tensors) {
    checkpoint::StoredTensor stored;
    stored.name = String(tensor.name);
    stored.what = {tensor.type, *Shape::try_make(tensor.shape)};
    header.tensors.push_back(std::move(stored));
    data.insert(data.end(), tensor.values.begin(), tensor.values.end());
  }
  checkpoint::lay_out(header);
  const auto begin = checkpoint::header_bytes(header.text);
  Bytes all(begin.begin(), begin.end());
  all.insert(all.end(), data.begin(), data.end());
  if (disk.exists(std::string(path))) (void)disk.remove(path);
  const auto file = disk.create(path);
  if (file.ok()) (void)checkpoint::write_fully(*file.value(), 0, all);
  return path;
}

Result<std::map<std::string, Bytes>> restore_all(const checkpoint::Store& store, std::uint64_t step,
                                                 checkpoint::Report& report) {
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto manifest, store.at_step(step, report));
  checkpoint::Restorer restorer(store, runner);
  std::map<std::string, Bytes> out;
  AlignedBuffer values;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    QUERN_RETURN_IF_ERROR(restorer.tensor(manifest.name, i, values, report));
    const auto bytes = values.span();
    out[std::string(manifest.tensors[i].name)] = Bytes(bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace quern::testing

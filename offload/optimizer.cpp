// Opening, and what the walks over subgroups do.
#include "offload/optimizer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <system_error>

#include "offload/members.h"
#include "offload/pass.h"
#include "storage/publish_file.h"

namespace quern::offload {
namespace {

using codec::tensor::AdamSettings;
using codec::tensor::ElementType;
using storage::decimal;
using storage::fail;
using storage::join;
using storage::Report;

constexpr std::uint64_t kPartValues = kernels::kAtRestTile * 64;

Status check_settings(const AdamSettings& s, std::size_t region, Report& report) {
  const bool betas = s.beta1 >= 0 && s.beta1 < 1 && s.beta2 >= 0 && s.beta2 < 1;
  if (std::isfinite(s.rate) && betas && std::isfinite(s.epsilon) && s.epsilon >= 0 && std::isfinite(s.decay)) return {};
  return fail(report, StatusCode::invalid_argument,
              join({"region ", decimal(region), ": the rate, epsilon and decay must be finite, betas in [0, 1)"}));
}

/// Whether gradients can be multiplied by that, in binary32.
bool is_factor(double factor) {
  const auto narrow = static_cast<float>(factor);
  return narrow > 0 && std::isfinite(narrow);
}

}  // namespace

Optimizer::Optimizer(storage::FileSystem& files, OptimizerOptions options)
    : files_(files), options_(std::move(options)), process_(::getpid()) {
  Execution execution;
  execution.threads = options_.threads;
  runner_ = std::make_unique<RunnerHandle>(execution);
}

Optimizer::~Optimizer() {
  if (::getpid() == process_) return;
  // A child of a fork has no threads to join, and their locks are in any state. So their memory stays.
  for (auto& folder : folders_) folder.release()->leave_to_parent();
  (void)runner_.release();
}

Result<std::unique_ptr<Optimizer>> Optimizer::open(storage::FileSystem& files, OptimizerOptions options,
                                                   Report& report) {
  try {
    std::unique_ptr<Optimizer> made(new Optimizer(files, std::move(options)));
    QUERN_RETURN_IF_ERROR(made->prepare(report));
    return made;
  } catch (const std::system_error&) {
    return Status(StatusCode::out_of_memory, "the system has no thread to read and write with");
  }
}

Status Optimizer::prepare(Report& report) {
  const auto groups = cut_subgroups(options_.region_values, options_.subgroup_values);
  if (!groups.ok()) return groups.status();
  groups_ = groups.value();
  if (options_.form.bits != 8 && options_.form.bits != 4)
    return fail(report, StatusCode::invalid_argument, "moments at rest have codes of 8 or 4 bits");
  manifest_.region_values = options_.region_values;
  manifest_.subgroup_values = options_.subgroup_values;
  manifest_.form = options_.form;
  manifest_.seed = options_.seed;
  manifest_.folders = static_cast<std::uint32_t>(options_.folders.size());
  manifest_.groups.resize(groups_.size());
  packs_.assign(options_.folders.size(), options_.file_form == FileForm::packed);
  packs_any_ = options_.file_form == FileForm::packed && !packs_.empty();
  QUERN_RETURN_IF_ERROR(make_slots(report));
  return options_.folders.empty() ? Status() : open_folders(report);
}

Status Optimizer::make_slots(Report& report) {
  std::uint64_t all = 0;
  for (const Subgroup& group : groups_) {
    const std::uint64_t bytes = plain_bytes(group.values, options_.form);
    largest_bytes_ = std::max(largest_bytes_, bytes);
    all += bytes;
  }
  std::size_t slots = groups_.size();
  const std::uint64_t limit = options_.memory_limit;
  if (limit != 0 && limit < all) {
    if (options_.folders.empty())
      return fail(report, StatusCode::memory_limit,
                  join({"the state takes ", decimal(all), " bytes, the limit is ", decimal(limit),
                        ". Raise the limit, give folders for what does not fit, or use codes of 4 bits"}));
    slots = static_cast<std::size_t>(limit / largest_bytes_);
    if (slots < 2)
      return fail(report, StatusCode::memory_limit,
                  join({"a limit of ", decimal(limit), " bytes holds less than two subgroups of ",
                        decimal(largest_bytes_), ". Raise the limit, or make subgroups smaller"}));
  }
  slots_ = Vector<Slot>(slots);
  slot_of_.assign(groups_.size(), kNone);
  return check_coders(report);
}

/// Whether coders and two subgroups fit into the memory, where files are or will be entropy coded.
Status Optimizer::check_coders(Report& report) const {
  const std::uint64_t limit = options_.memory_limit;
  const std::uint64_t coders = coder_bytes(packs_.size());
  if (!packs_any_ || limit == 0 || limit >= coders + 2 * largest_bytes_) return {};
  // Plain files would be of no help to a state whose files are coded.
  const bool may_be_plain = options_.file_form == FileForm::packed;
  return fail(report, StatusCode::memory_limit,
              join({"coding files takes ", decimal(coders), " bytes and two subgroups ", decimal(2 * largest_bytes_),
                    ", together more than the limit of ", decimal(limit),
                    may_be_plain ? ". Raise the limit, or let files be plain"
                                 : ", and files of this state are coded. Raise the limit"}));
}

Status Optimizer::open_folders(Report& report) {
  for (const FolderOptions& folder : options_.folders) {
    for (const auto& other : folders_)
      if (other->path() == folder.path)
        return fail(report, StatusCode::invalid_argument, join({folder.path, ": this folder was given twice"}));
    folders_.push_back(std::make_unique<Folder>(files_, folder, options_.io_threads));
    QUERN_RETURN_IF_ERROR(folders_.back()->take(report));
  }
  for (const auto& folder : folders_)
    for (const auto& other : folders_) QUERN_RETURN_IF_ERROR(other->check_turn_file(folder->turn_file(), report));
  // Nothing is removed before each folder is known to be one of this state, at its place.
  QUERN_ASSIGN_OR_RETURN(const auto state, find_state(files_, folders_, report));
  if (!state) {
    QUERN_ASSIGN_OR_RETURN(manifest_.state, begin_state(files_, folders_, report));
    return {};
  }
  manifest_.state = *state;
  const String path = folders_.front()->file("state");
  const auto bytes = storage::read_file(files_, path, kMostManifestBytes);
  if (!bytes.ok() && !storage::is_missing(bytes.status()))
    return storage::fail_file(report, path, "read it", bytes.status());
  if (bytes.ok()) {
    const auto found = parse_manifest(*bytes);
    if (!found.ok()) return storage::fail_file(report, path, "use it", found.status());
    if (found->state != *state)
      return fail(
          report, StatusCode::invalid_argument,
          join({path, ": this file is of another state than the folder it lies in. Put the state's own file back"}));
    const bool fits = found->region_values == manifest_.region_values &&
                      found->subgroup_values == manifest_.subgroup_values && found->folders == manifest_.folders &&
                      found->form.bits == manifest_.form.bits && found->form.finest == manifest_.form.finest;
    if (!fits)
      return fail(report, StatusCode::invalid_argument,
                  join({path, ": this state has other parameters, subgroups of ", decimal(found->subgroup_values),
                        " values, codes of ", decimal(found->form.bits), " bits and ", decimal(found->folders),
                        " folders. Open it as it was made, or give empty folders"}));
    manifest_ = found.value();
    count_coders();
    QUERN_RETURN_IF_ERROR(check_coders(report));
    last_stamp_ = manifest_.stamp;
    loaded_ = true;
  }
  return remove_strangers(report);
}

/// Removes what steps that were not finished left in the folders.
Status Optimizer::remove_strangers(Report& report) {
  for (std::size_t f = 0; f < folders_.size(); ++f) {
    Vector<String> known;
    for (std::size_t g = 0; g < groups_.size() && loaded_; ++g)
      if (manifest_.groups[g].folder == f) known.push_back(subgroup_file_name(g, manifest_.groups[g].stamp));
    std::sort(known.begin(), known.end());
    const auto names = files_.list(folders_[f]->path());
    if (!names.ok()) return storage::fail_file(report, folders_[f]->path(), "list it", names.status());
    for (const String& name : *names) {
      const bool ours = is_subgroup_file_name(name) || name == "state.new" || name == "member.new";
      if (!ours || std::binary_search(known.begin(), known.end(), name)) continue;
      const String path = folders_[f]->file(name);
      if (const Status removed = files_.remove(path); !removed.ok())
        return storage::fail_file(report, path, "remove it", removed);
    }
  }
  return {};
}

Status Optimizer::check_process(Report& report) const {
  if (::getpid() == process_) return {};
  return fail(report, StatusCode::invalid_argument,
              "this optimizer was opened before a fork and belongs to the parent. Open one in this process, over other "
              "folders");
}

Status Optimizer::check_usable(Report& report) const {
  QUERN_RETURN_IF_ERROR(check_process(report));
  if (broken_)
    return fail(report, StatusCode::invalid_argument,
                in_files() ? "a step failed while it was made to count. Open the folders again: they hold the state "
                             "before it or the one after"
                           : "a step failed half done, in memory. Load the state again");
  if (!loaded_)
    return fail(report, StatusCode::invalid_argument, "there are no weights yet: load them before the first step");
  return {};
}

Status Optimizer::load(std::uint64_t step_count, const PartSource& source, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  if (broken_ && in_files()) return check_usable(report);
  if (step_count > kMostSteps)
    return fail(report, StatusCode::invalid_argument, "a state has taken at most 2^63 - 1 steps");
  Vector<float> first(static_cast<std::size_t>(std::min(kPartValues, options_.subgroup_values)));
  Vector<float> second(first.size());
  Pass pass;
  pass.order.resize(groups_.size());
  std::iota(pass.order.begin(), pass.order.end(), std::size_t{0});
  pass.reads = false;
  pass.body = [&](SubgroupData& data, const Subgroup& group) -> Status {
    for (std::uint64_t at = 0; at < group.values; at += kPartValues) {
      const std::uint64_t count = std::min(kPartValues, group.values - at);
      std::fill(first.begin(), first.end(), 0.0f);
      std::fill(second.begin(), second.end(), 0.0f);
      QUERN_RETURN_IF_ERROR(
          source({group.region, group.begin + at, count, data.weight() + at, first.data(), second.data()}));
      QUERN_RETURN_IF_ERROR(
          data.moments.encode_part(manifest_.seed, step_count, at, count, first.data(), second.data(), runner_->get()));
    }
    return {};
  };
  broken_ = false;
  loaded_ = loaded_ && in_files();
  Status status = run_pass(pass, report);
  pass.next.step = step_count;
  return finish_pass(pass, status, report);
}

Status Optimizer::read_part_of(SubgroupData& data, const Subgroup& group, const RegionPart& part) {
  const std::uint64_t begin = std::max(part.begin, group.begin);
  const std::uint64_t end = std::min(part.begin + part.count, group.begin + group.values);
  const auto put = [&](float* to, const float* from, std::uint64_t at, std::uint64_t count) {
    if (to != nullptr) std::memcpy(to + (at - part.begin), from, 4 * static_cast<std::size_t>(count));
  };
  put(part.weights, data.weight() + (begin - group.begin), begin, end - begin);
  if (part.first == nullptr && part.second == nullptr) return {};
  constexpr std::uint64_t kTile = kernels::kAtRestTile;
  Vector<float> first(kTile), second(kTile);
  for (std::uint64_t t = (begin - group.begin) / kTile * kTile; t < end - group.begin; t += kTile) {
    const std::uint64_t count = std::min(kTile, group.values - t);
    QUERN_RETURN_IF_ERROR(data.moments.decode_part(t, count, first.data(), second.data(), runner_->get()));
    const std::uint64_t from = std::max(begin, group.begin + t);
    const std::uint64_t to = std::min(end, group.begin + t + count);
    put(part.first, first.data() + (from - group.begin - t), from, to - from);
    put(part.second, second.data() + (from - group.begin - t), from, to - from);
  }
  return {};
}

Status Optimizer::read(const RegionPart& part, Report& report) {
  QUERN_RETURN_IF_ERROR(check_usable(report));
  if (part.region >= manifest_.region_values.size() || part.begin > manifest_.region_values[part.region] ||
      part.count > manifest_.region_values[part.region] - part.begin)
    return fail(report, StatusCode::invalid_argument, "these values are not in the region, or there is no such region");
  Pass pass;
  pass.writes = false;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].region == part.region && groups_[g].begin < part.begin + part.count &&
        part.begin < groups_[g].begin + groups_[g].values)
      pass.order.push_back(g);
  pass.body = [&](SubgroupData& data, const Subgroup& group) { return read_part_of(data, group, part); };
  Status status = run_pass(pass, report);
  return finish_pass(pass, status, report);
}

Result<StepOutcome> Optimizer::step(std::span<const RegionStep> regions, const StepOptions& options, Report& report) {
  QUERN_RETURN_IF_ERROR(check_usable(report));
  if (regions.size() != manifest_.region_values.size())
    return fail(report, StatusCode::invalid_argument,
                join({"the state has ", decimal(manifest_.region_values.size()), " regions, the step ",
                      decimal(regions.size())}));
  if (!is_factor(1 / options.loss_scale) || !(options.max_norm >= 0) || !std::isfinite(options.max_norm))
    return fail(report, StatusCode::invalid_argument,
                "the loss scale and 1 over it must be above 0 and finite in binary32, the largest norm at least 0");
  if (manifest_.step >= kMostSteps) return fail(report, StatusCode::invalid_argument, "no more steps can be counted");
  double squares = 0;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    if (manifest_.region_values[r] == 0) continue;
    QUERN_RETURN_IF_ERROR(check_settings(regions[r].settings, r, report));
    const auto& gradient = regions[r].gradient;
    if (gradient.values == nullptr || (gradient.type != ElementType::bf16 && gradient.type != ElementType::f32))
      return fail(report, StatusCode::invalid_argument,
                  join({"region ", decimal(r), ": its gradient must be there, in bfloat16 or binary32"}));
    const double norm =
        codec::tensor::gradient_norm(gradient, manifest_.region_values[r], 1 / options.loss_scale, runner_->get());
    squares += norm * norm;
  }
  StepOutcome outcome;
  outcome.norm = std::sqrt(squares);
  if (!std::isfinite(outcome.norm)) {
    outcome.skipped = true;
    if (options.skip_not_finite) return outcome;
    return fail(report, StatusCode::invalid_argument, "a gradient holds NaN or infinity, and nothing was changed");
  }
  // PyTorch's way of clipping by the norm.
  const double clip = options.max_norm == 0 ? 1 : std::min(1.0, options.max_norm / (outcome.norm + 1e-6));
  if (!is_factor(clip / options.loss_scale))
    return fail(report, StatusCode::invalid_argument,
                "the norm of the gradients is so far above the largest norm that they would all become 0. Raise the "
                "largest norm, or the loss scale is wrong");
  const std::uint64_t step = manifest_.step + 1;
  Vector<kernels::AdamRule> rules;
  for (const RegionStep& region : regions) {
    AdamSettings settings = region.settings;
    settings.clip = static_cast<float>(clip / options.loss_scale);
    settings.step = step;
    rules.push_back(make_adam_rule(settings));
  }
  Pass pass;
  plan(pass);
  pass.body = [&](SubgroupData& data, const Subgroup& group) -> Status {
    const RegionStep& region = regions[group.region];
    codec::tensor::AtRestGradient gradient = region.gradient;
    gradient.values = static_cast<const std::uint8_t*>(gradient.values) + group.begin * element_bytes(gradient.type);
    std::uint16_t* const copy = region.copy == nullptr ? nullptr : region.copy + group.begin;
    QUERN_RETURN_IF_ERROR(
        data.moments.step(manifest_.seed, step, rules[group.region], gradient, data.weight(), copy, runner_->get()));
    if (region.weights != nullptr)
      std::memcpy(region.weights + group.begin, data.weight(), 4 * static_cast<std::size_t>(group.values));
    return {};
  };
  Status status = run_pass(pass, report);
  pass.next.step = step;
  QUERN_RETURN_IF_ERROR(finish_pass(pass, status, report));
  return outcome;
}

Usage Optimizer::usage() const {
  const std::lock_guard lock(mutex_);
  Usage usage = usage_;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::size_t slot = slot_of_[g];
    usage.state_bytes += !in_files() && slot != kNone
                             ? slots_[slot].data.bytes()
                             : plain_bytes(groups_[g].values, options_.form) + manifest_.groups[g].beside_bytes;
  }
  for (const StoredSubgroup& group : manifest_.groups) usage.packed_subgroups += group.packed_bytes != 0;
  for (const auto& folder : folders_) usage.folders.push_back(folder->use());
  return usage;
}

}  // namespace quern::offload

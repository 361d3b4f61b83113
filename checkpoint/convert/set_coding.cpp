// Order and treatment of the tensors of a set.
#include "checkpoint/convert/set_coding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "checkpoint/save/bound_check.h"
#include "checkpoint/save/difference.h"
#include "libcompress/core/run_tasks.h"

namespace quern::checkpoint {

namespace {

// What is coded together depends on the set alone: the order of tensors in a part is that of groups.
constexpr std::size_t kMostInGroup = 256;
constexpr std::size_t kMostAhead = 1024;

bool same_place(const SetTensor& a, const SetTensor& b) {
  if (a.is_piece != b.is_piece) return false;
  return !a.is_piece || (a.whole == b.whole && a.box.begin == b.box.begin && a.box.end == b.box.end);
}

/// F32 values of which some are positive and none negative: those of variances, scales and masks, not of weights.
bool are_one_sided(std::span<const std::uint8_t> values) {
  bool has_positive = false;
  for (std::size_t i = 0; i + 4 <= values.size(); i += 4) {
    float value;
    std::memcpy(&value, values.data() + i, 4);
    if (value < 0) return false;
    has_positive = has_positive || value > 0;
  }
  return has_positive;
}

TensorDescription whole_of(const SetTensor& tensor) {
  return {tensor.what.type, tensor.is_piece ? tensor.whole : tensor.what.shape};
}

}  // namespace

SetCoding::SetCoding(TensorSet& set, const FileSaveOptions& options, TaskRunner& runner)
    : set_(set), options_(options), runner_(runner), policy_(options.policy), replay_(options.replay) {
  for (PolicyRule& rule : preset_policy(options.preset).rules) policy_.rules.push_back(std::move(rule));
}

Status SetCoding::prepare(Report& report) {
  Vector<RoleSubject> subjects;
  for (std::size_t i = 0; i < set_.count(); ++i) {
    Entry entry;
    entry.tensor = set_.tensor(i);
    subjects.push_back({entry.tensor.name, entry.tensor.what, entry.tensor.role});
    total_ += entry.tensor.what.bytes();
    entries_.push_back(std::move(entry));
  }
  const Vector<const Metadata*> metadata = set_.metadata();
  if (replay_) QUERN_RETURN_IF_ERROR(complete_rule(*replay_, metadata, options_.save.step, report));
  RoleRules roles(options_.roles.begin(), options_.roles.end());
  roles.insert(roles.end(), policy_.roles.begin(), policy_.roles.end());
  auto assigned = assign_roles(subjects, roles);
  std::optional<double> rate = learning_rate(metadata);
  if (!rate && replay_) rate = replay_->numbers.rate;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    entry.role = std::move(assigned[i]);
    if (entry.tensor.declared != nullptr) continue;
    const PolicyRule* const rule = rule_for(policy_, {subjects[i].name, entry.role.role, whole_of(entry.tensor)});
    if (rule == nullptr) continue;
    entry.derived = rule->treatment == Treatment::derived;
    if (const auto mode = mode_of(rule->treatment)) {
      LossyRequest request{*mode, rule->bound,
                           rule->treatment == Treatment::ebq && rule->unit == BoundUnit::deviations};
      if (rule->treatment == Treatment::ebq && rule->unit == BoundUnit::rates) {
        if (!rate || !(*rate > 0))
          return fail(
              report, StatusCode::invalid_argument,
              join({"tensor '", subjects[i].name,
                    "': its bound is in learning rates, and neither the metadata nor a replay rule have an 'lr'"}));
        request.bound *= *rate;
      }
      entry.lossy = request;
    }
  }
  match_places();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const AssignedRole& role = entry.role;
    // What a companion was is in the set; only what comes back of it has to be waited for.
    if (role.companion && entries_[*role.companion].lossy) entry.needs.push_back(*role.companion);
    if (!options_.save.base || !role.exp_avg || !role.exp_avg_sq) continue;
    entry.reads_moments = entry.lossy || (replay_ && role.gradient);
    if (entry.lossy && entry.lossy->mode == Mode::ebq) {
      entry.needs.push_back(*role.exp_avg_sq);
      entry.needs.push_back(*role.exp_avg);
    }
    if (!replay_ || !role.gradient) continue;
    for (const std::uint32_t member : {i, *role.exp_avg, *role.exp_avg_sq}) {
      entries_[member].leads = i;
      entries_[member].needs.push_back(*role.gradient);
    }
  }
  Vector<std::uint8_t> seen(entries_.size());
  for (std::uint32_t i = 0; i < entries_.size(); ++i) add_with_needs(i, seen);
  for (const Entry& entry : entries_)
    for (const std::uint32_t needed : entry.needs) ++entries_[needed].waiting;
  for (std::uint32_t i = 0; i < entries_.size(); ++i)
    for_each_read(i, [&](std::uint32_t read) { ++entries_[read].readers; });
  summaries_.resize(entries_.size());
  return {};
}

/// What belongs together is told by names and shapes; of pieces it must be the one of the same place.
void SetCoding::match_places() {
  for (Entry& entry : entries_) {
    AssignedRole& role = entry.role;
    for (std::optional<std::uint32_t>* const other :
         {&role.companion, &role.exp_avg, &role.exp_avg_sq, &role.gradient}) {
      if (!*other || same_place(entry.tensor, entries_[**other].tensor)) continue;
      const std::string_view name = entries_[**other].tensor.name;
      const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
        return e.tensor.name == name && same_place(entry.tensor, e.tensor);
      });
      other->reset();
      if (found != entries_.end()) *other = static_cast<std::uint32_t>(found - entries_.begin());
    }
  }
}

/// Calls `body` with every tensor of which the set is asked for values while this one is coded.
template <class Body>
void SetCoding::for_each_read(std::uint32_t index, const Body& body) const {
  const Entry& entry = entries_[index];
  body(index);
  if (entry.role.companion) body(*entry.role.companion);
  if (!entry.reads_moments) return;
  body(*entry.role.exp_avg);
  body(*entry.role.exp_avg_sq);
  if (replay_ && entry.role.gradient) body(*entry.role.gradient);
}

void SetCoding::add_with_needs(std::uint32_t index, Vector<std::uint8_t>& seen) {
  if (seen[index] != 0) return;
  seen[index] = 1;
  for (const std::uint32_t needed : entries_[index].needs) add_with_needs(needed, seen);
  order_.push_back(index);
}

Status SetCoding::read_decoded(std::uint32_t index, AlignedBuffer& scratch, std::span<const std::uint8_t>& out,
                               Report& report) {
  Entry& entry = entries_[index];
  if (entry.decoded.size() != 0) {
    out = entry.decoded.span();
    return {};
  }
  QUERN_ASSIGN_OR_RETURN(out, set_.values(index, scratch, report));
  return {};
}

TensorSource SetCoding::source_of(std::uint32_t index, std::span<const std::uint8_t> values) const {
  const Entry& entry = entries_[index];
  TensorSource source;
  source.number = index;
  source.name = entry.tensor.name;
  source.role = entry.role.role;
  source.what = entry.tensor.what;
  source.declared = entry.tensor.declared;
  if (entry.tensor.is_piece) {
    source.whole = &entry.tensor.whole;
    source.box = entry.tensor.box;
  }
  source.values = values;
  return source;
}

Status SetCoding::finish(std::uint32_t index, SavedTensor saved, AlignedBuffer decoded) {
  Entry& entry = entries_[index];
  entry.coded = true;
  if (entry.waiting != 0) entry.decoded = std::move(decoded);
  for (const std::uint32_t needed : entry.needs)
    if (--entries_[needed].waiting == 0) entries_[needed].decoded = AlignedBuffer();
  if (!summaries_[index].saved.fallback.empty()) saved.fallback = std::move(summaries_[index].saved.fallback);
  for_each_read(index, [&](std::uint32_t read) {
    if (--entries_[read].readers == 0) set_.done(read);
  });
  done_ += entry.tensor.what.bytes();
  summaries_[index] = {String(entry.tensor.name), entry.role.role, std::move(saved), entry.tensor.what.bytes(),
                       entry.lossy};
  if (options_.progress && !options_.progress(done_, total_))
    return Status(StatusCode::cancelled, "the caller cancelled");
  return {};
}

Status SetCoding::try_replay(std::uint32_t weight, SaveSession& session, Report& report) {
  const AssignedRole& role = entries_[weight].role;
  const std::array<std::uint32_t, 3> members{weight, *role.exp_avg, *role.exp_avg_sq};
  std::array<AlignedBuffer, 3> values;
  ReplaySource source;
  TensorSource* const sources[] = {&source.weight, &source.exp_avg, &source.exp_avg_sq};
  for (std::size_t i = 0; i < members.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto there, set_.values(members[i], values[i], report));
    *sources[i] = source_of(members[i], there);
  }
  AlignedBuffer gradient;
  QUERN_RETURN_IF_ERROR(read_decoded(*role.gradient, gradient, source.gradient_values, report));
  Vector<std::pair<std::uint32_t, std::span<const std::uint8_t>>> unknown;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!entries_[members[i]].hashes) unknown.emplace_back(members[i], sources[i]->values);
  const Entry& gradient_entry = entries_[*role.gradient];
  const bool own_gradient = gradient_entry.decoded.size() != 0;
  if (!own_gradient && !gradient_entry.hashes) unknown.emplace_back(*role.gradient, source.gradient_values);
  QUERN_RETURN_IF_ERROR(hash(unknown));
  for (std::size_t i = 0; i < members.size(); ++i) sources[i]->hashes = &*entries_[members[i]].hashes;
  if (!own_gradient) source.gradient_hashes = &*gradient_entry.hashes;
  source.gradient_name = gradient_entry.tensor.name;
  source.gradient = *role.gradient;
  source.gradient_type = entries_[*role.gradient].tensor.what.type;
  source.rule = codec::tensor::make_adam_rule(
      replay_settings(*replay_, entries_[weight].tensor.name, source.weight.what.shape.rank()));
  auto saved = session.add_replay(source, report);
  if (!saved.ok()) return saved.status();
  if (!saved->refused.empty()) {
    summaries_[weight].saved.fallback = std::move(saved->refused);
    return {};
  }
  for (std::size_t i = members.size(); i-- > 0;)
    QUERN_RETURN_IF_ERROR(finish(members[i], std::move(saved->tensors[i]), {}));
  return {};
}

/// A copy of a weight in 16 bits comes back as the rounded weight that comes back, where it was the rounded weight.
Status SetCoding::code_copy(std::uint32_t index, TensorSource& source, SaveSession& session, Report& report) {
  const std::uint32_t master = *source.companion;
  AlignedBuffer room;
  QUERN_ASSIGN_OR_RETURN(const auto original, set_.values(master, room, report));
  codec::tensor::TensorRequest request;
  request.mode = Mode::derived;
  codec::tensor::TensorInputs inputs;
  inputs.values = source.values;
  inputs.companion = original;
  auto plan = codec::tensor::plan_tensor(source.what, request, inputs, runner_);
  if (!plan.ok() && plan.status().code() != StatusCode::unsupported) return plan.status();
  AlignedBuffer restored;
  const auto was = source.values;
  if (plan.ok()) {
    codec::tensor::EncodedTensor coded;
    coded.mode = Mode::derived;
    coded.sizes.resize(static_cast<std::size_t>(source.what.chunks()));
    inputs.values = {};
    inputs.companion = source.companion_values;
    QUERN_RETURN_IF_ERROR(restored.resize(was.size()));
    QUERN_RETURN_IF_ERROR(codec::tensor::decode_tensor(source.what, coded, inputs, restored.span(), runner_));
    if (content_hash(was) != source.hashes->content) return fail_changed(source.name, report);
    if (content_hash(original) != entries_[master].hashes->content)
      return fail_changed(entries_[master].tensor.name, report);
    source.original = source.hashes->content;
    source.values = restored.span();
    source.hashes = nullptr;
  }
  auto saved = session.add_tensor(source, report);
  if (!saved.ok()) return saved.status();
  if (plan.ok()) {
    saved->worst_absolute = difference(source.what.type, was, restored.span()).max_error;
  } else {
    saved->fallback = "derived: it is not the rounded F32 weight";
  }
  return finish(index, std::move(saved).value(), {});
}

/// A tensor of a group, and what is read for it.
struct SetCoding::GroupMember {
  std::uint32_t index = 0;
  TensorSource source;
  AlignedBuffer values;
  AlignedBuffer companion;
  AlignedBuffer decoded;
  std::array<AlignedBuffer, 2> moments;
};

/// Hashes what was not hashed before: what is read later must be the same.
Status SetCoding::hash(std::span<const std::pair<std::uint32_t, std::span<const std::uint8_t>>> values) {
  return run_tasks(runner_, values.size(), [&](std::size_t i) -> Status {
    entries_[values[i].first].hashes = hash_values(values[i].second);
    return {};
  });
}

bool SetCoding::fits_group(const Entry& entry) const {
  if (entry.coded || entry.tensor.what.bytes() > options_.save.large_tensor_bytes) return false;
  if (entry.leads && tried_[*entry.leads] == 0) return false;
  if (std::any_of(entry.needs.begin(), entry.needs.end(), [&](std::uint32_t n) { return !entries_[n].coded; }))
    return false;
  return !entry.derived || !entry.role.companion || entries_[*entry.role.companion].decoded.size() == 0;
}

Vector<std::uint32_t> SetCoding::take_group(std::size_t first) const {
  Vector<std::uint32_t> group;
  std::uint64_t bytes = 0;
  const std::size_t end = std::min(order_.size(), first + kMostAhead);
  for (std::size_t i = first; i < end && group.size() < kMostInGroup; ++i) {
    const Entry& entry = entries_[order_[i]];
    if (!fits_group(entry)) continue;
    std::uint64_t own = entry.tensor.what.bytes();
    if (entry.role.companion) own += entries_[*entry.role.companion].tensor.what.bytes();
    if (!group.empty() && bytes + own > options_.group_bytes) break;
    bytes += own;
    group.push_back(order_[i]);
  }
  if (group.empty()) group.push_back(order_[first]);
  return group;
}

Status SetCoding::read_inputs(GroupMember& member, Report& report) {
  Entry& entry = entries_[member.index];
  QUERN_ASSIGN_OR_RETURN(const auto there, set_.values(member.index, member.values, report));
  if (entry.lossy && entry.lossy->mode == Mode::ebq && entry.role.from_name &&
      entry.tensor.what.type == ElementType::f32 && are_one_sided(there)) {
    summaries_[member.index].saved.fallback =
        "ebq: none of its values is negative, so it may be no weight but a statistic";
    entry.lossy.reset();
  }
  TensorSource& source = member.source = source_of(member.index, there);
  source.lossy = entry.lossy;
  source.companion = entry.role.companion;
  if (source.companion) {
    const Entry& companion = entries_[*source.companion];
    QUERN_RETURN_IF_ERROR(read_decoded(*source.companion, member.companion, source.companion_values, report));
    source.companion_type = companion.tensor.what.type;
    source.companion_name = companion.tensor.name;
  }
  if (entry.lossy && entry.lossy->mode == Mode::ebq && options_.save.base && entry.role.exp_avg &&
      entry.role.exp_avg_sq) {
    source.moments = {*entry.role.exp_avg, *entry.role.exp_avg_sq};
    for (std::size_t i = 0; i < 2; ++i)
      QUERN_RETURN_IF_ERROR(read_decoded((*source.moments)[i], member.moments[i], source.moment_values[i], report));
  }
  if (entry.lossy && entry.waiting != 0) source.decoded = &member.decoded;
  return {};
}

Status SetCoding::code_group(const Vector<std::uint32_t>& group, SaveSession& session, Report& report) {
  Vector<GroupMember> members(group.size());
  Vector<std::pair<std::uint32_t, std::span<const std::uint8_t>>> unknown;
  const auto know = [&](std::uint32_t index, std::span<const std::uint8_t> values) {
    const bool known = entries_[index].hashes.has_value() || entries_[index].decoded.size() != 0 ||
                       std::any_of(unknown.begin(), unknown.end(), [&](const auto& one) { return one.first == index; });
    if (!known) unknown.emplace_back(index, values);
  };
  for (std::size_t i = 0; i < group.size(); ++i) {
    members[i].index = group[i];
    QUERN_RETURN_IF_ERROR(read_inputs(members[i], report));
    const TensorSource& source = members[i].source;
    know(group[i], source.values);
    if (source.companion) know(*source.companion, source.companion_values);
    for (std::size_t m = 0; source.moments && m < 2; ++m) know((*source.moments)[m], source.moment_values[m]);
  }
  QUERN_RETURN_IF_ERROR(hash(unknown));
  const auto hashes_of = [&](std::uint32_t index) {
    return entries_[index].decoded.size() != 0 ? nullptr : &*entries_[index].hashes;
  };
  Vector<TensorSource> sources;
  for (GroupMember& member : members) {
    TensorSource& source = member.source;
    source.hashes = &*entries_[member.index].hashes;
    if (source.companion) source.companion_hashes = hashes_of(*source.companion);
    for (std::size_t m = 0; source.moments && m < 2; ++m) source.moment_hashes[m] = hashes_of((*source.moments)[m]);
    sources.push_back(source);
  }
  const Entry& first = entries_[group.front()];
  if (first.derived && sources.front().companion && entries_[*sources.front().companion].decoded.size() != 0)
    return code_copy(group.front(), sources.front(), session, report);
  auto saved = session.add_tensors(sources, report);
  if (!saved.ok()) return saved.status();
  for (std::size_t i = 0; i < group.size(); ++i)
    QUERN_RETURN_IF_ERROR(finish(group[i], std::move((*saved)[i]), std::move(members[i].decoded)));
  return {};
}

Status SetCoding::run(SaveSession& session, Report& report) {
  tried_.resize(entries_.size());
  for (std::size_t next = 0; next < order_.size();) {
    const Entry& entry = entries_[order_[next]];
    if (entry.coded) {
      ++next;
      continue;
    }
    const bool replay = entry.leads && tried_[*entry.leads] == 0;
    const Vector<std::uint32_t> group = replay ? Vector<std::uint32_t>{order_[next]} : take_group(next);
    if (replay) tried_[*entry.leads] = 1;
    const Status status = replay ? try_replay(*entry.leads, session, report) : code_group(group, session, report);
    if (status.ok()) continue;
    if (status.code() == StatusCode::cancelled) return status;
    // The sentence names the tensor; it is to name its file, too.
    for (const std::uint32_t index : group) {
      const SetTensor& tensor = entries_[index].tensor;
      if (tensor.place.empty()) continue;
      if (group.size() == 1 || report.problem.find(join({"'", tensor.name, "'"})) != String::npos)
        return fail_at(report, tensor.place, status);
    }
    return status;
  }
  return {};
}

void add_fallback_notes(const Vector<TensorSummary>& tensors, Report& report) {
  Vector<std::string_view> told;
  for (const TensorSummary& tensor : tensors) {
    const std::string_view why = tensor.saved.fallback;
    if (why.empty() || std::find(told.begin(), told.end(), why) != told.end()) continue;
    told.push_back(why);
    const auto count = static_cast<std::uint64_t>(std::count_if(
        tensors.begin(), tensors.end(), [&](const TensorSummary& other) { return other.saved.fallback == why; }));
    report.notes.push_back(
        join({"tensor '", tensor.name, "'", count > 1 ? join({" and ", decimal(count - 1), " more"}) : String(),
              " kept exactly: ", why}));
  }
}

}  // namespace quern::checkpoint

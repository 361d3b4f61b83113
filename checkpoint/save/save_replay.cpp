// A step of the optimizer stored as its gradient: three tensors at once, bit for bit, or none.
#include <algorithm>

#include "checkpoint/save/save_known.h"
#include "codecs/tensor/replay.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kMembers = 3;

/// What the three bases take to restore; members of one replayed group are counted once.
struct Behind {
  std::uint32_t depth = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t chain_bytes = 0;
};

Behind behind(const std::array<const ManifestTensor*, kMembers>& bases) {
  Behind out;
  const bool together = std::all_of(bases.begin(), bases.end(), [](const auto* b) { return b->mode == Mode::replay; });
  for (const ManifestTensor* const base : bases) {
    out.depth = std::max(out.depth, base->depth);
    if (together && base != bases[0]) continue;
    out.key_bytes += base->key_bytes;
    out.chain_bytes += base->chain_bytes;
  }
  return out;
}

}  // namespace

Result<SavedReplay> SaveSession::add_replay(const ReplaySource& source, Report& report) {
  SavedReplay out;
  const auto refuse = [&](std::string_view why) {
    out.refused = join({"replay: ", why});
    return out;
  };
  const std::array<const TensorSource*, kMembers> members{&source.weight, &source.exp_avg, &source.exp_avg_sq};
  if (source.gradient >= added_.size() || added_[source.gradient] == 0)
    return fail(report, StatusCode::invalid_argument,
                join({"tensor '", source.weight.name, "': its gradient has to be added before it"}));
  if (base_ == nullptr || base_->damaged) return refuse("there is no base");
  std::array<Restorer::Place, kMembers> places;
  std::array<const ManifestTensor*, kMembers> bases{};
  for (std::size_t i = 0; i < kMembers; ++i) {
    const auto found = base_->tensors.find(piece_key(members[i]->name, members[i]->whole, members[i]->box));
    if (found == base_->tensors.end()) return refuse(join({"the base has no tensor '", members[i]->name, "'"}));
    QUERN_ASSIGN_OR_RETURN(const auto place, base_place(*members[i], found->second));
    if (!place || members[i]->what.type != ElementType::f32 || members[i]->what.shape != source.weight.what.shape)
      return refuse("weight, moments and base are not all F32 of one shape");
    places[i] = *place;
    bases[i] = &at(*place);
    if (bases[i]->decoded) return refuse("the base has lost something, and a step must begin with the very bits");
  }
  if (source.weight.what.elems() == 0) return refuse("it has no values");
  const Behind before = behind(bases);
  const ChainLimits& limits = options_.limits;
  const ManifestTensor& gradient = manifest_.tensors[source.gradient];
  const std::uint64_t gradient_bytes = gradient.alias ? 0 : gradient.stored_bytes;
  if (before.depth + 1 > limits.replays || before.chain_bytes > before.key_bytes * limits.chain_percent / 100 ||
      before.chain_bytes + gradient_bytes > before.key_bytes * (std::max(limits.restore_percent, 100u) - 100) / 100)
    return refuse("too much would have to be read before it");

  std::array<AlignedBuffer, kMembers> values;
  for (std::size_t i = 0; i < kMembers; ++i) {
    QUERN_ASSIGN_OR_RETURN(const bool there, read_base(places[i], values[i], report));
    if (!there) return refuse("the base cannot be read");
  }
  std::array<ContentHash, kMembers> before_plan;
  for (std::size_t i = 0; i < kMembers; ++i)
    before_plan[i] = members[i]->hashes != nullptr ? members[i]->hashes->content : content_hash(members[i]->values);
  auto side = codec::tensor::plan_replay(
      source.weight.what, source.rule, {values[0].span(), values[1].span(), values[2].span()},
      {source.gradient_values, source.gradient_type},
      {source.weight.values, source.exp_avg.values, source.exp_avg_sq.values}, runner_);
  if (side.status().code() == StatusCode::unsupported || side.status().code() == StatusCode::invalid_argument)
    return refuse(side.status().text());
  if (!side.ok()) return fail_at(report, join({"tensor '", source.weight.name, "'"}), side.status());
  for (std::size_t i = 0; i < kMembers; ++i)
    if (content_hash(members[i]->values) != before_plan[i]) return fail_changed(members[i]->name, report);
  if (source.gradient_hashes != nullptr && content_hash(source.gradient_values) != source.gradient_hashes->content)
    return fail_changed(source.gradient_name, report);

  std::array<ManifestTensor, kMembers> made;
  for (std::size_t i = 0; i < kMembers; ++i) {
    QUERN_ASSIGN_OR_RETURN(made[i], describe(*members[i], report));
    QUERN_ASSIGN_OR_RETURN(out.tensors[i].number, take_number(*members[i], report));
  }
  made[0].companion = source.gradient;
  made[0].moments = {out.tensors[1].number, out.tensors[2].number};
  made[0].base = refer_to(places[0]);
  made[0].base_moments = {refer_to(places[1]), refer_to(places[2])};
  made[1].companion = made[2].companion = out.tensors[0].number;
  std::uint64_t stored = gradient_bytes;
  for (std::size_t i = 0; i < kMembers; ++i) {
    made[i].mode = Mode::replay;
    QUERN_RETURN_IF_ERROR(write_replayed(made[i], out.tensors[i].number, *side, report));
    side->clear();  // the weight has it
    stored += made[i].stored_bytes;
    out.tensors[i].mode = Mode::replay;
    out.tensors[i].stored_bytes = made[i].stored_bytes;
  }
  for (std::size_t i = 0; i < kMembers; ++i) {
    made[i].depth = before.depth + 1;
    made[i].key_bytes = before.key_bytes;
    made[i].chain_bytes = before.chain_bytes + stored;
    known_->add(made[i], {}, out.tensors[i]);
    manifest_.tensors[out.tensors[i].number] = std::move(made[i]);
  }
  return out;
}

}  // namespace quern::checkpoint

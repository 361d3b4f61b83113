// What a tensor needs before it can be decoded: bases, companions, directions, and groups that are replayed together.
#include <algorithm>
#include <cstring>

#include "checkpoint/restore/restore.h"
#include "checkpoint/store/copy_values.h"
#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/replay.h"

namespace quern::checkpoint {
namespace {

constexpr const char* kMemberNames[] = {"base", "base's first moment", "base's second moment"};

}  // namespace

Result<Restorer::Place> Restorer::needed_place(const Place& from, const TensorPlace& place, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(from.checkpoint, report));
  const CheckpointName& name =
      place.checkpoint == 0 ? from.checkpoint : checkpoint->manifest.references[place.checkpoint - 1];
  auto target = resolve(name, place.tensor, report);
  if (!target.ok())
    return fail_at(report, join({place_text(from.checkpoint, checkpoint->manifest.tensors[from.tensor]), ": its base"}),
                   target.status());
  return target;
}

const AlignedBuffer* Restorer::find_kept(const Place& place) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.place == place; });
  if (found == kept_.end()) return nullptr;
  std::rotate(found, found + 1, kept_.end());
  return &kept_.back().values;
}

bool Restorer::take_kept(const Place& place, AlignedBuffer& out) {
  const AlignedBuffer* const kept = find_kept(place);
  return kept != nullptr && copy_values({kept->data(), kept->size()}, out).ok();
}

void Restorer::keep(const Place& place, std::span<const std::uint8_t> values) {
  std::size_t sum = values.size();
  for (const Kept& one : kept_) {
    if (one.place == place) return;
    sum += one.values.size();
  }
  while (!kept_.empty() && sum > kept_limit_) {
    sum -= kept_.front().values.size();
    kept_.erase(kept_.begin());
  }
  if (sum > kept_limit_) return;
  Kept made;
  made.place = place;
  if (copy_values(values, made.values).ok()) kept_.push_back(std::move(made));
}

Status Restorer::decode_needed(const Place& place, const Place& by, const char* as, std::optional<ElementType> type,
                               AlignedBuffer& out, std::size_t depth, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  QUERN_ASSIGN_OR_RETURN(Opened* const needing, opened(by.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  const ManifestTensor& needer = needing->manifest.tensors[by.tensor];
  // A companion may share its values with a tensor of another shape or type.
  if (type && (tensor.what.type != *type || tensor.what.shape != needer.what.shape))
    return fail(report, StatusCode::corrupt,
                join({place_text(by.checkpoint, needer), ": its ", as, " has another type or shape"}));
  if (take_kept(place, out)) return {};
  QUERN_RETURN_IF_ERROR(decode(place, out, depth + 1, report));
  if (needer.mode != Mode::delta) keep(place, out.span());  // nobody else will ask for the base of a difference
  return {};
}

Status Restorer::decode_direction(const Place& by, const std::array<Place, 2>& moments, AlignedBuffer& direction,
                                  std::size_t depth, Report& report) {
  std::array<AlignedBuffer, 2> values;
  for (std::size_t i = 2; i-- > 0;)
    QUERN_RETURN_IF_ERROR(decode_needed(moments[i], by, "moment", ElementType::f32, values[i], depth, report));
  QUERN_RETURN_IF_ERROR(direction.resize(values[0].size()));
  codec::tensor::update_direction(values[0].span(), values[1].span(), direction.span());
  return {};
}

Status Restorer::decode_member(const Place& place, AlignedBuffer& out, std::size_t depth, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  const Manifest& manifest = checkpoint->manifest;
  const ManifestTensor& tensor = manifest.tensors[place.tensor];
  const auto misfit = [&] {
    return fail(report, StatusCode::corrupt,
                join({place_text(place.checkpoint, tensor), ": its mode does not fit what the manifest says"}));
  };
  Place leader = place;
  if (!tensor.moments) {
    if (!tensor.companion) return misfit();
    leader.tensor = *tensor.companion;
  }
  const ManifestTensor& weight = manifest.tensors[leader.tensor];
  if (weight.alias || weight.mode != Mode::replay || !weight.moments || !weight.base_moments || !weight.base ||
      !weight.companion)
    return misfit();
  const std::array<std::uint32_t, 3> numbers{leader.tensor, (*weight.moments)[0], (*weight.moments)[1]};
  const auto* const self = std::find(numbers.begin(), numbers.end(), place.tensor);
  if (self == numbers.end()) return misfit();
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const ManifestTensor& member = manifest.tensors[numbers[i]];
    if (member.alias || member.mode != Mode::replay || member.companion != leader.tensor || member.moments ||
        member.what.type != weight.what.type || member.what.shape != weight.what.shape)
      return misfit();
  }
  std::array<AlignedBuffer, 3> values;
  QUERN_RETURN_IF_ERROR(decode_group(leader, values, depth, report));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Place member{place.checkpoint, numbers[i]};
    QUERN_RETURN_IF_ERROR(check_hash(member, values[i].span(), report));
    if (numbers[i] != place.tensor) keep(member, values[i].span());
  }
  out = std::move(values[static_cast<std::size_t>(self - numbers.begin())]);
  return {};
}

Status Restorer::decode_group(const Place& leader, std::span<AlignedBuffer, 3> out, std::size_t depth, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(leader.checkpoint, report));
  const Manifest& manifest = checkpoint->manifest;
  const ManifestTensor& weight = manifest.tensors[leader.tensor];
  const String where = place_text(leader.checkpoint, weight);
  const ManifestTensor& gradient = manifest.tensors[*weight.companion];
  if (gradient.what.shape != weight.what.shape)
    return fail(report, StatusCode::corrupt, join({where, ": its gradient has another shape"}));
  TensorHead head;
  std::span<const std::uint8_t> first;
  QUERN_ASSIGN_OR_RETURN(const auto body, read_head(leader, head, first, report));
  if (!first.empty())
    return fail(report, StatusCode::corrupt, join({where, ": a replayed tensor has no bytes of its own"}));
  // A replayed base brings its moments along, which are kept and found below.
  const std::array<TensorPlace, 3> places{*weight.base, (*weight.base_moments)[0], (*weight.base_moments)[1]};
  for (std::size_t i = 0; i < places.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const Place target, needed_place(leader, places[i], report));
    QUERN_RETURN_IF_ERROR(decode_needed(target, leader, kMemberNames[i], weight.what.type, out[i], depth, report));
  }
  QUERN_ASSIGN_OR_RETURN(const Place from, resolve(leader.checkpoint, *weight.companion, report));
  AlignedBuffer values;
  QUERN_RETURN_IF_ERROR(decode_needed(from, leader, "gradient", {}, values, depth, report));
  const codec::tensor::OptimizerState base{out[0].span(), out[1].span(), out[2].span()};
  const Status replayed = codec::tensor::replay_group(weight.what, head.side, base, {values.span(), gradient.what.type},
                                                      {out[0].span(), out[1].span(), out[2].span()}, runner_);
  if (!replayed.ok()) {
    report.problem.clear();
    return fail_at(report, where, replayed);
  }
  return {};
}

}  // namespace quern::checkpoint

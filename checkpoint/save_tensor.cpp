// One tensor: is it stored already, what can it be predicted from, which mode keeps its promise.
#include <algorithm>
#include <cstring>

#include "checkpoint/roles.h"
#include "checkpoint/save_known.h"
#include "codecs/tensor/moments.h"

namespace quern::checkpoint {

using codec::tensor::EncodedTensor;
using codec::tensor::TensorInputs;
using codec::tensor::TensorNeeds;
using codec::tensor::TensorRequest;

/// A tensor on its way into a part.
struct SaveSession::Coding {
  const TensorSource& source;
  String where;
  ManifestTensor tensor;
  SavedTensor saved;
  LossyRequest absolute;                ///< what the source asks for, its bound not in deviations
  std::optional<Restorer::Place> base;  ///< values it may be predicted from
  AlignedBuffer base_values;
  AlignedBuffer direction;
  AlignedBuffer base_direction;  ///< empty: not known
  std::array<Restorer::Place, 2> base_moments;
  EncodedTensor coded;
  TensorNeeds needs;
  AlignedBuffer decoded;  ///< of a mode that loses something

  TensorInputs inputs(bool with_base) {
    TensorInputs all;
    all.values = source.values;
    if (source.companion) {
      all.companion = source.companion_values;
      all.companion_type = source.companion_type;
    }
    if (!with_base || !base) return all;
    all.base = base_values.span();
    all.direction = direction.span();
    all.base_direction = base_direction.span();
    return all;
  }
};

namespace {

/// What a lossy mode cannot take, or null.
const char* unfit(const TensorSource& source, const LossyRequest& request) {
  if (source.what.type != ElementType::f32) return "its values are not F32";
  if (source.what.elems() == 0) return "it has no values";
  if (request.mode == Mode::updq && (!source.companion || source.companion_type != ElementType::f32 ||
                                     source.companion_values.size() != source.values.size()))
    return "no second moment in F32 and of its shape belongs to it";
  return nullptr;
}

Status copy(std::span<const std::uint8_t> from, AlignedBuffer& to) {
  QUERN_RETURN_IF_ERROR(to.resize(from.size()));
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return {};
}

/// Whether a positive value is no longer one, or a zero no longer zero.
bool breaks_sign(std::span<const std::uint8_t> values, std::span<const std::uint8_t> decoded) {
  for (std::size_t i = 0; i + 4 <= values.size(); i += 4) {
    float was, is;
    std::memcpy(&was, values.data() + i, 4);
    std::memcpy(&is, decoded.data() + i, 4);
    if ((was > 0) != (is > 0) || (was == 0) != (is == 0)) return true;
  }
  return false;
}

/// Codes without the base when that would make a restore read too much.
template <class Encode>
Status encode_within(const Encode& encode, const ManifestTensor* base, const ChainLimits& limits,
                     const TensorDescription& what, EncodedTensor& coded, TensorNeeds& needs) {
  for (const bool with_base : {base != nullptr, false}) {
    auto made = encode(with_base);
    if (!made.ok()) return made.status();
    coded = std::move(made).value();
    QUERN_ASSIGN_OR_RETURN(needs, codec::tensor::tensor_needs(what, coded.mode, coded.side));
    if (!needs.base) return {};
    const std::uint64_t read = base->key_bytes + base->chain_bytes + coded.total_bytes();
    if (read <= base->key_bytes * limits.restore_percent / 100) return {};
  }
  return {};
}

}  // namespace

TensorPlace SaveSession::refer_to(const Restorer::Place& place) {
  auto& references = manifest_.references;
  const auto found = std::find(references.begin(), references.end(), place.checkpoint);
  const auto index = static_cast<std::uint32_t>(found - references.begin());
  if (found == references.end()) references.push_back(place.checkpoint);
  return {index + 1, place.tensor};
}

Result<bool> SaveSession::take_alias(Coding& coding, Report& report) {
  const TensorSource& source = coding.source;
  ManifestTensor& tensor = coding.tensor;
  if (tensor.what.bytes() == 0) return false;
  const auto refer = [&](const Known::Place& place) {
    tensor.alias =
        place.checkpoint.id.empty() ? TensorPlace{0, place.tensor} : refer_to({place.checkpoint, place.tensor});
    tensor.decoded = place.decoded;
    return true;
  };
  const auto is_before = [&](const Known::Place& place) {
    return !place.checkpoint.id.empty() || place.tensor < coding.saved.number;
  };
  // Values of another checkpoint count when they can be read.
  const auto is_there = [&](const Known::Place& place) {
    Report unheard;
    return place.checkpoint.id.empty() || restorer_.check_place({place.checkpoint, place.tensor}, unheard).ok();
  };
  const auto found = known_->contents.find({tensor.content, tensor.restored(), tensor.what.bytes()});
  if (found != known_->contents.end() && is_before(found->second) && is_there(found->second)) {
    if (source.decoded != nullptr) QUERN_RETURN_IF_ERROR(copy(source.values, *source.decoded));
    return refer(found->second);
  }
  if (!source.lossy || source.original) return false;
  const LossyRequest& lossy = coding.absolute;
  // What another role lost was not checked for its sign.
  if (lossy.mode != Mode::logq && is_non_negative_role(source.role)) return false;
  const auto near = known_->lossy.find({tensor.content, tensor.what.bytes(), lossy.mode, lossy.bound});
  if (near == known_->lossy.end() || !is_before(near->second) || !is_there(near->second)) return false;
  const Known::Place& place = near->second;
  const double scale = source.lossy->in_deviations ? source.lossy->bound / lossy.bound : 1;
  if (place.checkpoint.id.empty()) {
    if (source.decoded != nullptr) return false;  // this session's parts cannot be read yet
    coding.saved.worst = place.worst * scale;
    coding.saved.worst_absolute = place.worst_absolute;
    return refer(place);
  }
  AlignedBuffer own;
  AlignedBuffer& decoded = source.decoded != nullptr ? *source.decoded : own;
  if (!restorer_.tensor(place.checkpoint, place.tensor, decoded, report).ok()) {
    report.problem.clear();
    return false;  // damaged: these values are stored anew
  }
  const BoundCheck check = check_bound(lossy.mode, lossy.bound, source.values, decoded.span(), {}, runner_);
  coding.saved.worst = check.worst * scale;
  coding.saved.worst_absolute = check.worst_absolute;
  return check.kept && refer(place);
}

Result<std::optional<std::uint32_t>> SaveSession::match_base(const TensorSource& source, Report& report) {
  std::optional<std::uint32_t> nothing;
  if (base_ == nullptr || base_->damaged) return nothing;
  const auto found = base_->tensors.find(piece_key(source.name, source.whole, source.box));
  if (found == base_->tensors.end()) return nothing;
  if (source.role == "grad") return nothing;  // of another batch: no gradient is like the one before
  QUERN_ASSIGN_OR_RETURN(const Manifest* const manifest, restorer_.manifest(base_->name, report));
  const ManifestTensor& there = manifest->tensors[found->second];
  if (there.what.type != source.what.type || there.what.shape != source.what.shape) {
    base_->add_misfit(source.name);
    return nothing;
  }
  return std::optional<std::uint32_t>(found->second);
}

const ManifestTensor& SaveSession::at(const Restorer::Place& place) {
  Report unheard;
  return restorer_.manifest(place.checkpoint, unheard).value()->tensors[place.tensor];  // it was read before
}

Result<bool> SaveSession::read_base(const Restorer::Place& place, AlignedBuffer& out, Report& report) {
  Report own;
  const Status status = restorer_.tensor(place.checkpoint, place.tensor, out, own);
  if (status.ok()) return true;
  if (status.code() == StatusCode::out_of_memory || status.code() == StatusCode::cancelled) return status;
  if (!base_->damaged)
    report.notes.push_back(join({"the base is given up from here on, for it cannot be read: ", own.problem}));
  base_->damaged = true;
  return false;
}

Result<std::optional<Restorer::Place>> SaveSession::base_place(const TensorSource& source, std::uint32_t index) {
  std::optional<Restorer::Place> nothing;
  Report unheard;
  const auto place = restorer_.resolve(base_->name, index, unheard);
  if (!place.ok()) return nothing;
  const ManifestTensor& target = at(*place);
  if (target.what.type != source.what.type || target.what.shape != source.what.shape) return nothing;
  return std::optional<Restorer::Place>(*place);
}

Result<std::uint32_t> SaveSession::take_number(const TensorSource& source, Report& report) {
  const auto number = source.number.value_or(static_cast<std::uint32_t>(manifest_.tensors.size()));
  if (number < added_.size() && added_[number] != 0)
    return fail(report, StatusCode::invalid_argument,
                join({"tensor '", source.name, "': number ", decimal(number), " is given twice"}));
  if (!known_->names.emplace(piece_key(source.name, source.whole, source.box), number).second)
    return fail(report, StatusCode::invalid_argument, join({"tensor '", source.name, "': the name is given twice"}));
  if (number >= added_.size()) {
    manifest_.tensors.resize(std::size_t{number} + 1);
    added_.resize(std::size_t{number} + 1);
  }
  added_[number] = 1;
  return number;
}

Result<ManifestTensor> SaveSession::describe(const TensorSource& source, Report& report) {
  const String where = join({"tensor '", source.name, "'"});
  if (source.values.size() != source.what.bytes())
    return fail(report, StatusCode::invalid_argument, join({where, ": its bytes do not fill its shape"}));
  if (source.name.empty() || source.name.size() > 65535)
    return fail(report, StatusCode::invalid_argument, "a tensor's name has 1 to 65535 bytes");
  ManifestTensor tensor;
  tensor.name = source.name;
  tensor.role = source.role;
  tensor.what = source.what;
  if (source.declared != nullptr) tensor.declared = *source.declared;
  if (source.whole != nullptr) {
    tensor.is_piece = true;
    tensor.whole = *source.whole;
    tensor.box = source.box;
    const auto shape = source.box.shape();
    if (!source.box.check(*source.whole).ok() || !shape.ok() || *shape != source.what.shape)
      return fail(report, StatusCode::invalid_argument, join({where, ": the piece does not fit its tensor"}));
  }
  const ContentHash hash = content_hash(source.values);
  tensor.content = source.original.value_or(hash);
  if (tensor.content != hash) tensor.decoded = hash;
  return tensor;
}

Status SaveSession::find_directions(Coding& coding, Report& report) {
  const TensorSource& source = coding.source;
  if (!source.moments || source.moment_values[0].size() != source.values.size() ||
      source.moment_values[1].size() != source.values.size())
    return {};
  QUERN_RETURN_IF_ERROR(coding.direction.resize(source.values.size()));
  codec::tensor::update_direction(source.moment_values[0], source.moment_values[1], coding.direction.span());
  std::array<AlignedBuffer, 2> values;
  for (std::size_t i = 0; i < 2; ++i) {
    const ManifestTensor& moment = manifest_.tensors[(*source.moments)[i]];
    const auto found = base_->tensors.find(piece_key(moment));
    if (found == base_->tensors.end()) return {};
    QUERN_ASSIGN_OR_RETURN(const auto place, base_place(source, found->second));
    if (!place) return {};
    coding.base_moments[i] = *place;
    QUERN_ASSIGN_OR_RETURN(const bool there, read_base(*place, values[i], report));
    if (!there) return {};
  }
  QUERN_RETURN_IF_ERROR(coding.base_direction.resize(source.values.size()));
  codec::tensor::update_direction(values[0].span(), values[1].span(), coding.base_direction.span());
  return {};
}

Status SaveSession::encode_exactly(Coding& coding, Report& report) {
  TensorRequest request;
  request.zstd_level = options_.zstd_level;
  const Status encoded = encode_within(
      [&](bool with_base) {
        return codec::tensor::encode_tensor(coding.source.what, request, coding.inputs(with_base), runner_);
      },
      coding.base ? &at(*coding.base) : nullptr, options_.limits, coding.source.what, coding.coded, coding.needs);
  return encoded.ok() ? encoded : fail_at(report, coding.where, encoded);
}

Result<bool> SaveSession::is_kept(Coding& coding, const LossyRequest& request, EncodedTensor coded, Report& report) {
  const TensorSource& source = coding.source;
  TensorInputs inputs = coding.inputs(true);
  inputs.values = {};
  QUERN_RETURN_IF_ERROR(coding.decoded.resize(source.values.size()));
  const Status decoded = codec::tensor::decode_tensor(source.what, coded, inputs, coding.decoded.span(), runner_);
  if (!decoded.ok()) return fail_at(report, coding.where, decoded);
  const BoundCheck check =
      check_bound(request.mode, request.bound, source.values, coding.decoded.span(),
                  source.companion ? source.companion_values : std::span<const std::uint8_t>(), runner_);
  coding.saved.worst = check.worst;
  coding.saved.worst_absolute = check.worst_absolute;
  coding.coded = std::move(coded);
  if (source.original) return std::memcmp(coding.decoded.data(), source.values.data(), source.values.size()) == 0;
  return check.kept && !(is_non_negative_role(source.role) && breaks_sign(source.values, coding.decoded.span()));
}

Status SaveSession::encode_with_loss(Coding& coding, const LossyRequest& asked, Report& report) {
  const TensorSource& source = coding.source;
  const auto fall_back = [&](std::string_view why) {
    coding.saved.fallback = join({codec::tensor::mode_name(asked.mode), ": ", why});
    coding.saved.worst = coding.saved.worst_absolute = 0;
    return encode_exactly(coding, report);
  };
  if (const char* const why = unfit(source, asked)) return fall_back(why);
  TensorRequest request;
  request.mode = Mode::constant;  // takes no part of the bound, and nothing is smaller
  auto constant = codec::tensor::encode_tensor(source.what, request, coding.inputs(false), runner_);
  if (constant.ok()) {
    coding.coded = std::move(constant).value();
    coding.needs = {};
    return {};
  }
  const LossyRequest& used = coding.absolute;
  if (asked.bound > 0 && !(used.bound > 0)) return fall_back("its finite values are all the same");
  if (coding.base && used.mode == Mode::ebq) QUERN_RETURN_IF_ERROR(find_directions(coding, report));
  request.mode = used.mode;
  request.bound = used.bound;
  request.bound_in_deviations = false;
  EncodedTensor coded;
  const Status encoded = encode_within(
      [&](bool with_base) {
        return codec::tensor::encode_tensor(source.what, request, coding.inputs(with_base), runner_);
      },
      coding.base ? &at(*coding.base) : nullptr, options_.limits, source.what, coded, coding.needs);
  if (encoded.code() == StatusCode::unsupported || encoded.code() == StatusCode::invalid_argument ||
      encoded.code() == StatusCode::invalid_bound)
    return fall_back(encoded.text());
  if (!encoded.ok()) return fail_at(report, coding.where, encoded);
  const std::uint64_t bytes = coded.total_bytes();
  QUERN_ASSIGN_OR_RETURN(const bool kept, is_kept(coding, used, std::move(coded), report));
  if (!kept)
    return fall_back(source.original ? "its values, which lost something before, would change again"
                                     : "not every value would keep the bound");
  if (bytes > source.what.bytes() / 16 * 15) {
    EncodedTensor lossy = std::move(coding.coded);
    const TensorNeeds needs = coding.needs;
    QUERN_RETURN_IF_ERROR(encode_exactly(coding, report));
    if (coding.coded.total_bytes() <= bytes) {
      coding.saved.fallback = join({codec::tensor::mode_name(asked.mode), ": it would be no smaller"});
      coding.saved.worst = coding.saved.worst_absolute = 0;
      return {};
    }
    coding.coded = std::move(lossy);
    coding.needs = needs;
  }
  coding.tensor.bound = used.bound;
  if (asked.in_deviations) coding.saved.worst *= asked.bound / used.bound;
  const ContentHash hash = content_hash(coding.decoded.span());
  if (hash != coding.tensor.content) coding.tensor.decoded = hash;
  return {};
}

Status SaveSession::write_tensor(ManifestTensor& tensor, std::uint32_t number, const EncodedTensor& coded,
                                 Report& report) {
  PartWriter& part = smallest_part(tensor.part);
  tensor.record = static_cast<std::uint32_t>(part.records());
  TensorHead head;
  head.name = tensor.name;
  head.what = tensor.what;
  head.is_piece = tensor.is_piece;
  head.whole = tensor.whole;
  head.box = tensor.box;
  head.side = coded.side;
  const std::uint64_t before = part.bytes();
  for (std::uint32_t i = 0; i < tensor.records(); ++i) {
    Record record;
    record.kind = i == 0 ? RecordKind::tensor : RecordKind::chunk;
    record.mode = static_cast<std::uint8_t>(tensor.mode);
    record.tensor = number;
    record.chunk = i;
    const bool has_chunk = i < tensor.what.chunks();
    record.raw_bytes = has_chunk ? static_cast<std::uint32_t>(tensor.what.chunk_bytes(i)) : 0;
    const auto chunk = has_chunk ? coded.chunk(i) : std::span<const std::uint8_t>();
    QUERN_RETURN_IF_ERROR(part.add(record, i == 0 ? make_tensor_head(head) : Vector<std::uint8_t>(), chunk, report));
  }
  tensor.stored_bytes = part.bytes() - before;
  return {};
}

Status SaveSession::store_tensor(Coding& coding, Report& report) {
  ManifestTensor& tensor = coding.tensor;
  const TensorSource& source = coding.source;
  tensor.mode = coding.coded.mode;
  if (coding.needs.companion) tensor.companion = source.companion;
  if (coding.needs.direction) tensor.moments = source.moments;
  if (coding.needs.base) {
    const ManifestTensor& target = at(*coding.base);
    tensor.depth = target.depth + 1;
    tensor.key_bytes = target.key_bytes;
    tensor.chain_bytes = target.chain_bytes;
    tensor.base = refer_to(*coding.base);
  }
  if (coding.needs.base_direction)
    tensor.base_moments = {refer_to(coding.base_moments[0]), refer_to(coding.base_moments[1])};
  if (source.original && source.lossy && !is_lossy(tensor.mode)) {
    tensor.bound = source.lossy->bound;
    tensor.bound_mode = source.lossy->mode;
  }
  QUERN_RETURN_IF_ERROR(write_tensor(tensor, coding.saved.number, coding.coded, report));
  if (tensor.depth == 0) {
    tensor.key_bytes = tensor.stored_bytes;
  } else {
    tensor.chain_bytes += tensor.stored_bytes;
  }
  known_->add(tensor, {}, coding.saved);
  coding.saved.mode = tensor.mode;
  coding.saved.stored_bytes = tensor.stored_bytes;
  return {};
}

Result<SavedTensor> SaveSession::add_tensor(const TensorSource& source, Report& report) {
  Coding coding{source, join({"tensor '", source.name, "'"}), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  QUERN_ASSIGN_OR_RETURN(coding.tensor, describe(source, report));
  QUERN_ASSIGN_OR_RETURN(coding.saved.number, take_number(source, report));
  SavedTensor& saved = coding.saved;
  ManifestTensor& slot = manifest_.tensors[saved.number];
  if (source.lossy) {
    saved.bound = source.lossy->bound;
    coding.absolute = *source.lossy;
    coding.absolute.in_deviations = false;
    if (source.lossy->in_deviations) coding.absolute.bound *= codec::tensor::standard_deviation(source.values);
  }
  QUERN_ASSIGN_OR_RETURN(const auto earlier, match_base(source, report));
  QUERN_ASSIGN_OR_RETURN(saved.alias, take_alias(coding, report));
  if (saved.alias) {
    slot = std::move(coding.tensor);
    return std::move(saved);
  }
  if (earlier) {
    QUERN_ASSIGN_OR_RETURN(coding.base, base_place(source, *earlier));
    const ChainLimits& limits = options_.limits;
    if (coding.base) {
      const ManifestTensor& target = at(*coding.base);
      if (target.depth + 1 > limits.depth || target.chain_bytes > target.key_bytes * limits.chain_percent / 100)
        coding.base.reset();
    }
    if (coding.base) {
      QUERN_ASSIGN_OR_RETURN(const bool there, read_base(*coding.base, coding.base_values, report));
      if (!there) coding.base.reset();
    }
  }
  QUERN_RETURN_IF_ERROR(source.lossy ? encode_with_loss(coding, *source.lossy, report)
                                     : encode_exactly(coding, report));
  QUERN_RETURN_IF_ERROR(store_tensor(coding, report));
  if (source.decoded != nullptr) {
    if (is_lossy(coding.tensor.mode)) {
      *source.decoded = std::move(coding.decoded);
    } else {
      QUERN_RETURN_IF_ERROR(copy(source.values, *source.decoded));
    }
  }
  slot = std::move(coding.tensor);
  return std::move(saved);
}

}  // namespace quern::checkpoint

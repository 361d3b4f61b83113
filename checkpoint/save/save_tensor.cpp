// One tensor: is it stored already, what can it be predicted from, which mode keeps its promise.
#include <algorithm>
#include <cstring>

#include "checkpoint/policy/roles.h"
#include "checkpoint/save/save_known.h"
#include "checkpoint/save/tensor_coder.h"
#include "checkpoint/store/copy_values.h"
#include "codecs/tensor/bounded/moments.h"
#include "libcompress/core/run_tasks.h"

namespace quern::checkpoint {

/// A tensor of this session.
struct SaveSession::Coding : public TensorCoder {
  using TensorCoder::TensorCoder;
  std::optional<Known::Place> alias;    ///< its values are stored there
  std::optional<Restorer::Place> base;  ///< values it may be predicted from
  std::array<Restorer::Place, 2> base_moments;
  Vector<CodedChunk> chunks;  ///< of a tensor that is coded beside others
};

namespace {

constexpr std::uint32_t kWindowChunks = 16;  // at least, and four a thread

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
    coding.alias = place;
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
    if (source.decoded != nullptr) QUERN_RETURN_IF_ERROR(copy_values(source.values, *source.decoded));
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
  const ContentHash hash = source.hashes != nullptr ? source.hashes->content : content_hash(source.values);
  tensor.content = source.original.value_or(hash);
  if (tensor.content != hash) tensor.decoded = hash;
  return tensor;
}

/// Where the moments that the source has point. They are compared with what they were, where they are not our own.
Status SaveSession::find_directions(Coding& coding, Report& report) {
  const TensorSource& source = coding.source;
  if (!source.moments || source.moment_values[0].size() != source.values.size() ||
      source.moment_values[1].size() != source.values.size())
    return {};
  QUERN_RETURN_IF_ERROR(coding.direction.resize(source.values.size()));
  std::array<AlignedBuffer, 2> values;
  for (std::uint64_t c = 0; c < source.what.chunks(); ++c) {
    const auto begin = static_cast<std::size_t>(source.what.chunk_begin(c));
    for (std::size_t i = 0; i < 2; ++i) {
      QUERN_RETURN_IF_ERROR(copy_values(source.moment_values[i].subspan(begin, source.what.chunk_bytes(c)), values[i]));
      if (source.moment_hashes[i] != nullptr && !has_marks(*source.moment_hashes[i], c, values[i].span()))
        return fail_changed(manifest_.tensors[(*source.moments)[i]].name, report);
    }
    codec::tensor::update_direction(values[0].span(), values[1].span(),
                                    coding.direction.span().subspan(begin, values[0].size()));
  }
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

/// What an alias hands to others was read again, after the hash.
Status SaveSession::check_aliased(const Coding& coding, Report& report) {
  if (coding.source.decoded == nullptr) return {};
  if (content_hash(coding.source.decoded->span()) == coding.tensor.restored()) return {};
  return fail_changed(coding.source.name, report);
}

/// What depends on tensors that are stored already: the number, another tensor of the same values, the base.
Result<std::unique_ptr<SaveSession::Coding>> SaveSession::prepare(const TensorSource& given, const ValueHashes& hashes,
                                                                  double deviation, Report& report) {
  std::unique_ptr<Coding> made(new Coding(given, *rooms_));
  Coding& coding = *made;
  coding.source.hashes = &hashes;
  const TensorSource& source = coding.source;
  QUERN_ASSIGN_OR_RETURN(coding.tensor, describe(source, report));
  QUERN_ASSIGN_OR_RETURN(coding.saved.number, take_number(source, report));
  coding.zstd_level = options_.zstd_level;
  if (source.lossy) {
    coding.saved.bound = source.lossy->bound;
    coding.absolute = *source.lossy;
    coding.absolute.in_deviations = false;
    if (source.lossy->in_deviations) coding.absolute.bound *= deviation;
  }
  QUERN_ASSIGN_OR_RETURN(const auto earlier, match_base(source, report));
  QUERN_ASSIGN_OR_RETURN(coding.saved.alias, take_alias(coding, report));
  if (coding.saved.alias) {
    QUERN_RETURN_IF_ERROR(check_aliased(coding, report));
    return made;
  }
  if (!earlier) return made;
  QUERN_ASSIGN_OR_RETURN(coding.base, base_place(source, *earlier));
  if (!coding.base) return made;
  const ChainLimits& limits = options_.limits;
  const ManifestTensor& target = at(*coding.base);
  if (target.depth + 1 > limits.depth || target.chain_bytes > target.key_bytes * limits.chain_percent / 100) {
    coding.base.reset();
    return made;
  }
  QUERN_ASSIGN_OR_RETURN(coding.has_base, read_base(*coding.base, coding.base_values, report));
  if (!coding.has_base) {
    coding.base.reset();
    return made;
  }
  coding.base_key_bytes = target.key_bytes;
  coding.base_chain_bytes = target.chain_bytes;
  coding.restore_percent = limits.restore_percent;
  if (coding.absolute.mode == Mode::ebq && source.lossy) QUERN_RETURN_IF_ERROR(find_directions(coding, report));
  return made;
}

/// Ways of coding are tried until all have one: plans side by side, then the chunks of all of them.
Status SaveSession::code_group(std::span<const std::unique_ptr<Coding>> group, Report& report) {
  Vector<Coding*> open;
  for (const auto& coding : group)
    if (!coding->alias) open.push_back(coding.get());
  while (!open.empty()) {
    Vector<Report> reports(open.size());
    std::size_t failed = 0;
    const auto explain = [&](const Status& status) {
      report.problem = failed < reports.size() ? std::move(reports[failed].problem) : String();
      return status;
    };
    SerialRunner serial;
    QUERN_RETURN_IF_ERROR(explain(
        open.size() == 1
            ? open[0]->begin(runner_, reports[0])
            : run_tasks(
                  runner_, open.size(), [&](std::size_t k) { return open[k]->begin(serial, reports[k]); }, &failed)));
    Vector<std::pair<Coding*, std::uint32_t>> tasks;
    for (Coding* const coding : open) {
      coding->chunks.resize(coding->tensor.records());
      for (std::uint32_t c = 0; c < coding->tensor.records(); ++c) tasks.emplace_back(coding, c);
    }
    QUERN_RETURN_IF_ERROR(run_tasks(runner_, tasks.size(), [&](std::size_t i) -> Status {
      tasks[i].first->code(tasks[i].second, tasks[i].first->chunks[tasks[i].second]);
      return {};
    }));
    QUERN_RETURN_IF_ERROR(explain(run_tasks(
        runner_, open.size(),
        [&](std::size_t i) {
          for (CodedChunk& chunk : open[i]->chunks) open[i]->absorb(chunk);
          return open[i]->settle(reports[i]);
        },
        &failed)));
    std::erase_if(open, [](const Coding* coding) { return coding->done(); });
  }
  return {};
}

/// Codes the chunks [begin, end) and writes each when those before it are written: by whichever task finds it ready.
Status SaveSession::write_window(Coding& coding, PartWriter& part, std::uint32_t begin, std::uint32_t end,
                                 Report& report) {
  coding.chunks.resize(end - begin);
  Vector<std::uint8_t> ready(end - begin);
  std::mutex mutex;
  std::size_t next = 0;
  bool writing = false;
  Status written;
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, end - begin, [&](std::size_t i) -> Status {
    coding.code(begin + static_cast<std::uint32_t>(i), coding.chunks[i]);
    std::unique_lock lock(mutex);
    ready[i] = 1;
    if (writing) return {};
    writing = true;
    for (; next < ready.size() && ready[next] != 0 && written.ok(); ++next) {
      CodedChunk& chunk = coding.chunks[next];
      lock.unlock();
      coding.absorb(chunk);
      Status status;
      if (chunk.bytes != 0 && !coding.given_up()) status = part.add_ready(chunk.record, chunk.span(), report);
      lock.lock();
      if (!status.ok()) written = status;
    }
    writing = false;
    return {};
  }));
  return written;
}

/// A large tensor: what is coded goes into the part as it comes, and is taken back when another way is tried.
Status SaveSession::code_in_windows(Coding& coding, Report& report) {
  PartWriter& part = smallest_part(coding.tensor.part);
  coding.tensor.record = static_cast<std::uint32_t>(part.records());
  const PartWriter::Mark mark = part.mark();
  const auto window = static_cast<std::uint32_t>(
      std::min<std::size_t>(std::max<std::size_t>(kWindowChunks, 4 * runner_.width()), UINT32_MAX));
  while (!coding.done()) {
    QUERN_RETURN_IF_ERROR(part.go_back(mark, report));
    QUERN_RETURN_IF_ERROR(coding.begin(runner_, report));
    const std::uint32_t records = coding.tensor.records();
    for (std::uint32_t begin = 0; begin < records && !coding.given_up(); begin += std::min(window, records - begin))
      QUERN_RETURN_IF_ERROR(write_window(coding, part, begin, begin + std::min(window, records - begin), report));
    QUERN_RETURN_IF_ERROR(coding.settle(report));
  }
  coding.tensor.stored_bytes = part.bytes() - mark.bytes;
  return {};
}

Status SaveSession::write_group_member(Coding& coding, Report& report) {
  PartWriter& part = smallest_part(coding.tensor.part);
  coding.tensor.record = static_cast<std::uint32_t>(part.records());
  const std::uint64_t before = part.bytes();
  for (CodedChunk& chunk : coding.chunks) {
    QUERN_RETURN_IF_ERROR(part.add_ready(chunk.record, chunk.span(), report));
    rooms_->give_back(std::move(chunk.memory));
  }
  coding.chunks.clear();
  coding.tensor.stored_bytes = part.bytes() - before;
  return {};
}

/// Its values are in the part; what remains is to say so.
Status SaveSession::store(Coding& coding, Report& report) {
  ManifestTensor& tensor = coding.tensor;
  const TensorSource& source = coding.source;
  ManifestTensor& slot = manifest_.tensors[coding.saved.number];
  if (coding.alias) {
    const Known::Place& place = *coding.alias;
    tensor.alias =
        place.checkpoint.id.empty() ? TensorPlace{0, place.tensor} : refer_to({place.checkpoint, place.tensor});
    slot = std::move(tensor);
    return {};
  }
  if (coding.tensor.what.bytes() <= options_.large_tensor_bytes) {
    QUERN_RETURN_IF_ERROR(write_group_member(coding, report));
  } else {
    QUERN_RETURN_IF_ERROR(code_in_windows(coding, report));
  }
  tensor.mode = coding.mode();
  const codec::tensor::TensorNeeds& needs = coding.needs();
  if (needs.companion) tensor.companion = source.companion;
  if (needs.direction) tensor.moments = source.moments;
  if (needs.base) {
    const ManifestTensor& target = at(*coding.base);
    tensor.depth = target.depth + 1;
    tensor.key_bytes = target.key_bytes;
    tensor.chain_bytes = target.chain_bytes;
    tensor.base = refer_to(*coding.base);
  }
  if (needs.base_direction) tensor.base_moments = {refer_to(coding.base_moments[0]), refer_to(coding.base_moments[1])};
  if (source.original && source.lossy && !is_lossy(tensor.mode)) {
    tensor.bound = source.lossy->bound;
    tensor.bound_mode = source.lossy->mode;
  }
  if (tensor.depth == 0) {
    tensor.key_bytes = tensor.stored_bytes;
  } else {
    tensor.chain_bytes += tensor.stored_bytes;
  }
  known_->add(tensor, {}, coding.saved);
  coding.saved.mode = tensor.mode;
  coding.saved.stored_bytes = tensor.stored_bytes;
  slot = std::move(tensor);
  return {};
}

Status SaveSession::write_replayed(ManifestTensor& tensor, std::uint32_t number, const Vector<std::uint8_t>& side,
                                   Report& report) {
  PartWriter& part = smallest_part(tensor.part);
  tensor.record = static_cast<std::uint32_t>(part.records());
  TensorHead head{tensor.name, tensor.what, tensor.is_piece, tensor.whole, tensor.box, side};
  const std::uint64_t before = part.bytes();
  for (std::uint32_t i = 0; i < tensor.records(); ++i) {
    Record record;
    record.kind = i == 0 ? RecordKind::tensor : RecordKind::chunk;
    record.mode = static_cast<std::uint8_t>(tensor.mode);
    record.tensor = number;
    record.chunk = i;
    record.raw_bytes = static_cast<std::uint32_t>(tensor.what.chunk_bytes(i));
    QUERN_RETURN_IF_ERROR(part.add(record, i == 0 ? make_tensor_head(head) : Vector<std::uint8_t>(), {}, report));
  }
  tensor.stored_bytes = part.bytes() - before;
  return {};
}

Result<SavedTensor> SaveSession::add_tensor(const TensorSource& source, Report& report) {
  QUERN_ASSIGN_OR_RETURN(auto saved, add_tensors({&source, 1}, report));
  return std::move(saved.front());
}

Result<Vector<SavedTensor>> SaveSession::add_tensors(std::span<const TensorSource> sources, Report& report) {
  if (rooms_ == nullptr) rooms_.reset(new SavingRooms);
  Vector<ValueHashes> own(sources.size());
  Vector<double> deviations(sources.size());
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, sources.size(), [&](std::size_t i) -> Status {
    if (sources[i].hashes == nullptr) own[i] = hash_values(sources[i].values);
    if (sources[i].lossy && sources[i].lossy->in_deviations)
      deviations[i] = codec::tensor::standard_deviation(sources[i].values);
    return {};
  }));
  const auto hashes = [&](std::size_t i) -> const ValueHashes& {
    return sources[i].hashes != nullptr ? *sources[i].hashes : own[i];
  };
  Vector<SavedTensor> out;
  for (std::size_t i = 0; i < sources.size();) {
    // Tensors of the same values wait for the first of them; large ones are coded alone.
    Vector<std::unique_ptr<Coding>> group;
    for (const std::size_t first = i; i < sources.size(); ++i) {
      const bool large = sources[i].what.bytes() > options_.large_tensor_bytes;
      bool waits = large && i > first;
      for (std::size_t k = first; k < i; ++k) waits = waits || hashes(k).content == hashes(i).content;
      if (waits) break;
      QUERN_ASSIGN_OR_RETURN(auto made, prepare(sources[i], hashes(i), deviations[i], report));
      group.push_back(std::move(made));
      if (!large) continue;
      ++i;
      break;
    }
    if (group.front()->tensor.what.bytes() <= options_.large_tensor_bytes)
      QUERN_RETURN_IF_ERROR(code_group(group, report));
    for (const auto& coding : group) {
      QUERN_RETURN_IF_ERROR(store(*coding, report));
      out.push_back(std::move(coding->saved));
    }
  }
  return out;
}

}  // namespace quern::checkpoint

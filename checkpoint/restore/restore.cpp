// Decoding tensors: base and companion first, then chunks, then the hash.
#include "checkpoint/restore/restore.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/run_tasks.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kMaxDependencies = 64;  // decoded one inside the other; longer chains are not written
constexpr std::size_t kMaxDecodes = 1 << 16;  // for one tensor; a manifest could ask for any number
constexpr std::size_t kMaxOpen = 1024;
constexpr std::size_t kLeastKept = std::size_t{1} << 26;
constexpr std::size_t kMostKept = std::size_t{1} << 28;
constexpr std::size_t kKeptTensors =
    8;  // as large as the one asked for: what a step of a chain needs of the step before

}  // namespace

String place_text(const CheckpointName& name, const ManifestTensor& tensor) {
  return join({"step ", decimal(name.step), ", tensor '", tensor.name, "'"});
}

Result<Restorer::Opened*> Restorer::opened(const CheckpointName& name, Report& report) {
  for (const auto& one : opened_)
    if (one->manifest.name == name) return one.get();
  if (opened_.size() >= kMaxOpen) return fail(report, StatusCode::corrupt, "more than 1024 checkpoints hang together");
  QUERN_ASSIGN_OR_RETURN(Manifest manifest, store_.read(name, report));
  auto made = std::unique_ptr<Opened>(new Opened);
  made->parts.resize(manifest.parts.size());
  made->manifest = std::move(manifest);
  opened_.push_back(std::move(made));
  return opened_.back().get();
}

Result<const Manifest*> Restorer::manifest(const CheckpointName& name, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const one, opened(name, report));
  return &one->manifest;
}

Result<const PartReader*> Restorer::part(Opened& checkpoint, std::uint32_t number, Report& report) {
  auto& slot = checkpoint.parts[number];
  if (slot == nullptr) {
    const CheckpointName& name = checkpoint.manifest.name;
    const String path = join({store_.data_folder(name.id), "/", numbered_name("part", number)});
    QUERN_ASSIGN_OR_RETURN(PartReader reader, PartReader::open(store_.files(), path, part_identity(name, number),
                                                               checkpoint.manifest.parts[number], report));
    slot.reset(new PartReader(std::move(reader)));
  }
  return slot.get();
}

Result<Restorer::Place> Restorer::resolve(const CheckpointName& name, std::size_t index, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Manifest* const from, manifest(name, report));
  if (index >= from->tensors.size())
    return fail(report, StatusCode::corrupt, "a tensor is referred to that does not exist");
  const ManifestTensor& tensor = from->tensors[index];
  if (!tensor.alias) return Place{name, static_cast<std::uint32_t>(index)};
  const Place target{tensor.alias->checkpoint == 0 ? name : from->references[tensor.alias->checkpoint - 1],
                     tensor.alias->tensor};
  const auto there = manifest(target.checkpoint, report);
  if (!there.ok()) return fail_at(report, place_text(name, tensor), there.status());
  const auto& candidates = there.value()->tensors;
  if (target.tensor >= candidates.size() || candidates[target.tensor].alias ||
      candidates[target.tensor].what.bytes() != tensor.what.bytes() ||
      candidates[target.tensor].restored() != tensor.restored())
    return fail(report, StatusCode::corrupt,
                join({place_text(name, tensor), ": the tensor it shares its values with is another one"}));
  return target;
}

Status Restorer::check_place(const Place& place, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  return part(*checkpoint, checkpoint->manifest.tensors[place.tensor].part, report).status();
}

Status Restorer::tensor(const CheckpointName& name, std::size_t index, AlignedBuffer& out, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Place place, resolve(name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  if (goes_by_chunks(tensor)) {
    QUERN_RETURN_IF_ERROR(root(place, report).status());  // bounds what is allocated
    QUERN_RETURN_IF_ERROR(out.resize(tensor.what.bytes()));
    return values(name, index, out.span(), report);
  }
  const std::uint64_t bytes = tensor.what.bytes();
  kept_limit_ = std::min(
      kMostKept, std::max(kLeastKept, bytes > kMostKept ? kMostKept : static_cast<std::size_t>(bytes) * kKeptTensors));
  decodes_left_ = kMaxDecodes;
  if (take_kept(place, out)) return {};
  return decode(place, out, 0, report);
}

Status Restorer::decode_chunks(const ManifestTensor& tensor, const PartReader& part,
                               const codec::tensor::TensorInputs& inputs, const TensorHead& head,
                               std::span<const std::uint8_t> first_chunk, AlignedBuffer& out, Report& report) {
  std::mutex mutex;
  std::size_t lowest = SIZE_MAX;  // the sentence is that of the chunk whose status is reported
  const TensorDescription& what = tensor.what;
  return run_tasks(runner_, static_cast<std::size_t>(what.chunks()), [&](std::size_t i) -> Status {
    AlignedBuffer room;
    std::span<const std::uint8_t> bytes = first_chunk;
    Report own;
    const auto explain = [&](const Status& status) {
      const std::lock_guard lock(mutex);
      if (i < lowest) report.problem = own.problem.empty() ? String(status.text()) : own.problem;
      lowest = std::min(lowest, i);
      return status;
    };
    if (i != 0) {
      const Status read = part.read(tensor.record + i, room, bytes, own);
      if (!read.ok()) return explain(read);
      const Record& record = part.records()[tensor.record + i];
      if (record.kind != RecordKind::chunk || record.chunk != i ||
          record.mode != static_cast<std::uint8_t>(tensor.mode) || record.raw_bytes != what.chunk_bytes(i))
        return explain(fail(own, StatusCode::corrupt, join({part.path(), ": a record is not the chunk it should be"})));
    }
    AlignedBuffer scratch;
    const Status decoded = codec::tensor::decode_chunk(
        what, tensor.mode, head.side, i, bytes, inputs,
        out.span().subspan(static_cast<std::size_t>(what.chunk_begin(i)), what.chunk_bytes(i)), scratch);
    return decoded.ok() ? decoded : explain(decoded);
  });
}

Result<Vector<std::uint8_t>> Restorer::read_head(const Place& place, TensorHead& head,
                                                 std::span<const std::uint8_t>& first, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  const String where = place_text(place.checkpoint, tensor);
  QUERN_ASSIGN_OR_RETURN(const PartReader* const reader, part(*checkpoint, tensor.part, report));
  // Also bounds what is allocated: a MiB of values has at least one record.
  if (tensor.record >= reader->records().size() || tensor.records() > reader->records().size() - tensor.record)
    return fail(report, StatusCode::corrupt, join({where, ": the part has fewer records than it needs"}));
  Vector<std::uint8_t> body;
  if (const Status read = reader->read(tensor.record, body, report); !read.ok()) return fail_at(report, where, read);
  first = body;
  const Record& record = reader->records()[tensor.record];
  auto found = read_tensor_head(first);
  if (!found.ok()) return fail_at(report, where, found.status());
  if (record.kind != RecordKind::tensor || record.mode != static_cast<std::uint8_t>(tensor.mode) ||
      found->name != tensor.name || found->what.type != tensor.what.type || found->what.shape != tensor.what.shape ||
      record.raw_bytes != (tensor.what.chunks() == 0 ? 0 : tensor.what.chunk_bytes(0)))
    return fail(report, StatusCode::corrupt, join({where, ": the part has another tensor in its place"}));
  head = std::move(found).value();
  return body;
}

Status Restorer::decode(const Place& place, AlignedBuffer& out, std::size_t depth, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  const String where = place_text(place.checkpoint, tensor);
  if (depth > kMaxDependencies || decodes_left_ == 0)
    return fail(report, StatusCode::corrupt, join({where, ": too many tensors must be decoded before it"}));
  --decodes_left_;
  if (tensor.mode == Mode::replay) return decode_member(place, out, depth, report);
  TensorHead head;
  std::span<const std::uint8_t> first;
  QUERN_ASSIGN_OR_RETURN(const auto body, read_head(place, head, first, report));
  const auto needs = codec::tensor::tensor_needs(tensor.what, tensor.mode, head.side);
  if (!needs.ok()) return fail_at(report, where, needs.status());
  if (needs->base != tensor.base.has_value() || needs->companion != tensor.companion.has_value() ||
      needs->direction != tensor.moments.has_value() || needs->base_direction != tensor.base_moments.has_value())
    return fail(report, StatusCode::corrupt, join({where, ": its mode does not fit what the manifest says"}));
  codec::tensor::TensorInputs inputs;
  AlignedBuffer base, companion, direction, base_direction;
  if (needs->base) {
    QUERN_ASSIGN_OR_RETURN(const Place target, needed_place(place, *tensor.base, report));
    QUERN_RETURN_IF_ERROR(decode_needed(target, place, "base", tensor.what.type, base, depth, report));
    inputs.base = base.span();
  }
  if (needs->companion) {
    const ManifestTensor& other = checkpoint->manifest.tensors[*tensor.companion];
    QUERN_ASSIGN_OR_RETURN(const Place target, resolve(place.checkpoint, *tensor.companion, report));
    if (other.what.shape != tensor.what.shape)
      return fail(report, StatusCode::corrupt, join({where, ": its companion has another shape"}));
    QUERN_RETURN_IF_ERROR(decode_needed(target, place, "companion", {}, companion, depth, report));
    inputs.companion = companion.span();
    inputs.companion_type = other.what.type;
  }
  if (needs->direction) {
    std::array<Place, 2> moments;
    for (std::size_t i = 0; i < 2; ++i) {
      QUERN_ASSIGN_OR_RETURN(moments[i], resolve(place.checkpoint, (*tensor.moments)[i], report));
    }
    QUERN_RETURN_IF_ERROR(decode_direction(place, moments, direction, depth, report));
    inputs.direction = direction.span();
  }
  if (needs->base_direction) {
    std::array<Place, 2> moments;
    for (std::size_t i = 0; i < 2; ++i) {
      QUERN_ASSIGN_OR_RETURN(moments[i], needed_place(place, (*tensor.base_moments)[i], report));
    }
    QUERN_RETURN_IF_ERROR(decode_direction(place, moments, base_direction, depth, report));
    inputs.base_direction = base_direction.span();
  }
  QUERN_ASSIGN_OR_RETURN(const PartReader* const reader, part(*checkpoint, tensor.part, report));
  QUERN_RETURN_IF_ERROR(out.resize(tensor.what.bytes()));
  const Status decoded = decode_chunks(tensor, *reader, inputs, head, first, out, report);
  if (!decoded.ok()) return fail_at(report, where, decoded);
  return check_hash(place, out.span(), report);
}

Status Restorer::check_hash(const Place& place, std::span<const std::uint8_t> values, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  return content_hash(values) == tensor.restored() ? Status() : fail_hash(place, tensor, report);
}

Status Restorer::fail_hash(const Place& place, const ManifestTensor& tensor, Report& report) {
  return fail(report, StatusCode::checksum_mismatch,
              join({place_text(place.checkpoint, tensor), ": its values do not have the hash they were saved with"}));
}

Status Restorer::blob(const CheckpointName& name, std::size_t index, Vector<std::uint8_t>& out, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(name, report));
  const ManifestBlob& blob = checkpoint->manifest.blobs[index];
  const String where = join({"step ", decimal(name.step), ", blob '", blob.name, "'"});
  QUERN_ASSIGN_OR_RETURN(const PartReader* const reader, part(*checkpoint, blob.part, report));
  out.clear();
  Vector<std::uint8_t> piece;
  for (std::uint32_t i = 0; i < blob.records(); ++i) {
    const Status read = reader->read(blob.record + i, piece, report);
    if (!read.ok()) return fail_at(report, where, read);
    if (reader->records()[blob.record + i].kind != RecordKind::blob)
      return fail(report, StatusCode::corrupt, join({where, ": the part has something else in its place"}));
    out.insert(out.end(), piece.begin(), piece.end());
  }
  if (out.size() != blob.bytes || content_hash(out) != blob.content)
    return fail(report, StatusCode::checksum_mismatch,
                join({where, ": its bytes do not have the hash they were saved with"}));
  return {};
}

}  // namespace quern::checkpoint

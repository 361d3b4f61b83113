// Tensors chunk by chunk. A chunk takes the same elements of what its tensor depends on: they are decoded by the task
// that needs them, each once, and forgotten with the task. What is replayed is decoded whole.
#include <algorithm>
#include <cstring>

#include "checkpoint/restore/restore.h"
#include "checkpoint/store/value_hashes.h"
#include "codecs/tensor/bounded/moments.h"
#include "libcompress/core/run_tasks.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kChunk = codec::tensor::kChunkBytes;
constexpr std::uint64_t kLargeBytes = std::uint64_t{1} << 26;  // above it nothing is decoded whole beside the tensor
constexpr std::size_t kMostNodes = 128;  // tensors that one tensor is decoded from; longer chains are not written
constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kKeptChunks = 32;
constexpr std::size_t kLeastWindow = 16;  // chunks

}  // namespace

/// A tensor and those it is decoded from.
struct Restorer::Node : public Allocated {
  Place place;
  const ManifestTensor* tensor = nullptr;
  const PartReader* reader = nullptr;
  String where;
  Vector<std::uint8_t> side;
  std::size_t head_bytes = 0;  ///< before the first chunk in its record
  codec::tensor::TensorNeeds needs;
  Node* base = nullptr;
  Node* companion = nullptr;
  std::array<Node*, 2> moments{};
  std::array<Node*, 2> base_moments{};
  std::size_t height = 0;  ///< of the longest chain below
  bool complete = false;
  bool whole = false;
  AlignedBuffer values;  ///< whole
};

/// What one task decodes in: values of other tensors, which it needs until its chunk is done.
struct Restorer::Rooms : public Allocated {
  struct Held {
    const Node* node = nullptr;  ///< null: a direction
    std::uint64_t first = 0;     ///< chunk
    std::uint64_t count = 0;
    AlignedBuffer values;
  };
  Vector<std::unique_ptr<Held>> held;
  Vector<std::unique_ptr<Held>> spare;
  Vector<AlignedBuffer> records;
  AlignedBuffer scratch;

  Result<Held*> add(const Node* node, std::uint64_t first, std::uint64_t count, std::size_t bytes) {
    std::unique_ptr<Held> made;
    if (spare.empty()) {
      made.reset(new Held);
    } else {
      made = std::move(spare.back());
      spare.pop_back();
    }
    made->node = node;
    made->first = first;
    made->count = count;
    QUERN_RETURN_IF_ERROR(made->values.resize(bytes));
    held.push_back(std::move(made));
    return held.back().get();
  }
  void forget() {
    for (auto& one : held) spare.push_back(std::move(one));
    held.clear();
  }
};

Restorer::Restorer(const Store& store, TaskRunner& runner) : store_(store), runner_(runner) {}
Restorer::~Restorer() = default;

bool Restorer::goes_by_chunks(const ManifestTensor& tensor) const {
  return tensor.mode != Mode::replay && tensor.what.bytes() > kLargeBytes;
}

/// A replayed tensor, its values decoded.
Result<Restorer::Node*> Restorer::whole_node(const Place& place, std::size_t depth, std::size_t& left, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& one) { return one->place == place; });
  if (found == nodes_.end()) {
    if (left-- == 0) return fail(report, StatusCode::corrupt, "too many tensors must be decoded before one");
    nodes_.push_back(std::unique_ptr<Node>(new Node));
    found = nodes_.end() - 1;
  }
  Node& made = **found;
  made.place = place;
  made.tensor = &checkpoint->manifest.tensors[place.tensor];
  made.where = place_text(place.checkpoint, *made.tensor);
  made.whole = true;
  Node* const out = &made;
  if (out->values.size() == 0) QUERN_RETURN_IF_ERROR(decode(place, out->values, depth, report));
  out->complete = true;
  return out;
}

Result<Restorer::Node*> Restorer::node(const Place& place, std::size_t depth, std::size_t& left, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  if (tensor.mode == Mode::replay) return whole_node(place, depth, left, report);
  const String where = place_text(place.checkpoint, tensor);
  const auto too_many = [&] {
    return fail(report, StatusCode::corrupt, join({where, ": too many tensors must be decoded before it"}));
  };
  for (const auto& one : nodes_) {
    if (one->place != place) continue;
    // One that is not complete yet depends on itself.
    if (!one->complete || depth + one->height > kMostDepth) return too_many();
    return one.get();
  }
  if (depth > kMostDepth || left-- == 0) return too_many();
  nodes_.push_back(std::unique_ptr<Node>(new Node));
  Node& made = *nodes_.back();
  made.place = place;
  made.tensor = &tensor;
  made.where = where;
  TensorHead head;
  std::span<const std::uint8_t> first;
  QUERN_ASSIGN_OR_RETURN(const auto body, read_head(place, head, first, report));
  made.head_bytes = body.size() - first.size();
  QUERN_ASSIGN_OR_RETURN(made.reader, part(*checkpoint, tensor.part, report));
  const auto needs = codec::tensor::tensor_needs(tensor.what, tensor.mode, head.side);
  if (!needs.ok()) return fail_at(report, where, needs.status());
  made.needs = *needs;
  made.side = std::move(head.side);
  if (needs->base != tensor.base.has_value() || needs->companion != tensor.companion.has_value() ||
      needs->direction != tensor.moments.has_value() || needs->base_direction != tensor.base_moments.has_value())
    return fail(report, StatusCode::corrupt, join({where, ": its mode does not fit what the manifest says"}));
  const auto below = [&](const Place& target, const char* as, bool same_type, ElementType type, Node*& out) -> Status {
    QUERN_ASSIGN_OR_RETURN(Opened* const there, opened(target.checkpoint, report));
    const ManifestTensor& other = there->manifest.tensors[target.tensor];
    if (same_type && (other.what.type != type || other.what.shape != tensor.what.shape))
      return fail(report, StatusCode::corrupt, join({where, ": its ", as, " has another type or shape"}));
    QUERN_ASSIGN_OR_RETURN(out, node(target, depth + 1, left, report));
    made.height = std::max(made.height, out->height + 1);
    return {};
  };
  if (needs->base) {
    QUERN_ASSIGN_OR_RETURN(const Place target, needed_place(place, *tensor.base, report));
    QUERN_RETURN_IF_ERROR(below(target, "base", true, tensor.what.type, made.base));
  }
  if (needs->companion) {
    if (checkpoint->manifest.tensors[*tensor.companion].what.shape != tensor.what.shape)
      return fail(report, StatusCode::corrupt, join({where, ": its companion has another shape"}));
    QUERN_ASSIGN_OR_RETURN(const Place target, resolve(place.checkpoint, *tensor.companion, report));
    QUERN_RETURN_IF_ERROR(below(target, "companion", false, tensor.what.type, made.companion));
  }
  for (std::size_t i = 0; i < 2 && needs->direction; ++i) {
    QUERN_ASSIGN_OR_RETURN(const Place target, resolve(place.checkpoint, (*tensor.moments)[i], report));
    QUERN_RETURN_IF_ERROR(below(target, "moment", true, ElementType::f32, made.moments[i]));
  }
  for (std::size_t i = 0; i < 2 && needs->base_direction; ++i) {
    QUERN_ASSIGN_OR_RETURN(const Place target, needed_place(place, (*tensor.base_moments)[i], report));
    QUERN_RETURN_IF_ERROR(below(target, "moment", true, ElementType::f32, made.base_moments[i]));
  }
  made.complete = true;
  return &made;
}

Result<Restorer::Node*> Restorer::root(const Place& place, Report& report) {
  decodes_left_ = 1 << 16;
  kept_limit_ = static_cast<std::size_t>(kLargeBytes);
  std::uint64_t held = 0;
  for (const auto& one : nodes_) held += one->values.size();
  if (held > kLargeBytes) nodes_.clear();
  std::size_t left = kMostNodes;
  auto made = node(place, 0, left, report);
  if (!made.ok()) std::erase_if(nodes_, [](const auto& one) { return !one->complete; });
  return made;
}

/// Elements [first, first + elems) of a tensor, `width` bytes each as the one who asks counts them.
Status Restorer::values_of(Node& node, std::uint64_t first, std::uint64_t elems, std::size_t width,
                           std::span<const std::uint8_t>& out, Rooms& rooms, Report& report) {
  const std::uint64_t begin = first * width;
  const std::uint64_t bytes = elems * width;
  const std::uint64_t all = node.tensor->what.bytes();
  if (begin > all || bytes > all - begin)
    return fail(report, StatusCode::corrupt, join({node.where, ": another tensor needs more of it than there is"}));
  if (node.whole) {
    out = node.values.span().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
    return {};
  }
  const std::uint64_t chunk = begin / kChunk;
  const std::uint64_t count = (begin + bytes + kChunk - 1) / kChunk - chunk;
  const auto found = std::find_if(rooms.held.begin(), rooms.held.end(), [&](const auto& one) {
    return one->node == &node && one->first == chunk && one->count == count;
  });
  Rooms::Held* held = found == rooms.held.end() ? nullptr : found->get();
  if (held == nullptr) {
    const std::uint64_t end = std::min(all, (chunk + count) * kChunk);
    QUERN_ASSIGN_OR_RETURN(held, rooms.add(&node, chunk, count, static_cast<std::size_t>(end - chunk * kChunk)));
    for (std::uint64_t c = 0; c < count; ++c)
      QUERN_RETURN_IF_ERROR(decode_chunk(
          node, chunk + c,
          held->values.span().subspan(static_cast<std::size_t>(c) * kChunk, node.tensor->what.chunk_bytes(chunk + c)),
          rooms, report));
  }
  out = held->values.span().subspan(static_cast<std::size_t>(begin - chunk * kChunk), static_cast<std::size_t>(bytes));
  return {};
}

Status Restorer::direction_of(std::array<Node*, 2>& moments, std::uint64_t first, std::uint64_t elems,
                              std::span<const std::uint8_t>& out, Rooms& rooms, Report& report) {
  std::array<std::span<const std::uint8_t>, 2> values;
  for (std::size_t i = 2; i-- > 0;)
    QUERN_RETURN_IF_ERROR(values_of(*moments[i], first, elems, sizeof(float), values[i], rooms, report));
  QUERN_ASSIGN_OR_RETURN(Rooms::Held* const held,
                         rooms.add(nullptr, 0, 0, static_cast<std::size_t>(elems) * sizeof(float)));
  codec::tensor::update_direction(values[0], values[1], held->values.span());
  out = held->values.span();
  return {};
}

Status Restorer::decode_chunk(Node& node, std::uint64_t chunk, std::span<std::uint8_t> out, Rooms& rooms,
                              Report& report) {
  const ManifestTensor& tensor = *node.tensor;
  const std::size_t width = codec::tensor::element_bytes(tensor.what.type);
  const std::uint64_t first = tensor.what.chunk_begin(chunk) / width;
  const std::uint64_t elems = out.size() / width;
  codec::tensor::TensorInputs inputs;
  inputs.of_chunk = true;
  if (node.base != nullptr)
    QUERN_RETURN_IF_ERROR(values_of(*node.base, first, elems, width, inputs.base, rooms, report));
  if (node.companion != nullptr) {
    const Manifest& manifest = opened(node.place.checkpoint, report).value()->manifest;  // open since the node was made
    inputs.companion_type = manifest.tensors[*tensor.companion].what.type;
    QUERN_RETURN_IF_ERROR(values_of(*node.companion, first, elems, codec::tensor::element_bytes(inputs.companion_type),
                                    inputs.companion, rooms, report));
  }
  if (node.needs.direction)
    QUERN_RETURN_IF_ERROR(direction_of(node.moments, first, elems, inputs.direction, rooms, report));
  if (node.needs.base_direction)
    QUERN_RETURN_IF_ERROR(direction_of(node.base_moments, first, elems, inputs.base_direction, rooms, report));
  AlignedBuffer room;
  if (!rooms.records.empty()) {
    room = std::move(rooms.records.back());
    rooms.records.pop_back();
  }
  std::span<const std::uint8_t> bytes;
  Status status = node.reader->read(static_cast<std::size_t>(tensor.record + chunk), room, bytes, report);
  if (!status.ok()) return fail_at(report, node.where, status);
  const Record& record = node.reader->records()[static_cast<std::size_t>(tensor.record + chunk)];
  const RecordKind kind = chunk == 0 ? RecordKind::tensor : RecordKind::chunk;
  if (record.kind != kind || record.mode != static_cast<std::uint8_t>(tensor.mode) || record.raw_bytes != out.size() ||
      (chunk != 0 && record.chunk != chunk) || (chunk == 0 && bytes.size() < node.head_bytes))
    return fail(report, StatusCode::corrupt,
                join({node.where, ": ", node.reader->path(), ": a record is not the chunk it should be"}));
  if (chunk == 0) bytes = bytes.subspan(node.head_bytes);
  status = codec::tensor::decode_chunk(tensor.what, tensor.mode, node.side, chunk, bytes, inputs, out, rooms.scratch);
  rooms.records.push_back(std::move(room));
  return status.ok() ? status : fail_at(report, node.where, status);
}

/// Chunks first, first + 1, ... side by side, each to where out(i) says.
Status Restorer::decode_run(Node& node, std::uint64_t first, std::size_t count,
                            const std::function<std::span<std::uint8_t>(std::size_t)>& out, Report& report) {
  std::mutex mutex;
  std::size_t lowest = SIZE_MAX;  // the sentence is that of the chunk whose status is reported
  return run_tasks(runner_, count, [&](std::size_t i) -> Status {
    std::unique_ptr<Rooms> rooms;
    {
      const std::lock_guard lock(mutex);
      if (!rooms_.empty()) {
        rooms = std::move(rooms_.back());
        rooms_.pop_back();
      }
    }
    if (rooms == nullptr) rooms.reset(new Rooms);
    Report own;
    const Status status = decode_chunk(node, first + i, out(i), *rooms, own);
    rooms->forget();
    const std::lock_guard lock(mutex);
    rooms_.push_back(std::move(rooms));
    if (!status.ok() && i < lowest) {
      report.problem = own.problem.empty() ? String(status.text()) : own.problem;
      lowest = i;
    }
    return status;
  });
}

Status Restorer::values(const CheckpointName& name, std::size_t index, std::span<std::uint8_t> out, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Place place, resolve(name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  if (tensor.what.bytes() != out.size())
    return fail(report, StatusCode::invalid_argument,
                join({place_text(place.checkpoint, tensor), ": the target is not of its size"}));
  const bool alone = tensor.mode != Mode::replay && !tensor.base && !tensor.companion && !tensor.moments;
  if (const AlignedBuffer* const kept = find_kept(place)) {
    std::copy_n(kept->data(), kept->size(), out.begin());
    return {};
  }
  if (!alone && !goes_by_chunks(tensor)) {
    AlignedBuffer room;
    QUERN_RETURN_IF_ERROR(this->tensor(name, index, room, report));
    std::copy_n(room.data(), room.size(), out.begin());
    return {};
  }
  QUERN_ASSIGN_OR_RETURN(Node* const top, root(place, report));
  QUERN_RETURN_IF_ERROR(decode_run(
      *top, 0, static_cast<std::size_t>(tensor.what.chunks()),
      [&](std::size_t i) {
        return out.subspan(static_cast<std::size_t>(tensor.what.chunk_begin(i)), tensor.what.chunk_bytes(i));
      },
      report));
  return check_hash(place, out, report);
}

Status Restorer::pieces(const CheckpointName& name, std::size_t index, const UsePiece& use, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Place place, resolve(name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Opened* const checkpoint, opened(place.checkpoint, report));
  const ManifestTensor& tensor = checkpoint->manifest.tensors[place.tensor];
  AlignedBuffer room;
  if (!goes_by_chunks(tensor)) {
    QUERN_RETURN_IF_ERROR(this->tensor(name, index, room, report));
    return use(room.span());
  }
  QUERN_ASSIGN_OR_RETURN(Node* const top, root(place, report));
  ContentHasher hasher;
  QUERN_RETURN_IF_ERROR(hasher.begin());
  const std::uint64_t window = std::max<std::uint64_t>(kLeastWindow, 4 * runner_.width());
  const std::uint64_t chunks = tensor.what.chunks();
  for (std::uint64_t first = 0; first < chunks; first += std::min(window, chunks - first)) {
    const std::uint64_t count = std::min(window, chunks - first);
    QUERN_RETURN_IF_ERROR(
        room.resize(std::min((first + count) * kChunk, tensor.what.bytes()) - tensor.what.chunk_begin(first)));
    QUERN_RETURN_IF_ERROR(decode_run(
        *top, first, static_cast<std::size_t>(count),
        [&](std::size_t i) { return room.span().subspan(i * kChunk, tensor.what.chunk_bytes(first + i)); }, report));
    hasher.add(room.span());
    QUERN_RETURN_IF_ERROR(use(room.span()));
  }
  if (hasher.finish() == tensor.restored()) return {};
  return fail_hash(place, tensor, report);
}

std::span<const std::uint8_t> Restorer::kept_chunk(const Place& place, std::uint64_t chunk) const {
  for (const KeptChunk& one : kept_chunks_)
    if (one.chunk == chunk && one.place == place) return {one.values.data(), one.values.size()};
  return {};
}

/// Decodes chunks that are not kept, at most kKeptChunks of them, and keeps them.
Status Restorer::keep_chunks(Node& node, std::span<const std::uint64_t> chunks, Report& report) {
  Vector<std::uint64_t> missing;
  for (const std::uint64_t chunk : chunks) {
    const auto found = std::find_if(kept_chunks_.begin(), kept_chunks_.end(), [&](const KeptChunk& one) {
      return one.chunk == chunk && one.place == node.place;
    });
    if (found == kept_chunks_.end()) {
      missing.push_back(chunk);
    } else {
      std::rotate(found, found + 1, kept_chunks_.end());
    }
  }
  Vector<KeptChunk> made(missing.size());
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (kept_chunks_.size() + made.size() > kKeptChunks) {
      made[i].values = std::move(kept_chunks_.front().values);
      kept_chunks_.erase(kept_chunks_.begin());
    }
    made[i].place = node.place;
    made[i].chunk = missing[i];
    QUERN_RETURN_IF_ERROR(made[i].values.resize(node.tensor->what.chunk_bytes(missing[i])));
  }
  for (std::size_t i = 0; i < missing.size();) {
    std::size_t count = 1;
    while (i + count < missing.size() && missing[i + count] == missing[i] + count) ++count;
    QUERN_RETURN_IF_ERROR(decode_run(
        node, missing[i], count, [&](std::size_t k) { return made[i + k].values.span(); }, report));
    i += count;
  }
  for (KeptChunk& one : made) kept_chunks_.push_back(std::move(one));
  return {};
}

Status Restorer::part(const CheckpointName& name, std::size_t index, const Box& part, const Box& from, const Box& to,
                      std::span<std::uint8_t> target, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const Place place, resolve(name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Opened* const checkpoint, opened(place.checkpoint, report));
  const TensorDescription& what = checkpoint->manifest.tensors[place.tensor].what;
  QUERN_ASSIGN_OR_RETURN(const Manifest* const own, manifest(name, report));
  const std::size_t element = codec::tensor::element_bytes(own->tensors[index].what.type);
  QUERN_ASSIGN_OR_RETURN(Node* const top, root(place, report));
  if (top->whole) {
    copy_runs(element, part, from, 0, top->values.span(), to, target);
    return {};
  }
  const BoxRuns runs(element, part, from);
  Vector<std::uint64_t> met;
  const auto use = [&]() -> Status {
    QUERN_RETURN_IF_ERROR(keep_chunks(*top, met, report));
    for (const std::uint64_t chunk : met)
      copy_runs(element, part, from, what.chunk_begin(chunk), kept_chunk(place, chunk), to, target);
    met.clear();
    return {};
  };
  const std::uint64_t end = runs.begin(runs.count() - 1) + runs.bytes();
  for (std::uint64_t chunk = runs.begin(0) / kChunk; chunk * kChunk < end; ++chunk) {
    if (!runs.meets(chunk * kChunk, (chunk + 1) * kChunk)) continue;
    met.push_back(chunk);
    if (met.size() == kLeastWindow) QUERN_RETURN_IF_ERROR(use());
  }
  return use();
}

}  // namespace quern::checkpoint

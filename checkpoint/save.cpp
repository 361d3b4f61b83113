// Coding tensors into parts.
#include "checkpoint/save.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/parity.h"
#include "checkpoint/publish.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kMostManifestsSearched = 64;

template <class Key, class Value, class Hash = std::hash<Key>>
using Map = std::unordered_map<Key, Value, Hash, std::equal_to<Key>, Allocator<std::pair<const Key, Value>>>;

struct ContentKey {
  ContentHash hash;
  std::uint64_t bytes = 0;
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};
struct ContentKeyHash {
  std::size_t operator()(const ContentKey& key) const { return static_cast<std::size_t>(key.hash.low); }
};
struct NameHash {
  std::size_t operator()(const String& name) const { return std::hash<std::string_view>()(name); }
};

/// A tensor and the piece of it: what must be unique in a checkpoint.
String piece_key(std::string_view name, const Shape* whole, const Box& box) {
  String key(name);
  if (whole == nullptr) return key;
  for (std::size_t a = 0; a < box.rank; ++a) key += join({a == 0 ? "\n" : ",", decimal(box.begin[a])});
  return key;
}
String piece_key(const ManifestTensor& tensor) {
  return piece_key(tensor.name, tensor.is_piece ? &tensor.whole : nullptr, tensor.box);
}

String step_text(const CheckpointName& name) { return join({"step ", decimal(name.step)}); }

}  // namespace

/// Tensors of the base by name, and which of them have been met.
struct SaveSession::Base : public Allocated {
  CheckpointName name;
  Map<String, std::uint32_t, NameHash> tensors;
  std::unordered_set<std::uint32_t, std::hash<std::uint32_t>, std::equal_to<>, Allocator<std::uint32_t>> met;
};

/// What this session and earlier checkpoints hold.
struct SaveSession::Known : public Allocated {
  struct Place {
    CheckpointName checkpoint;  ///< without an id: this session
    std::uint32_t tensor = 0;
  };
  Map<ContentKey, Place, ContentKeyHash> contents;
  Map<String, std::uint32_t, NameHash> names;
};

SaveSession::SaveSession(const Store& store, const SaveOptions& options, TaskRunner& runner)
    : store_(store), options_(options), runner_(runner), restorer_(store, runner) {}

SaveSession::~SaveSession() {
  try {
    abort();
  } catch (const std::bad_alloc&) {
    // What stays in tmp/ is swept away by the next writer: the locks go with the members.
  }
}

void SaveSession::abort() {
  parts_.clear();
  if (folder_made_ && options_.writers == 1) {
    (void)remove_tree(store_.files(), store_.tmp_folder(manifest_.name.id));
    if (own_lock_ != nullptr) (void)store_.files().remove(store_.tmp_lock(manifest_.name.id));
  }
  folder_made_ = false;
  own_lock_.reset();
  store_lock_.reset();
}

Result<std::unique_ptr<SaveSession>> SaveSession::begin(const Store& store, const SaveOptions& options,
                                                        TaskRunner& runner, Report& report) {
  auto session = std::unique_ptr<SaveSession>(new SaveSession(store, options, runner));
  QUERN_RETURN_IF_ERROR(session->start(report));
  return session;
}

Status SaveSession::start(Report& report) {
  FileSystem& files = store_.files();
  if (options_.writers == 0 || options_.writers > 65536 || options_.writer >= options_.writers)
    return fail(report, StatusCode::invalid_argument, "a writer's number must be below the number of writers");
  if (options_.writers > 1 && options_.group.empty())
    return fail(report, StatusCode::invalid_argument, "several writers need a common name for their group");
  if (!options_.group.empty() && !is_plain_id(options_.group))
    return fail(report, StatusCode::invalid_argument, "a group's name has 1 to 64 letters, digits, '-' and '_'");
  QUERN_RETURN_IF_ERROR(check_parity(options_.parity_data, options_.parity_files, report));
  QUERN_RETURN_IF_ERROR(store_.make_folders(report));
  auto lock = files.lock(store_.lock_path(), LockKind::shared, true);
  if (!lock.ok()) return fail_file(report, store_.lock_path(), "lock it", lock.status());
  store_lock_ = std::move(lock).value();
  sweep(store_, false, report);

  manifest_.name.step = options_.step;
  manifest_.library = QUERN_VERSION;
  manifest_.writer = options_.writer;
  manifest_.writers = options_.writers;
  if (options_.group.empty()) {
    auto made = files.new_name();
    if (!made.ok()) return fail_file(report, store_.root(), "make a name", made.status());
    manifest_.name.id = std::move(made).value();
  } else {
    manifest_.name.id = options_.group;
  }
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list(report));
  for (const CheckpointName& name : names) {
    if (name.id == manifest_.name.id)
      return fail(report, StatusCode::invalid_argument, join({"the group '", name.id, "' has been used before"}));
    if (name.step == options_.step && !options_.replace) {
      Report own;
      if (store_.read_checked(name, own).ok())
        return fail(report, StatusCode::invalid_argument, join({store_.root(), ": ", step_text(name), " is in the store already"}));
    }
  }
  known_.reset(new Known);
  QUERN_RETURN_IF_ERROR(open_base(report));
  if (options_.search_equal) QUERN_RETURN_IF_ERROR(find_known(report));

  const String& id = manifest_.name.id;
  auto own = files.lock(store_.tmp_lock(id), LockKind::shared, true);
  if (!own.ok()) return fail_file(report, store_.tmp_lock(id), "lock it", own.status());
  own_lock_ = std::move(own).value();
  const String folder = store_.tmp_folder(id);
  const Status made = files.make_folder(folder);
  if (!made.ok() && !(options_.writers > 1 && exists_already(made))) return fail_file(report, folder, "make the folder", made);
  folder_made_ = true;
  const std::uint32_t count = std::max<std::uint32_t>(options_.parity_data, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = options_.writer * count + i;
    QUERN_ASSIGN_OR_RETURN(PartWriter part, PartWriter::create(files, join({folder, "/", numbered_name("part", number)}),
                                                               part_identity(manifest_.name, number), report));
    parts_.push_back(std::move(part));
  }
  return {};
}

Status SaveSession::open_base(Report& report) {
  if (!options_.base) return {};
  if (*options_.base == options_.step)
    return fail(report, StatusCode::invalid_argument, "a checkpoint cannot be its own base");
  QUERN_ASSIGN_OR_RETURN(const Manifest found, store_.at_step(*options_.base, report));
  base_.reset(new Base);
  base_->name = found.name;
  manifest_.base = found.name;
  for (std::uint32_t i = 0; i < found.tensors.size(); ++i) base_->tensors.emplace(piece_key(found.tensors[i]), i);
  return {};
}

Status SaveSession::find_known(Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, store_.list(report));
  const std::size_t first = names.size() > kMostManifestsSearched ? names.size() - kMostManifestsSearched : 0;
  for (std::size_t i = first; i < names.size(); ++i) {
    Report own;
    const auto manifest = store_.read_checked(names[i], own);
    if (!manifest.ok()) continue;  // damaged ones are verify's business
    for (std::uint32_t t = 0; t < manifest->tensors.size(); ++t) {
      const ManifestTensor& tensor = manifest->tensors[t];
      if (!tensor.alias && !tensor.decoded)
        known_->contents.emplace(ContentKey{tensor.content, tensor.what.bytes()}, Known::Place{names[i], t});
    }
  }
  return {};
}

std::uint32_t SaveSession::reference_to(const CheckpointName& name) {
  auto& references = manifest_.references;
  const auto found = std::find(references.begin(), references.end(), name);
  const auto index = static_cast<std::uint32_t>(found - references.begin());
  if (found == references.end()) references.push_back(name);
  return index + 1;
}

bool SaveSession::take_alias(ManifestTensor& tensor) {
  if (tensor.what.bytes() == 0) return false;
  const auto found = known_->contents.find({tensor.content, tensor.what.bytes()});
  if (found == known_->contents.end()) return false;
  const Known::Place& place = found->second;
  tensor.alias = TensorPlace{place.checkpoint.id.empty() ? 0 : reference_to(place.checkpoint), place.tensor};
  return true;
}

Result<std::optional<std::uint32_t>> SaveSession::match_base(const TensorSource& source, Report& report) {
  std::optional<std::uint32_t> nothing;
  if (base_ == nullptr) return nothing;
  const auto found = base_->tensors.find(piece_key(source.name, source.whole, source.box));
  if (found == base_->tensors.end()) return nothing;
  base_->met.insert(found->second);
  QUERN_ASSIGN_OR_RETURN(const Manifest* const manifest, restorer_.manifest(base_->name, report));
  const ManifestTensor& there = manifest->tensors[found->second];
  const auto changed = [&](std::string_view what) {
    return fail(report, StatusCode::invalid_argument,
                join({"tensor '", source.name, "': its ", what, " is not that of the base, ", step_text(base_->name)}));
  };
  if (there.what.type != source.what.type) return changed("dtype");
  if (there.what.shape != source.what.shape) return changed("shape");
  return std::optional<std::uint32_t>(found->second);
}

Result<std::optional<TensorPlace>> SaveSession::base_values(const TensorSource& source, std::uint32_t index,
                                                            AlignedBuffer& values, Report& report) {
  std::optional<TensorPlace> nothing;
  QUERN_ASSIGN_OR_RETURN(const Restorer::Place place, restorer_.resolve(base_->name, index, report));
  QUERN_ASSIGN_OR_RETURN(const Manifest* const owner, restorer_.manifest(place.checkpoint, report));
  const ManifestTensor& target = owner->tensors[place.tensor];
  const ChainLimits& limits = options_.limits;
  if (target.what.type != source.what.type || target.what.shape != source.what.shape ||
      target.depth + 1 > limits.depth ||
      target.chain_bytes > target.key_bytes * limits.chain_percent / 100)
    return nothing;
  QUERN_RETURN_IF_ERROR(restorer_.tensor(place.checkpoint, place.tensor, values, report));
  return std::optional<TensorPlace>(TensorPlace{reference_to(place.checkpoint), place.tensor});
}

PartWriter& SaveSession::smallest_part(std::uint32_t& number) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < parts_.size(); ++i)
    if (parts_[i].bytes() < parts_[best].bytes()) best = i;
  number = static_cast<std::uint32_t>(best);
  return parts_[best];
}

Status SaveSession::write_tensor(ManifestTensor& tensor, const codec::tensor::EncodedTensor& coded, Report& report) {
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
    record.tensor = static_cast<std::uint32_t>(manifest_.tensors.size());
    record.chunk = i;
    const bool has_chunk = i < tensor.what.chunks();
    record.raw_bytes = has_chunk ? static_cast<std::uint32_t>(tensor.what.chunk_bytes(i)) : 0;
    const auto chunk = has_chunk ? coded.chunk(i) : std::span<const std::uint8_t>();
    QUERN_RETURN_IF_ERROR(part.add(record, i == 0 ? make_tensor_head(head) : Vector<std::uint8_t>(), chunk, report));
  }
  tensor.stored_bytes = part.bytes() - before;
  return {};
}

Result<SavedTensor> SaveSession::add_tensor(const TensorSource& source, Report& report) {
  const String where = join({"tensor '", source.name, "'"});
  if (source.values.size() != source.what.bytes())
    return fail(report, StatusCode::invalid_argument, join({where, ": its bytes do not fill its shape"}));
  if (source.name.empty() || source.name.size() > 65535)
    return fail(report, StatusCode::invalid_argument, "a tensor's name has 1 to 65535 bytes");
  SavedTensor saved;
  saved.number = static_cast<std::uint32_t>(manifest_.tensors.size());
  if (!known_->names.emplace(piece_key(source.name, source.whole, source.box), saved.number).second)
    return fail(report, StatusCode::invalid_argument, join({where, ": the name is given twice"}));
  ManifestTensor tensor;
  tensor.name = source.name;
  tensor.role = source.role;
  tensor.what = source.what;
  if (source.whole != nullptr) {
    tensor.is_piece = true;
    tensor.whole = *source.whole;
    tensor.box = source.box;
    const auto shape = source.box.shape();
    if (!source.box.check(*source.whole).ok() || !shape.ok() || *shape != source.what.shape)
      return fail(report, StatusCode::invalid_argument, join({where, ": the piece does not fit its tensor"}));
  }
  tensor.content = content_hash(source.values);
  QUERN_ASSIGN_OR_RETURN(const auto earlier, match_base(source, report));
  const std::size_t references_before = manifest_.references.size();
  if (take_alias(tensor)) {
    saved.alias = true;
    manifest_.tensors.push_back(std::move(tensor));
    return saved;
  }
  AlignedBuffer values_of_base;
  std::optional<TensorPlace> base;
  if (earlier) {
    QUERN_ASSIGN_OR_RETURN(base, base_values(source, *earlier, values_of_base, report));
  }
  codec::tensor::TensorInputs inputs;
  inputs.values = source.values;
  if (base) inputs.base = values_of_base.span();
  if (source.companion) {
    inputs.companion = source.companion_values;
    inputs.companion_type = source.companion_type;
  }
  codec::tensor::TensorRequest request;
  request.zstd_level = options_.zstd_level;
  auto coded = codec::tensor::encode_tensor(source.what, request, inputs, runner_);
  if (!coded.ok()) return fail_at(report, where, coded.status());
  const auto needs = codec::tensor::tensor_needs(source.what, coded->mode, coded->side);
  if (!needs.ok()) return fail_at(report, where, needs.status());
  if (needs->base) {
    const CheckpointName& owner_name = manifest_.references[base->checkpoint - 1];
    QUERN_ASSIGN_OR_RETURN(const Manifest* const owner, restorer_.manifest(owner_name, report));
    const ManifestTensor& target = owner->tensors[base->tensor];
    const std::uint64_t read = target.key_bytes + target.chain_bytes + coded->total_bytes();
    if (read > target.key_bytes * options_.limits.restore_percent / 100) {
      inputs.base = {};
      coded = codec::tensor::encode_tensor(source.what, request, inputs, runner_);
      if (!coded.ok()) return fail_at(report, where, coded.status());
    } else {
      tensor.base = base;
      tensor.depth = target.depth + 1;
      tensor.key_bytes = target.key_bytes;
      tensor.chain_bytes = target.chain_bytes;
    }
  }
  if (!tensor.base && manifest_.references.size() > references_before) manifest_.references.pop_back();
  tensor.mode = coded->mode;
  if (needs->companion) tensor.companion = source.companion;
  QUERN_RETURN_IF_ERROR(write_tensor(tensor, *coded, report));
  if (tensor.depth == 0) {
    tensor.key_bytes = tensor.stored_bytes;
  } else {
    tensor.chain_bytes += tensor.stored_bytes;
  }
  known_->contents.emplace(ContentKey{tensor.content, tensor.what.bytes()}, Known::Place{{}, saved.number});
  saved.mode = tensor.mode;
  saved.stored_bytes = tensor.stored_bytes;
  manifest_.tensors.push_back(std::move(tensor));
  return saved;
}

Status SaveSession::add_blob(std::string_view name, std::span<const std::uint8_t> bytes, Report& report) {
  ManifestBlob blob;
  blob.name = name;
  blob.bytes = bytes.size();
  blob.content = content_hash(bytes);
  PartWriter& part = smallest_part(blob.part);
  blob.record = static_cast<std::uint32_t>(part.records());
  for (std::uint32_t i = 0; i < blob.records(); ++i) {
    const std::size_t begin = i * codec::tensor::kChunkBytes;
    const auto piece = bytes.subspan(begin, std::min(codec::tensor::kChunkBytes, bytes.size() - begin));
    Record record;
    record.kind = RecordKind::blob;
    record.tensor = static_cast<std::uint32_t>(manifest_.blobs.size());
    record.chunk = i;
    record.raw_bytes = static_cast<std::uint32_t>(piece.size());
    QUERN_RETURN_IF_ERROR(part.add(record, piece, {}, report));
  }
  manifest_.blobs.push_back(std::move(blob));
  return {};
}

Result<SaveResult> SaveSession::finish_parts(Report& report) {
  if (base_ != nullptr && base_->met.size() < base_->tensors.size() && options_.writers == 1) {
    for (const auto& [key, index] : base_->tensors)
      if (!base_->met.contains(index))
        return fail(report, StatusCode::invalid_argument,
                    join({"tensor '", key.substr(0, key.find('\n')), "' of the base, ", step_text(base_->name), ", is missing"}));
  }
  for (PartWriter& part : parts_) {
    QUERN_ASSIGN_OR_RETURN(const PartInfo info, part.finish(report));
    manifest_.parts.push_back(info);
  }
  parts_.clear();
  if (options_.parity_data != 0) {
    manifest_.parity.data = options_.parity_data;
    manifest_.parity.parity = options_.parity_files;
    QUERN_RETURN_IF_ERROR(write_parity(store_.files(), store_.tmp_folder(manifest_.name.id), manifest_.name,
                                       options_.writer, manifest_.parts, manifest_.parity, report));
  }
  return SaveResult{manifest_.name, false, 0, {}};
}

Result<SaveResult> SaveSession::measure(Report& report) {
  QUERN_ASSIGN_OR_RETURN(SaveResult result, finish_parts(report));
  QUERN_ASSIGN_OR_RETURN(const auto bytes, write_manifest(manifest_, report));
  result.manifest_bytes = bytes.size();
  result.manifest = manifest_;
  abort();
  return result;
}

Result<SaveResult> SaveSession::commit(Report& report) {
  FileSystem& files = store_.files();
  const String id = manifest_.name.id;
  QUERN_ASSIGN_OR_RETURN(SaveResult result, finish_parts(report));
  std::unique_ptr<FileLock> arrival;
  if (options_.writers > 1) {
    auto lock = files.lock(arrival_lock(store_, id), LockKind::exclusive, true);
    if (!lock.ok()) return fail_file(report, arrival_lock(store_, id), "lock it", lock.status());
    arrival = std::move(lock).value();
    QUERN_RETURN_IF_ERROR(leave_sub_manifest(store_, manifest_, report));
    QUERN_ASSIGN_OR_RETURN(auto joined, join_sub_manifests(store_, manifest_.name, options_.writers, report));
    if (!joined) {
      result.manifest = manifest_;
      folder_made_ = false;
      own_lock_.reset();
      return result;
    }
    manifest_ = std::move(*joined);
  }
  QUERN_ASSIGN_OR_RETURN(result.manifest_bytes, publish(store_, manifest_, report));
  folder_made_ = false;
  (void)files.remove(store_.tmp_lock(id));
  own_lock_.reset();
  result.published = true;
  result.manifest = manifest_;
  return result;
}

}  // namespace quern::checkpoint

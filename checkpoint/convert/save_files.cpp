// From safetensors files to a checkpoint.
#include <algorithm>

#include "checkpoint/convert/set_coding.h"
#include "checkpoint/files/measuring_files.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kMaxIndexFile = 100'000'000;

String base_name(std::string_view path) { return String(path.substr(path.find_last_of('/') + 1)); }
String folder_of(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return String(slash == std::string_view::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1)));
}

/// The files of a save: an index stands for its shards.
struct Inputs {
  Vector<String> paths;
  Vector<ManifestFile> indexes;
};

Status add_index(FileSystem& files, const String& path, Inputs& out, Report& report) {
  const auto bytes = read_file(files, path, kMaxIndexFile);
  if (!bytes.ok()) return fail_file(report, path, "read it", bytes.status());
  ManifestFile file;
  file.kind = ManifestFile::Kind::shard_index;
  file.name = base_name(path);
  file.text.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto index = parse_shard_index(file.text, report);
  if (!index.ok()) return fail_at(report, path, index.status());
  Vector<String> shards;
  for (const auto& [tensor, shard] : index->files)
    if (std::find(shards.begin(), shards.end(), shard) == shards.end()) shards.push_back(shard);
  std::sort(shards.begin(), shards.end());
  for (const String& shard : shards) out.paths.push_back(join({folder_of(path), "/", shard}));
  out.indexes.push_back(std::move(file));
  return {};
}

Result<Inputs> find_inputs(FileSystem& files, const Vector<String>& paths, Report& report) {
  Inputs out;
  for (const String& path : paths) {
    if (path.ends_with(".json")) {
      QUERN_RETURN_IF_ERROR(add_index(files, path, out, report));
    } else {
      out.paths.push_back(path);
    }
  }
  Vector<String> names;
  for (const String& path : out.paths) names.push_back(base_name(path));
  for (const ManifestFile& index : out.indexes) names.push_back(index.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return fail(
        report, StatusCode::invalid_argument,
        join({*twice, ": two files of this name cannot be one checkpoint, for they come back into one folder"}));
  return out;
}

ManifestFile describe(const SafetensorsFile& file) {
  const SafetensorsHeader& header = file.header();
  ManifestFile out;
  out.name = base_name(file.path());
  out.form = header.form;
  out.tensors = static_cast<std::uint32_t>(header.tensors.size());
  if (header.form == HeaderForm::verbatim) {
    out.text = header.text;
  } else {
    out.padding = header.padding;
    out.has_metadata = header.has_metadata;
    out.metadata = header.metadata;
  }
  return out;
}

/// The tensors of all files, in their order.
class FileTensors final : public TensorSet {
 public:
  explicit FileTensors(Vector<SafetensorsFile>& files) : files_(files) {
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (const StoredTensor& tensor : files_[f].header().tensors) tensors_.push_back({f, &tensor});
  }
  std::size_t count() const override { return tensors_.size(); }
  SetTensor tensor(std::size_t index) const override {
    SetTensor out;
    out.name = tensors_[index].second->name;
    out.place = files_[tensors_[index].first].path();
    out.what = tensors_[index].second->what;
    if (tensors_[index].second->declared) out.declared = &*tensors_[index].second->declared;
    return out;
  }
  Result<std::span<const std::uint8_t>> values(std::size_t index, AlignedBuffer& room, Report& report) override {
    const auto& [file, tensor] = tensors_[index];
    QUERN_RETURN_IF_ERROR(room.resize(tensor->what.bytes()));
    QUERN_RETURN_IF_ERROR(files_[file].read(tensor->begin, room.span(), report));
    return std::span<const std::uint8_t>(room.span());
  }
  Vector<const Metadata*> metadata() const override {
    Vector<const Metadata*> out;
    for (const SafetensorsFile& file : files_) out.push_back(&file.header().metadata);
    return out;
  }

 private:
  Vector<SafetensorsFile>& files_;
  Vector<std::pair<std::size_t, const StoredTensor*>> tensors_;
};

}  // namespace

Result<FileSaveResult> save_files(const Store& store, const Vector<String>& paths, const FileSaveOptions& options,
                                  TaskRunner& runner, Report& report) {
  QUERN_ASSIGN_OR_RETURN(Inputs inputs, find_inputs(store.files(), paths, report));
  FileSaveResult out;
  Vector<SafetensorsFile> files;
  for (const String& path : inputs.paths) {
    QUERN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(store.files(), path, report));
    out.input_bytes += 8 + file.header().text.size() + file.header().data_bytes();
    files.push_back(std::move(file));
  }
  FileTensors tensors(files);
  SetCoding coding(tensors, options, runner);
  QUERN_RETURN_IF_ERROR(coding.prepare(report));
  MeasuringFiles measuring(store.files(), options.save.parity_data != 0 || store.placed() != nullptr);
  const Store target = options.dry_run ? store.over(measuring) : store;
  QUERN_ASSIGN_OR_RETURN(const auto session, SaveSession::begin(target, options.save, runner, report));
  QUERN_RETURN_IF_ERROR(coding.run(*session, report));
  out.tensors = coding.take_summaries();
  add_fallback_notes(out.tensors, report);
  for (const SafetensorsFile& file : files) session->add_file(describe(file));
  for (ManifestFile& index : inputs.indexes) {
    out.input_bytes += index.text.size();
    session->add_file(std::move(index));
  }
  if (options.dry_run) {
    QUERN_ASSIGN_OR_RETURN(out.save, session->measure(report));
    return out;
  }
  auto committed = session->commit(report);
  if (!committed.ok()) return committed.status();
  out.save = std::move(committed).value();
  return out;
}

}  // namespace quern::checkpoint

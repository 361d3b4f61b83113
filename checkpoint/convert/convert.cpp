// Models of one file and of several.
#include "checkpoint/convert/convert.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kMaxIndexFile = 100'000'000;

String five_digits(std::size_t value) {
  String text = decimal(value);
  return text.size() >= 5 ? text : String(5 - text.size(), '0') + text;
}

/// Index and shards must name the same tensors in the same files.
Status check_index(const ShardIndex& index, const Vector<SafetensorsFile>& files, const Vector<String>& shards,
                   const String& path, Report& report) {
  Vector<std::pair<String, String>> said(index.files.begin(), index.files.end()), found;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const StoredTensor& tensor : files[i].header().tensors) found.emplace_back(tensor.name, shards[i]);
  std::sort(said.begin(), said.end());
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i < std::max(said.size(), found.size()); ++i) {
    if (i < said.size() && i < found.size() && said[i] == found[i]) continue;
    const bool missing = i >= found.size() || (i < said.size() && said[i] < found[i]);
    const auto& [tensor, file] = missing ? said[i] : found[i];
    return fail(report, StatusCode::corrupt,
                join({path, ": tensor '", tensor, "' is ", missing ? "not in " : "not listed, but in ", file}));
  }
  return {};
}

}  // namespace

Result<ModelFiles> ModelFiles::open(FileSystem& files, const String& path, Report& report) {
  ModelFiles out;
  if (!path.ends_with(".json")) {
    QUERN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(files, path, report));
    out.files_.push_back(std::move(file));
  } else {
    const auto bytes = read_file(files, path, kMaxIndexFile);
    if (!bytes.ok()) return fail_file(report, path, "read it", bytes.status());
    const auto index = parse_shard_index({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, report);
    if (!index.ok()) return fail_at(report, path, index.status());
    Vector<String> shards;
    for (const auto& [tensor, shard] : index->files) shards.push_back(shard);
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    if (shards.empty()) return fail(report, StatusCode::corrupt, join({path, ": the index names no file"}));
    const std::size_t slash = path.find_last_of('/');
    const String folder = slash == String::npos ? String() : path.substr(0, slash + 1);
    for (const String& shard : shards) {
      QUERN_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(files, folder + shard, report));
      out.files_.push_back(std::move(file));
    }
    QUERN_RETURN_IF_ERROR(check_index(*index, out.files_, shards, path, report));
  }
  for (std::size_t i = 0; i < out.files_.size(); ++i)
    for (const StoredTensor& tensor : out.files_[i].header().tensors) out.tensors_.push_back({i, &tensor});
  return out;
}

std::uint64_t ModelFiles::tensor_bytes() const {
  std::uint64_t sum = 0;
  for (const SafetensorsFile& file : files_) sum += file.header().data_bytes();
  return sum;
}

std::uint64_t ModelFiles::input_bytes() const {
  std::uint64_t sum = tensor_bytes();
  for (const SafetensorsFile& file : files_) sum += 8 + file.header().text.size();
  return sum;
}

Status ModelFiles::read(const Tensor& tensor, AlignedBuffer& out, Report& report) {
  QUERN_RETURN_IF_ERROR(out.resize(tensor.stored->what.bytes()));
  return files_[tensor.file].read(tensor.stored->begin, out.span(), report);
}

Status write_model_file(ModelFiles& model, std::size_t begin, std::size_t end, FileSink& sink, Report& report) {
  SafetensorsHeader header;
  header.has_metadata = model.first_header().has_metadata;
  header.metadata = model.first_header().metadata;
  for (std::size_t i = begin; i < end; ++i) header.tensors.push_back(*model.tensors()[i].stored);
  lay_out(header);
  QUERN_RETURN_IF_ERROR(sink.write(header_bytes(header.text), report));
  AlignedBuffer values;
  for (std::size_t i = begin; i < end; ++i) {
    QUERN_RETURN_IF_ERROR(model.read(model.tensors()[i], values, report));
    QUERN_RETURN_IF_ERROR(sink.write(values.span(), report));
  }
  return {};
}

Vector<std::size_t> cut_shards(const ModelFiles& model, std::uint64_t bytes) {
  Vector<std::size_t> ends;
  std::uint64_t in_shard = 0;
  for (std::size_t i = 0; i < model.tensors().size(); ++i) {
    const std::uint64_t size = model.tensors()[i].stored->what.bytes();
    if (in_shard != 0 && (size > bytes || in_shard > bytes - size)) {
      ends.push_back(i);
      in_shard = 0;
    }
    in_shard += size;
  }
  ends.push_back(model.tensors().size());
  return ends;
}

String shard_name(std::size_t index, std::size_t count) {
  return join({"model-", five_digits(index + 1), "-of-", five_digits(count), ".safetensors"});
}

}  // namespace quern::checkpoint

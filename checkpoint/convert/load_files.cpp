// From a checkpoint to safetensors files.
#include <algorithm>

#include "checkpoint/convert/checkpoint_files.h"

namespace quern::checkpoint {
namespace {

/// Counts restored bytes; true when the caller wants to go on.
class Meter {
 public:
  Meter(const ProgressCallback& progress, std::uint64_t total) : progress_(progress), total_(total) {}
  Status add(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, total_)) return Status(StatusCode::cancelled, "the caller cancelled");
    return {};
  }

 private:
  const ProgressCallback& progress_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
};

Result<String> header_text(const ManifestFile& file, const Manifest& manifest, std::size_t first, Report& report) {
  if (file.form == HeaderForm::verbatim) return file.text;
  SafetensorsHeader header;
  std::uint64_t at = 0;
  for (std::size_t i = first; i < first + file.tensors; ++i) {
    const ManifestTensor& tensor = manifest.tensors[i];
    header.tensors.push_back({tensor.name, tensor.what, tensor.declared, at, at + tensor.what.bytes()});
    at += tensor.what.bytes();
  }
  header.has_metadata = file.has_metadata;
  header.metadata = file.metadata;
  header.form = file.form;
  header.padding = file.padding;
  String text = make_header_text(header);
  if (text.size() > kMaxSafetensorsHeader)
    return fail(report, StatusCode::corrupt, join({file.name, ": its header would be too long"}));
  return text;
}

}  // namespace

Status read_piece(Restorer& restorer, const Manifest& manifest, std::size_t index, const ManifestTensor& first,
                  const Box& box, std::span<std::uint8_t> out, Report& report) {
  const ManifestTensor& tensor = manifest.tensors[index];
  if (tensor.is_piece != first.is_piece || tensor.whole != first.whole || tensor.what.type != first.what.type)
    return fail(report, StatusCode::corrupt, join({"tensor '", first.name, "': its pieces are of different tensors"}));
  const Box there = tensor.is_piece ? tensor.box : Box::whole(tensor.what.shape);
  const Box common = intersection(there, box);
  const auto shape = common.shape();
  if (!shape.ok() || shape->elems() == 0) return {};
  if (*shape != tensor.what.shape) return restorer.part(manifest.name, index, common, there, box, out, report);
  std::uint64_t at = 0;
  return restorer.pieces(
      manifest.name, index,
      [&](std::span<const std::uint8_t> values) -> Status {
        copy_runs(codec::tensor::element_bytes(tensor.what.type), common, there, at, values, box, out);
        at += values.size();
        return {};
      },
      report);
}

Status load_file(Restorer& restorer, const Manifest& manifest, std::size_t file_number, FileSink& sink,
                 const ProgressCallback& progress, Report& report) {
  const ManifestFile& file = manifest.files[file_number];
  if (file.kind == ManifestFile::Kind::shard_index)
    return sink.write({reinterpret_cast<const std::uint8_t*>(file.text.data()), file.text.size()}, report);
  std::size_t first = 0;
  for (std::size_t i = 0; i < file_number; ++i) first += manifest.files[i].tensors;
  QUERN_ASSIGN_OR_RETURN(const String text, header_text(file, manifest, first, report));
  QUERN_RETURN_IF_ERROR(sink.write(header_bytes(text), report));
  std::uint64_t total = 0;
  for (std::size_t i = first; i < first + file.tensors; ++i) total += manifest.tensors[i].what.bytes();
  Meter meter(progress, total);
  for (std::size_t i = first; i < first + file.tensors; ++i) {
    QUERN_RETURN_IF_ERROR(restorer.pieces(
        manifest.name, i, [&](std::span<const std::uint8_t> values) { return sink.write(values, report); }, report));
    QUERN_RETURN_IF_ERROR(meter.add(manifest.tensors[i].what.bytes()));
  }
  return {};
}

Status load_tensors(Restorer& restorer, const Manifest& manifest, const Vector<String>& globs, std::string_view slice,
                    FileSink& sink, const ProgressCallback& progress, Report& report) {
  const auto wanted = [&](const ManifestTensor& tensor) {
    return globs.empty() ||
           std::any_of(globs.begin(), globs.end(), [&](const String& glob) { return glob_matches(glob, tensor.name); });
  };
  for (const String& glob : globs)
    if (std::none_of(manifest.tensors.begin(), manifest.tensors.end(),
                     [&](const ManifestTensor& tensor) { return glob_matches(glob, tensor.name); }))
      return fail(report, StatusCode::invalid_argument,
                  join({"--tensor ", glob, ": step ", decimal(manifest.name.step), " has no such tensor"}));
  // Tensors in order, each with its pieces.
  SafetensorsHeader header;
  Vector<Vector<std::size_t>> pieces;
  Vector<codec::tensor::TensorShape> shapes;
  Vector<Box> boxes;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const ManifestTensor& tensor = manifest.tensors[i];
    if (!wanted(tensor)) continue;
    const auto known = std::find_if(header.tensors.begin(), header.tensors.end(),
                                    [&](const StoredTensor& t) { return tensor.is_piece && t.name == tensor.name; });
    if (known != header.tensors.end()) {
      pieces[static_cast<std::size_t>(known - header.tensors.begin())].push_back(i);
      continue;
    }
    StoredTensor stored;
    stored.name = tensor.name;
    stored.what = tensor.what;
    stored.declared = tensor.declared;
    if (tensor.is_piece) stored.what.shape = tensor.whole;
    shapes.push_back(stored.what.shape);
    boxes.push_back(Box::whole(stored.what.shape));
    if (!slice.empty()) {
      if (stored.declared)
        return fail(report, StatusCode::invalid_argument,
                    join({"--slice ", slice, ": tensor '", tensor.name, "' of type ", stored.declared->dtype,
                          " is stored as bytes; leave --slice out to load all of it"}));
      const auto box = Box::parse(slice, stored.what.shape);
      if (!box.ok())
        return fail(report, StatusCode::invalid_argument,
                    join({"--slice ", slice, ": tensor '", tensor.name, "': ", box.status().text()}));
      boxes.back() = *box;
      QUERN_ASSIGN_OR_RETURN(stored.what.shape, box->shape());
    }
    header.tensors.push_back(std::move(stored));
    pieces.push_back({i});
  }
  lay_out(header);
  QUERN_RETURN_IF_ERROR(sink.write(header_bytes(header.text), report));
  Meter meter(progress, header.data_bytes());
  AlignedBuffer part;
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    const ManifestTensor& first = manifest.tensors[pieces[t].front()];
    const bool all = header.tensors[t].what.shape == shapes[t];
    if (!first.is_piece && all) {
      QUERN_RETURN_IF_ERROR(restorer.pieces(
          manifest.name, pieces[t].front(),
          [&](std::span<const std::uint8_t> values) { return sink.write(values, report); }, report));
    } else {
      std::uint64_t covered = 0;
      for (const std::size_t i : pieces[t]) covered += manifest.tensors[i].what.bytes();
      if (covered != TensorDescription{first.what.type, shapes[t]}.bytes())  // pieces do not overlap
        return fail(report, StatusCode::corrupt,
                    join({"tensor '", first.name, "': the checkpoint does not have all of its pieces"}));
      QUERN_RETURN_IF_ERROR(part.resize(header.tensors[t].what.bytes()));
      std::fill(part.span().begin(), part.span().end(), std::uint8_t{0});  // pieces of hostile manifests may overlap
      for (const std::size_t i : pieces[t])
        QUERN_RETURN_IF_ERROR(read_piece(restorer, manifest, i, first, boxes[t], part.span(), report));
      QUERN_RETURN_IF_ERROR(sink.write(part.span(), report));
    }
    QUERN_RETURN_IF_ERROR(meter.add(header.tensors[t].what.bytes()));
  }
  return {};
}

}  // namespace quern::checkpoint

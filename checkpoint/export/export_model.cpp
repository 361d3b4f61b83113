// From the store to a folder, tensor by tensor.
#include "checkpoint/export/export_model.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/convert/convert.h"
#include "checkpoint/export/cast.h"
#include "checkpoint/export/model_folder.h"

namespace quern::checkpoint {
namespace {

__extension__ using Wide = __int128;

/// Copies a view's elements, `width` bytes each, one behind the other. False where it leaves the memory.
bool gather(const StateView& view, std::size_t width, std::span<const std::uint8_t> from, std::span<std::uint8_t> out) {
  if (out.empty()) return true;
  const std::size_t rank = view.shape.size();
  auto low = static_cast<Wide>(view.offset), high = low + static_cast<Wide>(width);
  for (std::size_t a = 0; a < rank; ++a) {
    const Wide reach = static_cast<Wide>(view.shape[a] - 1) * view.strides[a];
    (reach < 0 ? low : high) += reach;
  }
  if (low < 0 || high > static_cast<Wide>(from.size())) return false;
  Vector<std::uint64_t> index(rank);
  auto at = static_cast<std::int64_t>(view.offset);
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, from.data() + at, width);
    for (std::size_t a = rank; a-- > 0;) {
      at += view.strides[a];
      if (++index[a] < view.shape[a]) break;
      at -= static_cast<std::int64_t>(index[a]) * view.strides[a];
      index[a] = 0;
    }
  }
  return true;
}

class Exporter {
 public:
  Exporter(Restorer& restorer, const Manifest& manifest, Report& report)
      : restorer_(restorer), manifest_(manifest), report_(report) {}

  /// The bytes to be written, valid until the next call.
  Result<std::span<const std::uint8_t>> values(const ExportTensor& tensor) {
    QUERN_RETURN_IF_ERROR(read_whole(tensor));
    std::span<const std::uint8_t> out = whole_.span();
    const std::uint64_t bytes = tensor.written.what.bytes();
    if (tensor.view) {
      const ElementType type = tensor.cast ? tensor.stored.type : tensor.written.what.type;
      const std::size_t width = codec::tensor::element_bytes(type);
      QUERN_RETURN_IF_ERROR(viewed_.resize(tensor.written.what.elems() * width));
      if (!gather(*tensor.view, width, out, viewed_.span()))
        return fail(report_, StatusCode::corrupt, join({"tensor '", tensor.name, "': its view leaves its memory"}));
      out = viewed_.span();
    }
    if (!tensor.cast) return out;
    QUERN_RETURN_IF_ERROR(cast_.resize(bytes));
    const std::uint64_t overflows = cast(tensor.stored.type, out, tensor.written.what.type, cast_.span());
    if (overflows != 0)
      report_.notes.push_back(join({"tensor '", tensor.name, "': ", decimal(overflows), " values are too large for ",
                                    element_name(tensor.written.what.type), " and became infinite"}));
    return std::span<const std::uint8_t>(cast_.span());
  }

 private:
  Status read_whole(const ExportTensor& tensor) {
    const ManifestTensor& first = manifest_.tensors[tensor.pieces.front()];
    if (!first.is_piece) return restorer_.tensor(manifest_.name, tensor.pieces.front(), whole_, report_);
    std::uint64_t covered = 0;
    for (const std::uint32_t index : tensor.pieces) {
      const ManifestTensor& piece = manifest_.tensors[index];
      if (!piece.is_piece || piece.whole != first.whole || piece.what.type != first.what.type)
        return fail(report_, StatusCode::corrupt,
                    join({"tensor '", first.name, "': its pieces are of different tensors"}));
      covered += piece.what.bytes();
    }
    if (covered != tensor.stored.bytes())
      return fail(report_, StatusCode::corrupt,
                  join({"tensor '", first.name, "': the checkpoint does not have all of its pieces"}));
    QUERN_RETURN_IF_ERROR(whole_.resize(covered));
    std::fill(whole_.span().begin(), whole_.span().end(), std::uint8_t{0});  // pieces of hostile manifests may overlap
    for (const std::uint32_t index : tensor.pieces)
      QUERN_RETURN_IF_ERROR(
          read_piece(restorer_, manifest_, index, first, Box::whole(first.whole), whole_.span(), report_));
    return {};
  }

  Restorer& restorer_;
  const Manifest& manifest_;
  Report& report_;
  AlignedBuffer whole_, viewed_, cast_;
};

/// Where shards end.
Vector<std::size_t> shard_ends(const Vector<ExportTensor>& tensors, std::uint64_t most) {
  Vector<std::size_t> ends;
  std::uint64_t in_shard = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = tensors[i].written.what.bytes();
    if (in_shard != 0 && (size > most || in_shard > most - size)) {
      ends.push_back(i);
      in_shard = 0;
    }
    in_shard += size;
  }
  ends.push_back(tensors.size());
  return ends;
}

SafetensorsHeader shard_header(std::span<const ExportTensor> tensors, const ChosenTensors& chosen) {
  SafetensorsHeader header;
  header.has_metadata = true;
  header.metadata.emplace_back("format", "pt");
  for (const ExportTensor& tensor : tensors) {
    header.tensors.push_back(tensor.written);
    for (const auto& [second, first] : chosen.tied)
      if (first == tensor.name && second != "format") header.metadata.emplace_back(second, first);
  }
  lay_out(header);
  return header;
}

Result<std::optional<StateNames>> state_names(Restorer& restorer, const Manifest& manifest, Report& report) {
  std::optional<StateNames> out;
  for (std::size_t i = 0; i < manifest.blobs.size(); ++i) {
    if (manifest.blobs[i].name != kStateBlob) continue;
    Vector<std::uint8_t> text;
    QUERN_RETURN_IF_ERROR(restorer.blob(manifest.name, i, text, report));
    QUERN_ASSIGN_OR_RETURN(out, parse_state_names({reinterpret_cast<const char*>(text.data()), text.size()}, report));
  }
  return out;
}

std::uint64_t count_inexact(const Manifest& manifest, const Vector<ExportTensor>& tensors) {
  return static_cast<std::uint64_t>(std::count_if(tensors.begin(), tensors.end(), [&](const ExportTensor& tensor) {
    return std::any_of(tensor.pieces.begin(), tensor.pieces.end(),
                       [&](std::uint32_t index) { return manifest.tensors[index].decoded.has_value(); });
  }));
}

}  // namespace

Result<ExportResult> export_model(FileSystem& files, Restorer& restorer, const Manifest& manifest,
                                  std::string_view folder, const ExportOptions& options, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto state, state_names(restorer, manifest, report));
  QUERN_ASSIGN_OR_RETURN(const ChosenTensors chosen,
                         choose_tensors(manifest, state ? &*state : nullptr, options.choice, report));
  const auto& tensors = chosen.tensors;
  const auto ends = shard_ends(tensors, options.shard_bytes);
  QUERN_ASSIGN_OR_RETURN(ModelFolder out, ModelFolder::open(files, folder, options.replace, report));
  ExportResult result;
  result.tied = chosen.tied;
  result.tensors = tensors.size();
  result.inexact = count_inexact(manifest, tensors);
  std::uint64_t total = 0, done = 0;
  for (const ExportTensor& tensor : tensors) {
    total += tensor.written.what.bytes();
    result.cast += tensor.cast ? 1 : 0;
  }
  Exporter exporter(restorer, manifest, report);
  ShardIndex index;
  for (std::size_t s = 0, begin = 0; s < ends.size(); begin = ends[s++]) {
    const String name = ends.size() == 1 ? String("model.safetensors") : shard_name(s, ends.size());
    const SafetensorsHeader header = shard_header(std::span(tensors).subspan(begin, ends[s] - begin), chosen);
    QUERN_RETURN_IF_ERROR(out.begin(name, report));
    QUERN_RETURN_IF_ERROR(out.write(header_bytes(header.text), report));
    for (std::size_t i = begin; i < ends[s]; ++i) {
      QUERN_ASSIGN_OR_RETURN(const auto values, exporter.values(tensors[i]));
      QUERN_RETURN_IF_ERROR(out.write(values, report));
      index.files.emplace_back(tensors[i].name, name);
      done += values.size();
      if (options.progress && !options.progress(done, total))
        return Status(StatusCode::cancelled, "the caller cancelled");
    }
    result.files.push_back(name);
  }
  if (ends.size() > 1) {
    const String list = make_shard_index(index, total);
    result.files.push_back("model.safetensors.index.json");
    QUERN_RETURN_IF_ERROR(out.begin(result.files.back(), report));
    QUERN_RETURN_IF_ERROR(out.write({reinterpret_cast<const std::uint8_t*>(list.data()), list.size()}, report));
  }
  QUERN_RETURN_IF_ERROR(out.publish(report));
  result.bytes = out.bytes();
  return result;
}

}  // namespace quern::checkpoint

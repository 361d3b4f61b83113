#include "checkpoint/convert/added_tensor.h"

#include <algorithm>

#include "checkpoint/store/box_runs.h"

namespace quern::checkpoint {

Status take_name(const AddedTensor& tensor, TensorNames& names, Report& report) {
  if (tensor.name.empty() || tensor.name.size() > 65535)
    return fail(report, StatusCode::invalid_argument, "a tensor's name has 1 to 65535 bytes");
  const auto known = names.emplace(tensor.name, tensor.is_piece);
  if (known.second || (tensor.is_piece && known.first->second)) return {};
  return fail(report, StatusCode::invalid_argument, join({"tensor '", tensor.name, "': the name is given twice"}));
}

Status check_pieces(const Vector<AddedTensor>& tensors, bool all_here, Report& report) {
  Vector<const AddedTensor*> pieces;
  for (const AddedTensor& tensor : tensors)
    if (tensor.is_piece) pieces.push_back(&tensor);
  std::sort(pieces.begin(), pieces.end(), [](const AddedTensor* a, const AddedTensor* b) { return a->name < b->name; });
  for (std::size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
    const AddedTensor& first = *pieces[begin];
    const auto wrong = [&](std::string_view what) {
      return fail(report, StatusCode::invalid_argument, join({"tensor '", first.name, "': its pieces ", what}));
    };
    std::uint64_t elements = 0;
    while (end < pieces.size() && pieces[end]->name == first.name) {
      const AddedTensor& piece = *pieces[end];
      if (piece.what.type != first.what.type || piece.whole != first.whole)
        return wrong("differ in dtype or in the whole's shape");
      for (std::size_t i = begin; i < end; ++i)
        if (overlap(piece.box, pieces[i]->box)) return wrong("overlap");
      elements += piece.what.elems();
      ++end;
    }
    if (all_here && elements != first.whole.elems()) return wrong("do not fill it");
  }
  return {};
}

std::uint64_t count_differences(const Manifest& manifest, const Vector<AddedTensor>& own) {
  std::uint64_t count = 0;
  Vector<std::string_view> names;
  for (const AddedTensor& tensor : own) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  for (const ManifestTensor& tensor : manifest.tensors)
    if (tensor.base && std::binary_search(names.begin(), names.end(), std::string_view(tensor.name))) ++count;
  return count;
}

}  // namespace quern::checkpoint

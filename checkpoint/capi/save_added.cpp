// Roles, companions, values from devices, and one tensor after the other into the session.
#include "checkpoint/capi/save_added.h"

#include <algorithm>

#include <quern/device.h>

#include "checkpoint/roles.h"

namespace quern::checkpoint::capi {
namespace {

bool overlap(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.rank; ++i)
    if (a.end[i] <= b.begin[i] || b.end[i] <= a.begin[i] || a.begin[i] == a.end[i] || b.begin[i] == b.end[i])
      return false;
  return true;
}

bool same_place(const AddedTensor& a, const AddedTensor& b) {
  if (a.is_piece != b.is_piece) return false;
  return !a.is_piece || (a.whole == b.whole && a.box.begin == b.box.begin && a.box.end == b.box.end);
}

Vector<AssignedRole> roles_of(const Vector<AddedTensor>& tensors) {
  Vector<RoleSubject> subjects;
  subjects.reserve(tensors.size());
  for (const AddedTensor& tensor : tensors) subjects.push_back({tensor.name, tensor.what, tensor.role});
  Vector<AssignedRole> out = assign_roles(subjects, {});
  // Companions are told by name and shape; of pieces it must be the one of the same place.
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& companion = out[i].companion;
    if (!companion || same_place(tensors[i], tensors[*companion])) continue;
    const String& name = tensors[*companion].name;
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const AddedTensor& t) { return t.name == name && same_place(tensors[i], t); });
    companion.reset();
    if (found != tensors.end()) companion = static_cast<std::uint32_t>(found - tensors.begin());
  }
  return out;
}

/// The values in host memory: the caller's, or a copy in `room`.
Result<std::span<const std::uint8_t>> values_of(const AddedTensor& tensor, AlignedBuffer& room, Report& report) {
  const auto bytes = static_cast<std::size_t>(tensor.what.bytes());
  if (!tensor.on_device) return std::span<const std::uint8_t>(tensor.data, bytes);
  Status status = room.resize(bytes);
  if (status.ok()) status = copy_from_device(tensor.device, tensor.data, room.data(), bytes);
  if (!status.ok()) return fail_at(report, join({"tensor '", tensor.name, "'"}), status);
  return std::span<const std::uint8_t>(room.span());
}

}  // namespace

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

Status save_added(SaveSession& session, quern_checkpoint_writer& writer, quern_checkpoint_result& out, Report& report) {
  const Vector<AddedTensor>& tensors = writer.tensors;
  const auto roles = roles_of(tensors);
  std::uint64_t total = 0;
  for (const AddedTensor& tensor : tensors) total += tensor.what.bytes();
  AlignedBuffer values, companion;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const AddedTensor& tensor = tensors[i];
    TensorSource source;
    source.name = tensor.name;
    source.role = roles[i].role;
    source.what = tensor.what;
    QUERN_ASSIGN_OR_RETURN(source.values, values_of(tensor, values, report));
    if (tensor.is_piece) {
      source.whole = &tensor.whole;
      source.box = tensor.box;
    }
    source.companion = roles[i].companion;
    if (source.companion) {
      const AddedTensor& other = tensors[*source.companion];
      QUERN_ASSIGN_OR_RETURN(source.companion_values, values_of(other, companion, report));
      source.companion_type = other.what.type;
    }
    QUERN_ASSIGN_OR_RETURN(const SavedTensor saved, session.add_tensor(source, report));
    out.raw_bytes += tensor.what.bytes();
    out.stored_bytes += saved.stored_bytes;
    out.tensors += 1;
    out.stored_already += saved.alias ? 1 : 0;
    out.differences += !saved.alias && saved.mode == Mode::delta ? 1 : 0;
    if (writer.progress != nullptr && writer.progress(writer.progress_user, out.raw_bytes, total) == 0)
      return Status(StatusCode::cancelled, "the caller cancelled");
  }
  return {};
}

}  // namespace quern::checkpoint::capi

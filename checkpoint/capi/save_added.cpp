// What was added as a set of tensors, and that set into the session.
#include "checkpoint/capi/save_added.h"

#include <algorithm>

#include <quern/device.h>

#include "checkpoint/convert/lossy_summary.h"
#include "checkpoint/convert/set_coding.h"
#include "checkpoint/store/box_runs.h"

namespace quern::checkpoint::capi {
namespace {

/// What was added, as a set. Values on a device are copied when they are asked for.
class AddedTensors final : public TensorSet {
 public:
  explicit AddedTensors(const Vector<AddedTensor>& tensors) : tensors_(tensors) {}
  std::size_t count() const override { return tensors_.size(); }
  SetTensor tensor(std::size_t index) const override {
    const AddedTensor& added = tensors_[index];
    return {added.name,     added.role,  {},        added.what,
            added.is_piece, added.whole, added.box, added.declared ? &*added.declared : nullptr};
  }
  Result<std::span<const std::uint8_t>> values(std::size_t index, AlignedBuffer& room, Report& report) override {
    const AddedTensor& added = tensors_[index];
    const auto bytes = static_cast<std::size_t>(added.what.bytes());
    if (!added.on_device) return std::span<const std::uint8_t>(added.data, bytes);
    Status status = room.resize(bytes);
    if (status.ok()) status = copy_from_device(added.device, added.data, room.data(), bytes);
    if (!status.ok()) return fail_at(report, join({"tensor '", added.name, "'"}), status);
    return std::span<const std::uint8_t>(room.span());
  }

 private:
  const Vector<AddedTensor>& tensors_;
};

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
  FileSaveOptions options;
  options.save = writer.options;
  options.preset = writer.preset;
  options.policy = writer.policy;
  options.replay = writer.replay;
  if (writer.progress != nullptr) {
    options.progress = [call = writer.progress, user = writer.progress_user](std::uint64_t done, std::uint64_t total) {
      return call(user, done, total) != 0;
    };
  }
  AddedTensors tensors(writer.tensors);
  SetCoding coding(tensors, options, writer.runner.get());
  QUERN_RETURN_IF_ERROR(coding.prepare(report));
  QUERN_RETURN_IF_ERROR(coding.run(session, report));
  const auto summaries = coding.take_summaries();
  add_fallback_notes(summaries, report);
  const LossySummary loss = summarize_loss(summaries);
  if (loss.lossy != 0) report.notes.push_back(loss_sentence(loss));
  if (String note = unnamed_weights_note(writer.preset, summaries); !note.empty())
    report.notes.push_back(std::move(note));
  out.lossy = loss.lossy;
  for (const TensorSummary& tensor : summaries) {
    out.raw_bytes += tensor.raw_bytes;
    out.stored_bytes += tensor.saved.stored_bytes;
    out.tensors += 1;
    out.stored_already += tensor.saved.alias ? 1 : 0;
  }
  return {};
}

}  // namespace quern::checkpoint::capi

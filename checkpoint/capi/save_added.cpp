// What was added as a set of tensors, and that set into the session.
#include "checkpoint/capi/save_added.h"

#include <quern/device.h>

#include "checkpoint/convert/save_set.h"

namespace quern::checkpoint::capi {
namespace {

/// What was added, as a set. Values on a device are copied when they are asked for.
class AddedTensors final : public TensorSet {
 public:
  explicit AddedTensors(const Vector<AddedTensor>& tensors) : tensors_(tensors) {}
  std::size_t count() const override { return tensors_.size(); }
  SetTensor tensor(std::size_t index) const override { return set_tensor(tensors_[index]); }
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
  QUERN_ASSIGN_OR_RETURN(const SetCounts counts, save_set(session, tensors, options, writer.runner.get(), report));
  out.raw_bytes = counts.raw_bytes;
  out.stored_bytes = counts.stored_bytes;
  out.tensors = counts.tensors;
  out.stored_already = counts.stored_already;
  out.lossy = counts.lossy;
  return {};
}

}  // namespace quern::checkpoint::capi

// Reading through the C interface: whole tensors, whatever pieces they were saved in, and boxes of them.
#include <algorithm>

#include <quern/device.h>

#include "checkpoint/capi/call.h"
#include "libcompress/capi/versioned.h"

namespace quern::checkpoint::capi {
namespace {

/// Puts pieces together to tensors, in the order of first pieces. Fails on tensors that lack some.
Status group_pieces(quern_checkpoint_reader& reader, Report& report) {
  const auto& stored = reader.manifest.tensors;
  auto& by_name = reader.by_name;
  for (std::uint32_t i = 0; i < stored.size(); ++i) by_name.emplace_back(stored[i].name, i);
  std::sort(by_name.begin(), by_name.end());
  Vector<WholeTensor> found;
  for (std::size_t begin = 0, end = 0; begin < by_name.size(); begin = end) {
    const ManifestTensor& first = stored[by_name[begin].second];
    WholeTensor tensor;
    tensor.shape = first.is_piece ? first.whole : first.what.shape;
    std::uint64_t elements = 0;
    for (; end < by_name.size() && by_name[end].first == first.name; ++end) {
      const ManifestTensor& piece = stored[by_name[end].second];
      const bool fits = piece.is_piece == first.is_piece && (first.is_piece || end == begin) &&
                        piece.what.type == first.what.type && (!piece.is_piece || piece.whole == first.whole);
      if (!fits)
        return fail(report, StatusCode::corrupt,
                    join({"tensor '", first.name, "': its pieces are of different tensors"}));
      tensor.pieces.push_back(by_name[end].second);
      elements += piece.what.elems();
    }
    if (elements != tensor.shape.elems())
      return fail(report, StatusCode::corrupt,
                  join({"tensor '", first.name, "': the checkpoint does not have all of its pieces"}));
    found.push_back(std::move(tensor));
  }
  std::sort(found.begin(), found.end(),
            [](const WholeTensor& a, const WholeTensor& b) { return a.pieces.front() < b.pieces.front(); });
  by_name.clear();
  for (std::uint32_t i = 0; i < found.size(); ++i) by_name.emplace_back(stored[found[i].pieces.front()].name, i);
  std::sort(by_name.begin(), by_name.end());
  reader.tensors = std::move(found);
  return {};
}

Status open_reader(quern_checkpoint_store& store, std::uint64_t step, quern_checkpoint_reader** out, Report& report) {
  std::unique_ptr<quern_checkpoint_reader> reader(new quern_checkpoint_reader(store));
  QUERN_ASSIGN_OR_RETURN(reader->manifest, step == QUERN_CHECKPOINT_NEWEST ? store.store->newest(report)
                                                                           : store.store->at_step(step, report));
  QUERN_RETURN_IF_ERROR(group_pieces(*reader, report));
  *out = reader.release();
  return {};
}

Status no_such(Report& report, const char* what, std::uint64_t index, std::size_t count) {
  return fail(report, StatusCode::invalid_argument,
              join({"there is no ", what, " ", decimal(index), " of ", decimal(count)}));
}

quern_checkpoint_tensor_info describe(const quern_checkpoint_reader& reader, const WholeTensor& tensor) {
  quern_checkpoint_tensor_info out = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
  const ManifestTensor& first = reader.manifest.tensors[tensor.pieces.front()];
  out.dtype = static_cast<quern_dtype>(first.what.type);
  out.rank = static_cast<std::uint32_t>(tensor.shape.rank());
  out.pieces = static_cast<std::uint32_t>(tensor.pieces.size());
  std::copy(tensor.shape.extents().begin(), tensor.shape.extents().end(), out.extents);
  out.name = first.name.c_str();
  out.role = first.role.c_str();
  out.mode = first.alias ? "alias" : codec::tensor::mode_name(first.mode);
  out.lossless = 1;
  if (first.declared) {
    out.declared_dtype = first.declared->dtype.c_str();
    out.declared_rank = static_cast<std::uint32_t>(first.declared->shape.size());
    out.declared_extents = first.declared->shape.data();
  }
  for (const std::uint32_t index : tensor.pieces) {
    const ManifestTensor& piece = reader.manifest.tensors[index];
    out.raw_bytes += piece.what.bytes();
    if (piece.alias) {
      out.stored_already += 1;
      continue;
    }
    out.stored_bytes += piece.stored_bytes;
    out.depth = std::max<std::uint64_t>(out.depth, piece.depth);
    out.bound = std::max(out.bound, piece.bound);
    if (piece.decoded) out.lossless = 0;
  }
  return out;
}

/// The box asked for, and the shape of what comes of it.
Result<Box> read_box(const WholeTensor& tensor, const std::uint64_t* begin, const std::uint64_t* end) {
  Box box = Box::whole(tensor.shape);
  if (begin == nullptr && end == nullptr) return box;
  if (begin == nullptr || end == nullptr)
    return Status(StatusCode::invalid_argument, "a box has a begin and an end: give both, or neither for all");
  for (std::size_t a = 0; a < box.rank; ++a) {
    if (begin[a] > end[a] || end[a] > tensor.shape[a])
      return Status(StatusCode::invalid_argument, "the box leaves the tensor on axis {0}",
                    static_cast<std::int64_t>(a));
    box.begin[a] = begin[a];
    box.end[a] = end[a];
  }
  return box;
}

std::uint64_t elements(const Box& box) {
  std::uint64_t n = 1;
  for (std::size_t a = 0; a < box.rank; ++a) n *= box.end[a] - box.begin[a];
  return n;
}

/// Pieces that lie in the box are read whole, and checked whole; of the others, the chunks that the box meets.
Status read_pieces(quern_checkpoint_reader& reader, const WholeTensor& tensor, const Box& box,
                   std::span<std::uint8_t> out, Report& report) {
  const CheckpointName& name = reader.manifest.name;
  for (const std::uint32_t index : tensor.pieces) {
    const ManifestTensor& piece = reader.manifest.tensors[index];
    const std::size_t element = codec::tensor::element_bytes(piece.what.type);
    const Box there = piece.is_piece ? piece.box : Box::whole(tensor.shape);
    const Box common = intersection(there, box);
    if (elements(common) == 0) continue;
    if (elements(common) != elements(there)) {
      QUERN_RETURN_IF_ERROR(reader.restorer.part(name, index, common, there, box, out, report));
      continue;
    }
    const BoxRuns runs(element, common, box);
    if (runs.count() == 1) {
      QUERN_RETURN_IF_ERROR(reader.restorer.values(
          name, index, out.subspan(static_cast<std::size_t>(runs.begin(0)), static_cast<std::size_t>(runs.bytes())),
          report));
      continue;
    }
    std::uint64_t first = 0;
    QUERN_RETURN_IF_ERROR(reader.restorer.pieces(
        name, index,
        [&](std::span<const std::uint8_t> values) -> Status {
          copy_runs(element, common, there, first, values, box, out);
          first += values.size();
          return {};
        },
        report));
  }
  return {};
}

Status read_tensor(quern_checkpoint_reader& reader, std::uint64_t index, const std::uint64_t* begin,
                   const std::uint64_t* end, const quern_checkpoint_target& target, Report& report) {
  const std::lock_guard lock(reader.mutex);
  if (index >= reader.tensors.size()) return no_such(report, "tensor", index, reader.tensors.size());
  const WholeTensor& tensor = reader.tensors[static_cast<std::size_t>(index)];
  const ManifestTensor& first = reader.manifest.tensors[tensor.pieces.front()];
  const String where = join({"tensor '", first.name, "'"});
  const auto box = read_box(tensor, begin, end);
  if (!box.ok()) return fail_at(report, where, box.status());
  const std::uint64_t bytes = elements(*box) * codec::tensor::element_bytes(first.what.type);
  if (target.memory != QUERN_MEMORY_HOST && target.memory != QUERN_MEMORY_CUDA)
    return fail(report, StatusCode::invalid_argument, join({where, ": the target is in no memory space"}));
  if (target.bytes != bytes)
    return fail(report, StatusCode::invalid_argument,
                join({where, ": the target has ", decimal(target.bytes), " bytes, the values take ", decimal(bytes)}));
  if (target.data == nullptr && bytes != 0)
    return fail(report, StatusCode::invalid_argument, join({where, ": the target is NULL"}));
  if (target.memory == QUERN_MEMORY_HOST)
    return read_pieces(reader, tensor, *box, {static_cast<std::uint8_t*>(target.data), bytes}, report);
  AlignedBuffer room;
  Status status = room.resize(bytes);
  if (status.ok()) {
    QUERN_RETURN_IF_ERROR(read_pieces(reader, tensor, *box, room.span(), report));
    status = copy_to_device(target.device, room.data(), target.data, bytes);
  }
  return status.ok() ? status : fail_at(report, where, status);
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::MemoryScope;
using quern::Status;
using quern::StatusCode;
using quern::Vector;
using quern::checkpoint::Report;

quern_status quern_checkpoint_open(quern_checkpoint_store* store, uint64_t step, quern_checkpoint_reader** reader) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_open: the place for the reader is NULL");
  *reader = nullptr;
  if (store == nullptr) return ck::refuse("quern_checkpoint_open: the store is NULL");
  return ck::call(*store, [&](Report& report) { return ck::open_reader(*store, step, reader, report); });
}

void quern_checkpoint_reader_destroy(quern_checkpoint_reader* reader) {
  if (reader == nullptr) return;
  const MemoryScope scope(&reader->store.memory);
  delete reader;
}

quern_status quern_checkpoint_inspect(quern_checkpoint_reader* reader, quern_checkpoint_info* info) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_inspect: the reader is NULL");
  if (const Status checked = quern::capi::check_struct(info); !checked.ok()) return ck::refuse(checked);
  const quern::checkpoint::Manifest& manifest = reader->manifest;
  quern_checkpoint_info out = QUERN_CHECKPOINT_INFO_INIT;
  out.parity_data = manifest.parity.data;
  out.parity_files = manifest.parity.parity;
  out.step = manifest.name.step;
  out.base = manifest.base ? manifest.base->step : QUERN_CHECKPOINT_NO_BASE;
  out.tensors = reader->tensors.size();
  out.blobs = manifest.blobs.size();
  out.raw_bytes = manifest.raw_bytes();
  out.stored_bytes = manifest.stored_bytes();
  out.id = manifest.name.id.c_str();
  out.library = manifest.library.c_str();
  quern::capi::write_struct(out, info);
  return QUERN_OK;
}

quern_status quern_checkpoint_tag_at(quern_checkpoint_reader* reader, uint64_t index, const char** name,
                                     const char** text, uint64_t* count) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_tag_at: the reader is NULL");
  const auto& tags = reader->manifest.tags;
  const bool there = index < tags.size();
  if (name != nullptr) *name = there ? tags[index].name.c_str() : nullptr;
  if (text != nullptr) *text = there ? tags[index].text.c_str() : nullptr;
  if (count != nullptr) *count = tags.size();
  return QUERN_OK;
}

quern_status quern_checkpoint_tensor_at(quern_checkpoint_reader* reader, uint64_t index,
                                        quern_checkpoint_tensor_info* info) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_tensor_at: the reader is NULL");
  if (const Status checked = quern::capi::check_struct(info); !checked.ok()) return ck::refuse(checked);
  return ck::call(reader->store, [&](Report& report) -> Status {
    if (index >= reader->tensors.size()) return ck::no_such(report, "tensor", index, reader->tensors.size());
    quern::capi::write_struct(ck::describe(*reader, reader->tensors[static_cast<std::size_t>(index)]), info);
    return {};
  });
}

quern_status quern_checkpoint_find(quern_checkpoint_reader* reader, const char* name, uint64_t* index) {
  if (reader == nullptr || name == nullptr || index == nullptr)
    return ck::refuse("quern_checkpoint_find: NULL argument");
  return ck::call(reader->store, [&](Report& report) -> Status {
    const auto& names = reader->by_name;
    const auto found = std::lower_bound(names.begin(), names.end(), std::string_view(name),
                                        [](const auto& one, std::string_view wanted) { return one.first < wanted; });
    if (found == names.end() || found->first != name)
      return quern::checkpoint::fail(
          report, StatusCode::invalid_argument,
          quern::checkpoint::join(
              {"step ", quern::checkpoint::decimal(reader->manifest.name.step), " has no tensor '", name, "'"}));
    *index = found->second;
    return {};
  });
}

quern_status quern_checkpoint_read(quern_checkpoint_reader* reader, uint64_t index, const uint64_t* begin,
                                   const uint64_t* end, const quern_checkpoint_target* given) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_read: the reader is NULL");
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  if (const Status read = quern::capi::read_struct(given, target); !read.ok()) return ck::refuse(read);
  return ck::call(reader->store,
                  [&](Report& report) { return ck::read_tensor(*reader, index, begin, end, target, report); });
}

quern_status quern_checkpoint_blob_at(quern_checkpoint_reader* reader, uint64_t index, const char** name,
                                      uint64_t* size) {
  if (reader == nullptr) return ck::refuse("quern_checkpoint_blob_at: the reader is NULL");
  return ck::call(reader->store, [&](Report& report) -> Status {
    const auto& blobs = reader->manifest.blobs;
    if (index >= blobs.size()) return ck::no_such(report, "blob", index, blobs.size());
    const auto& blob = blobs[static_cast<std::size_t>(index)];
    if (name != nullptr) *name = blob.name.c_str();
    if (size != nullptr) *size = blob.bytes;
    return {};
  });
}

quern_status quern_checkpoint_read_blob(quern_checkpoint_reader* reader, uint64_t index, void* bytes, uint64_t size) {
  if (reader == nullptr || (bytes == nullptr && size != 0))
    return ck::refuse("quern_checkpoint_read_blob: NULL argument");
  return ck::call(reader->store, [&](Report& report) -> Status {
    const std::lock_guard lock(reader->mutex);
    const auto& blobs = reader->manifest.blobs;
    if (index >= blobs.size()) return ck::no_such(report, "blob", index, blobs.size());
    if (blobs[static_cast<std::size_t>(index)].bytes != size)
      return Status(StatusCode::invalid_argument, "the blob has {0} bytes, not {1}",
                    static_cast<std::int64_t>(blobs[static_cast<std::size_t>(index)].bytes),
                    static_cast<std::int64_t>(size));
    Vector<std::uint8_t> values;
    QUERN_RETURN_IF_ERROR(
        reader->restorer.blob(reader->manifest.name, static_cast<std::size_t>(index), values, report));
    std::copy(values.begin(), values.end(), static_cast<std::uint8_t*>(bytes));
    return {};
  });
}

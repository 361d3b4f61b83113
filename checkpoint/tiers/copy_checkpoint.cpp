#include "checkpoint/tiers/copy_checkpoint.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "checkpoint/store/part_reader.h"
#include "checkpoint/store/publish.h"
#include "checkpoint/store/stored_manifests.h"

namespace quern::checkpoint {
namespace {

constexpr unsigned kUsualDepth = 4;

/// What the source cannot give is a damaged checkpoint, not a folder that cannot be written.
Status of_source(const Status& status) {
  if (status.code() != StatusCode::io_error) return status;
  return Status(StatusCode::corrupt, "the checkpoint cannot be read");
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A new file that is written through a queue, in blocks.
class QueuedFile {
 public:
  QueuedFile(FileSystem& files, String path, const CopyControl& control)
      : files_(files), path_(std::move(path)), control_(control) {}

  Status open(Report& report) {
    depth_ = control_.rates != nullptr ? control_.rates->next_depth() : kUsualDepth;
    begin_ = now();
    auto queue = files_.create_queue(path_, depth_);
    if (!queue.ok()) return fail_file(report, path_, "create it", queue.status());
    queue_ = std::move(queue).value();
    return {};
  }
  Status append(std::span<const std::uint8_t> bytes, Report& report) {
    while (!bytes.empty()) {
      if (filled_ == block_.size()) {
        QUERN_RETURN_IF_ERROR(hand_over(report));
        const auto block = queue_->block();
        if (!block.ok()) return fail_file(report, path_, "write it", block.status());
        block_ = *block;
        filled_ = 0;
      }
      const std::size_t count = std::min(bytes.size(), block_.size() - filled_);
      std::memcpy(block_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
    }
    return {};
  }
  Status finish(Report& report) {
    QUERN_RETURN_IF_ERROR(hand_over(report));
    if (const Status status = queue_->finish(); !status.ok()) return fail_file(report, path_, "write it", status);
    if (control_.rates != nullptr) control_.rates->add(depth_, bytes_, now() - begin_ - waited_);
    return {};
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status hand_over(Report& report) {
    if (filled_ == 0) return {};
    const double begin = now();
    if (!control_.turn(filled_)) return Status(StatusCode::cancelled, "the copy was stopped");
    waited_ += now() - begin;
    const Status status = queue_->write(filled_);
    bytes_ += filled_;
    block_ = {};
    filled_ = 0;
    return status.ok() ? status : fail_file(report, path_, "write it", status);
  }

  FileSystem& files_;
  const String path_;
  const CopyControl& control_;
  unsigned depth_ = kUsualDepth;
  std::unique_ptr<WriteQueue> queue_;
  std::span<std::uint8_t> block_;
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
  double begin_ = 0, waited_ = 0;
};

class Copy {
 public:
  Copy(const Store& from, const Store& to, const CopyControl& control, Report& report)
      : from_(from), to_(to), control_(control), report_(report), source_(from) {}

  Status run(const CheckpointName& name, Copied& out) {
    QUERN_ASSIGN_OR_RETURN(const Manifest* const manifest, find(name));
    const auto retired = from_.list_retired(report_);
    if (!retired.ok()) return of_source(retired.status());
    const auto is_retired = [&](const CheckpointName& one) {
      return std::find(retired->begin(), retired->end(), one) != retired->end();
    };
    Needs needs(source_);
    QUERN_RETURN_IF_ERROR(of_source(needs.add(*manifest, report_)));
    // What others need comes before them. A checkpoint that is not retired brings all that it needs itself.
    Vector<CheckpointName> order;
    for (const Needed& needed : needs.checkpoints()) order.push_back(needed.name);
    std::sort(order.begin(), order.end(), [](const CheckpointName& a, const CheckpointName& b) {
      return a.generation != b.generation ? a.generation < b.generation : a.step < b.step;
    });
    for (const CheckpointName& one : order) {
      if (one == name) continue;
      QUERN_RETURN_IF_ERROR(is_retired(one) ? copy_one(one, true, out) : run(one, out));
    }
    return copy_one(name, is_retired(name), out);
  }

 private:
  Result<const Manifest*> find(const CheckpointName& name) {
    const auto found = source_.find(name, report_);
    return found.ok() ? found : of_source(found.status());
  }

  /// Whether the checkpoint is there whole; `damaged`: it is there, and not whole.
  Result<bool> is_there(const Manifest& manifest, bool& damaged) {
    QUERN_ASSIGN_OR_RETURN(const auto names, to_.list_all(report_));
    for (const CheckpointName& one : names) {
      const bool same_place = one.generation == manifest.name.generation && one.generation != 0;
      if (!(one == manifest.name) && !same_place) continue;
      Report own;
      const auto there = to_.read_checked(one, own);
      if (one == manifest.name) {
        if (there.ok()) return true;
        damaged = true;
        continue;
      }
      // What was compacted keeps its place and its values, under another id.
      if (there.ok() && one.step == manifest.name.step && same_values(*there, manifest)) return true;
      return fail(report_, StatusCode::invalid_argument,
                  join({to_.root(), ": step ", decimal(one.step), " (", one.id,
                        ") has the place in the order that step ", decimal(manifest.name.step), " of ", from_.root(),
                        " has; the two folders hold different runs: give this one another folder"}));
    }
    return false;
  }

  Status copy_one(const CheckpointName& name, bool retired, Copied& out) {
    FileSystem& files = to_.files();
    QUERN_ASSIGN_OR_RETURN(const Manifest* const manifest, find(name));
    bool damaged = false;
    QUERN_ASSIGN_OR_RETURN(bool there, is_there(*manifest, damaged));
    if (there) return {};
    const auto lock = files.lock(to_.tmp_lock(name.id), LockKind::exclusive, false);
    if (!lock.ok() && is_busy(lock.status())) {
      report_.problem =
          join({to_.root(), ": another process is copying step ", decimal(name.step), "; try again later"});
      return lock.status();
    }
    if (!lock.ok()) return fail_file(report_, to_.tmp_lock(name.id), "lock it", lock.status());
    const Status status = copy_locked(*manifest, retired, out);
    if (!status.ok()) (void)remove_unfinished(to_, name.id);
    (void)files.remove(to_.tmp_lock(name.id));
    return status;
  }

  Status copy_locked(const Manifest& manifest, bool retired, Copied& out) {
    FileSystem& files = to_.files();
    const CheckpointName& name = manifest.name;
    const String folder = to_.tmp_folder(name.id);
    QUERN_RETURN_IF_ERROR(check_placement(manifest));
    // What an earlier attempt left.
    Status status = remove_unfinished(to_, name.id);
    if (!status.ok()) return fail_file(report_, folder, "remove it", status);
    status = files.make_folder(folder);
    if (!status.ok()) return fail_file(report_, folder, "make the folder", status);
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) QUERN_RETURN_IF_ERROR(copy_part(manifest, i, out));
    // The manifest's very bytes: a hash of them stands in it.
    String path = from_.manifest_path(name);
    auto bytes = read_file(from_.files(), path, kMaxManifestFile);
    if (!bytes.ok() && is_missing(bytes.status()))
      bytes = read_file(from_.files(), path = from_.retired_path(name), kMaxManifestFile);
    if (!bytes.ok()) return of_source(fail_file(report_, path, "read it", bytes.status()));
    const auto parsed = read_manifest(*bytes, report_);
    if (!parsed.ok()) return fail_at(report_, path, parsed.status());
    for (std::uint32_t i = 0; i < manifest.parity.files.size(); ++i)
      QUERN_RETURN_IF_ERROR(copy_file(manifest, numbered_name("parity", i), manifest.parity.files[i].bytes, out));
    if (manifest.parity.data != 0) {
      QueuedFile copy(files, join({folder, "/manifest"}), control_);
      QUERN_RETURN_IF_ERROR(copy.open(report_));
      QUERN_RETURN_IF_ERROR(copy.append(*bytes, report_));
      QUERN_RETURN_IF_ERROR(copy.finish(report_));
    }
    const auto order = files.lock(to_.order_lock_path(), LockKind::exclusive, true);
    if (!order.ok()) return fail_file(report_, to_.order_lock_path(), "lock it", order.status());
    bool damaged = false;
    QUERN_ASSIGN_OR_RETURN(const bool there, is_there(manifest, damaged));
    if (there) return {};
    QUERN_RETURN_IF_ERROR(clear_place(name));
    QUERN_RETURN_IF_ERROR(put_in_place(to_, name, *bytes, retired, report_));
    ++out.checkpoints;
    out.bytes += bytes->size();
    return {};
  }

  /// Nodes hold what they promise only with parity of their number.
  Status check_placement(const Manifest& manifest) {
    if (to_.placed() == nullptr) return {};
    const auto placement = to_.placed()->placement();
    if (manifest.parity.data == placement->data && manifest.parity.parity == placement->parity)
      return to_.placed()->check_nodes(report_);
    return fail(report_, StatusCode::unsupported,
                join({to_.root(), ": is spread over nodes as ", decimal(placement->data), "+",
                      decimal(placement->parity), ", and step ", decimal(manifest.name.step),
                      " has other parity; save it with that parity, or copy it to another folder"}));
  }

  /// A damaged copy, or the data of one that died before its manifest was in place: the copy in tmp/ is whole.
  Status clear_place(const CheckpointName& name) {
    FileSystem& files = to_.files();
    bool removed = false;
    for (const String& path : {to_.manifest_path(name), to_.retired_path(name)}) {
      const Status status = files.remove(path);
      if (!status.ok() && !is_missing(status)) return fail_file(report_, path, "remove it", status);
      removed = removed || status.ok();
    }
    if (removed) {
      const Status synced = files.sync_folder(to_.manifests_root());
      if (!synced.ok()) return fail_file(report_, to_.manifests_root(), "sync it", synced);
      report_.notes.push_back(join({to_.root(), ": step ", decimal(name.step), " was damaged there and is replaced"}));
    }
    const Status status = remove_tree(files, to_.data_folder(name.id));
    return status.ok() ? status : fail_file(report_, to_.data_folder(name.id), "remove it", status);
  }

  /// Written anew of records whose checksums hold, so that the copy is what was saved or does not come to be.
  Status copy_part(const Manifest& manifest, std::uint32_t number, Copied& out) {
    const String file_name = numbered_name("part", number);
    const PartIdentity identity = part_identity(manifest.name, number);
    const PartInfo& info = manifest.parts[number];
    const auto part = PartReader::open(from_.files(), join({from_.data_folder(manifest.name.id), "/", file_name}),
                                       identity, info, report_);
    if (!part.ok()) return of_source(part.status());
    QueuedFile copy(to_.files(), join({to_.tmp_folder(manifest.name.id), "/", file_name}), control_);
    QUERN_RETURN_IF_ERROR(copy.open(report_));
    Vector<std::uint8_t> header(kPartHeaderBytes);
    write_part_header(identity, std::span(header).first<kPartHeaderBytes>());
    QUERN_RETURN_IF_ERROR(copy.append(header, report_));
    std::array<std::uint8_t, kRecordHeaderBytes> head{};
    static constexpr std::array<std::uint8_t, kRecordAlignment> kZeros{};
    for (std::size_t i = 0; i < part->records().size(); ++i) {
      std::span<const std::uint8_t> body;
      QUERN_RETURN_IF_ERROR(of_source(part->read(i, room_, body, report_)));
      const Record& record = part->records()[i];
      write_record_header(record, body, head);
      const std::uint64_t padding = record.end() - record.offset - head.size() - body.size();
      QUERN_RETURN_IF_ERROR(copy.append(head, report_));
      QUERN_RETURN_IF_ERROR(copy.append(body, report_));
      QUERN_RETURN_IF_ERROR(copy.append(std::span(kZeros).first(static_cast<std::size_t>(padding)), report_));
    }
    const Vector<std::uint8_t> index = make_index(part->records());
    std::array<std::uint8_t, kPartTrailerBytes> trailer{};
    write_part_trailer({index_checksum(index), index.size()}, trailer);
    QUERN_RETURN_IF_ERROR(copy.append(index, report_));
    QUERN_RETURN_IF_ERROR(copy.append(trailer, report_));
    QUERN_RETURN_IF_ERROR(copy.finish(report_));
    if (copy.bytes() != info.bytes || index_checksum(index) != info.index_checksum)
      return fail(report_, StatusCode::internal, join({part->path(), ": its copy differs from it"}));
    out.bytes += copy.bytes();
    return {};
  }

  Status copy_file(const Manifest& manifest, const String& file_name, std::uint64_t bytes, Copied& out) {
    const String path = join({from_.data_folder(manifest.name.id), "/", file_name});
    auto file = from_.files().open(path);
    if (!file.ok()) return of_source(fail_file(report_, path, "open it", file.status()));
    QueuedFile copy(to_.files(), join({to_.tmp_folder(manifest.name.id), "/", file_name}), control_);
    QUERN_RETURN_IF_ERROR(copy.open(report_));
    for (std::uint64_t at = 0; at < bytes;) {
      QUERN_RETURN_IF_ERROR(room_.resize(std::min<std::uint64_t>(storage::kQueueBlock, bytes - at)));
      if (const Status status = read_fully(**file, at, room_.span()); !status.ok())
        return of_source(fail_file(report_, path, "read it", status));
      QUERN_RETURN_IF_ERROR(copy.append(room_.span(), report_));
      at += room_.size();
    }
    QUERN_RETURN_IF_ERROR(copy.finish(report_));
    out.bytes += copy.bytes();
    return {};
  }

  const Store& from_;
  const Store& to_;
  const CopyControl& control_;
  Report& report_;
  StoredManifests source_;
  AlignedBuffer room_;
};

}  // namespace

bool same_values(const Manifest& a, const Manifest& b) {
  const auto tensors = [](const ManifestTensor& x, const ManifestTensor& y) {
    return x.name == y.name && x.what.type == y.what.type && x.what.shape == y.what.shape &&
           x.restored() == y.restored() && x.is_piece == y.is_piece &&
           (!x.is_piece || (x.whole == y.whole && x.box.begin == y.box.begin));
  };
  const auto blobs = [](const ManifestBlob& x, const ManifestBlob& y) {
    return x.name == y.name && x.bytes == y.bytes && x.content == y.content;
  };
  return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), tensors) &&
         std::equal(a.blobs.begin(), a.blobs.end(), b.blobs.begin(), b.blobs.end(), blobs);
}

Result<Copied> copy_checkpoint(const Store& from, const Store& to, const CheckpointName& name,
                               const CopyControl& control, Report& report) {
  QUERN_RETURN_IF_ERROR(to.make_folders(report));
  QUERN_RETURN_IF_ERROR(from.check_apart(to, report));
  if (to.placed() == nullptr) {
    QUERN_ASSIGN_OR_RETURN(const auto placement, read_placement(to.files(), to.root(), report));
    if (placement)
      return fail(report, StatusCode::unsupported,
                  join({to.root(),
                        ": is spread over nodes, which an engine's tier cannot be; copy checkpoints there with "
                        "quern checkpoint tiers drain"}));
  }
  // Collections there wait for nobody, but not while somebody writes.
  const auto lock = to.files().lock(to.lock_path(), LockKind::shared, true);
  if (!lock.ok()) return fail_file(report, to.lock_path(), "lock it", lock.status());
  QUERN_RETURN_IF_ERROR(to.check_writable(report));
  Copied out;
  Copy copy(from, to, control, report);
  QUERN_RETURN_IF_ERROR(copy.run(name, out));
  return out;
}

}  // namespace quern::checkpoint

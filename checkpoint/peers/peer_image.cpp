#include "checkpoint/peers/peer_image.h"

#include <algorithm>
#include <cstring>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kMagic = UINT64_C(0x0145474d49505151);
constexpr std::size_t kHeadBytes = 16;  ///< magic, bytes of the manifest
constexpr std::size_t kHashed = std::size_t{1} << 20;
constexpr std::uint64_t kMaxImageBytes = UINT64_C(1) << 56;

void append(Vector<std::uint8_t>& hashes, std::span<const std::uint8_t> block) {
  const ContentHash hash = content_hash(block);
  Writer out(hashes);
  out.u64(hash.high);
  out.u64(hash.low);
}

/// Parts, then parity files, with their sizes; the sum of those is checked.
Result<Vector<std::pair<String, std::uint64_t>>> files_of(const Store& store, const Manifest& manifest) {
  Vector<std::pair<String, std::uint64_t>> out;
  std::uint64_t sum = 0;
  const auto add = [&](std::string_view kind, const Vector<PartInfo>& infos) {
    for (std::uint32_t i = 0; i < infos.size(); ++i) {
      sum = std::min(kMaxImageBytes, sum) + std::min(kMaxImageBytes, infos[i].bytes);
      out.emplace_back(join({store.data_folder(manifest.name.id), "/", numbered_name(kind, i)}), infos[i].bytes);
    }
  };
  add("part", manifest.parts);
  add("parity", manifest.parity.files);
  if (sum >= kMaxImageBytes) return Status(StatusCode::corrupt, "the checkpoint is too large");
  return out;
}

}  // namespace

Result<PeerImage> PeerImage::open(const Store& store, const CheckpointName& name, Report& report) {
  PeerImage out;
  out.files_ = &store.files();
  auto bytes = read_file(store.files(), store.manifest_path(name), kMaxManifestFile);
  if (!bytes.ok() && is_missing(bytes.status()))
    bytes = read_file(store.files(), store.retired_path(name), kMaxManifestFile);
  if (!bytes.ok()) return fail_file(report, store.manifest_path(name), "read it", bytes.status());
  QUERN_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(*bytes, report));
  Writer head(out.head_);
  head.u64(kMagic);
  head.u64(bytes->size());
  head.bytes(*bytes);
  out.pieces_.push_back({{}, 0, out.head_.size()});
  out.bytes_ = out.head_.size();
  QUERN_ASSIGN_OR_RETURN(auto files, files_of(store, manifest));
  for (auto& [path, size] : files) {
    out.pieces_.push_back({std::move(path), out.bytes_, size});
    out.bytes_ += size;
  }
  return out;
}

Status PeerImage::read(std::uint64_t offset, std::span<std::uint8_t> out, Report& report) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                [](std::uint64_t at, const Piece& one) { return at < one.begin; });
  while (!out.empty()) {
    if (offset >= bytes_) {
      std::fill(out.begin(), out.end(), std::uint8_t{0});
      return {};
    }
    while (piece != pieces_.end() && piece->begin <= offset) ++piece;
    const Piece& one = *(piece - 1);
    const std::uint64_t inside = offset - one.begin;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), one.bytes - inside));
    if (one.path.empty()) {
      std::memcpy(out.data(), head_.data() + inside, count);
    } else {
      const auto file = files_->open(one.path);
      if (!file.ok()) return fail_file(report, one.path, "open it", file.status());
      const Status status = read_fully(**file, inside, out.first(count));
      if (!status.ok()) return fail_file(report, one.path, "read it", status);
    }
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

Result<ContentHash> PeerImage::hash(Report& report) const {
  Vector<std::uint8_t> hashes, block(kHashed);
  for (std::uint64_t at = 0; at < bytes_; at += kHashed) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kHashed, bytes_ - at));
    QUERN_RETURN_IF_ERROR(read(at, std::span(block).first(count), report));
    append(hashes, std::span(block).first(count));
  }
  return content_hash(hashes);
}

void PeerImageWriter::add_to_hash(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kHashed - block_.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (block_.size() < kHashed) return;
    append(hashes_, block_);
    block_.clear();
  }
}

Status PeerImageWriter::begin_files(Report& report) {
  Reader in(head_);
  const auto magic = in.u64(), size = in.u64();
  if (!size.ok() || *magic != kMagic || *size > kMaxManifestFile)
    return fail(report, StatusCode::corrupt, "what the peers hold is no image of a checkpoint");
  if (in.remaining() < *size) return {};
  QUERN_ASSIGN_OR_RETURN(manifest_, read_manifest(*in.bytes(*size), report));
  begun_ = true;
  QUERN_ASSIGN_OR_RETURN(rest_, files_of(store_, manifest_));
  QUERN_RETURN_IF_ERROR(store_.make_folders(report));
  const String folder = store_.data_folder(manifest_.name.id);
  (void)remove_tree(store_.files(), folder);
  return make_one_folder(store_.files(), folder, report);
}

Status PeerImageWriter::write(std::span<const std::uint8_t> bytes, Report& report) {
  add_to_hash(bytes);
  if (!begun_) {
    // The head is complete within a limit; what of these bytes lies behind it belongs to files.
    head_.insert(head_.end(), bytes.begin(), bytes.end());
    if (head_.size() < kHeadBytes) return {};
    QUERN_RETURN_IF_ERROR(begin_files(report));
    if (!begun_) return {};
    Reader in(std::span<const std::uint8_t>(head_).subspan(8));
    const std::size_t end = kHeadBytes + static_cast<std::size_t>(*in.u64());
    bytes = bytes.last(head_.size() - end);
    head_.resize(end);
  }
  while (!bytes.empty()) {
    while (at_ < rest_.size() && offset_ == rest_[at_].second && file_ != nullptr) {
      file_.reset();
      ++at_;
    }
    if (at_ == rest_.size()) return fail(report, StatusCode::corrupt, "an image of the peers has bytes behind its end");
    const auto& [path, size] = rest_[at_];
    if (file_ == nullptr) {
      auto file = store_.files().create(path);
      if (!file.ok()) return fail_file(report, path, "create it", file.status());
      file_ = std::move(file).value();
      offset_ = 0;
    }
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), size - offset_));
    const Status status = write_fully(*file_, offset_, bytes.first(count));
    if (!status.ok()) return fail_file(report, path, "write it", status);
    offset_ += count;
    bytes = bytes.subspan(count);
  }
  return {};
}

Result<CheckpointName> PeerImageWriter::finish(const ContentHash& hash, Report& report) {
  if (!block_.empty()) append(hashes_, block_);
  const bool complete =
      begun_ && (rest_.empty() || (at_ + 1 >= rest_.size() && file_ != nullptr && offset_ == rest_.back().second));
  file_.reset();
  if (!complete || content_hash(hashes_) != hash)
    return fail(report, StatusCode::checksum_mismatch, "what the peers hold of it does not have its hash");
  const CheckpointName& name = manifest_.name;
  const auto manifest = std::span<const std::uint8_t>(head_).subspan(kHeadBytes);
  if (manifest_.parity.data != 0)
    QUERN_RETURN_IF_ERROR(publish_file(store_.files(), store_.tmp_folder(name.id),
                                       join({store_.data_folder(name.id), "/manifest"}), store_.data_folder(name.id),
                                       manifest, report));
  QUERN_RETURN_IF_ERROR(publish_file(store_.files(), store_.tmp_folder(name.id), store_.manifest_path(name),
                                     store_.manifests_root(), manifest, report));
  return name;
}

}  // namespace quern::checkpoint

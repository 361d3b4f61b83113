// The disk that loses, tears and refuses.
#include "tests/faults/simulated_disk.h"

#include <algorithm>
#include <cerrno>

#include "storage/content_hash.h"

namespace quern::testing {

using storage::File;
using storage::FileLock;

namespace {

Status error(int number) { return Status(StatusCode::io_error, "simulated error {0}", number); }

class SimulatedLock final : public FileLock {};

}  // namespace

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk& disk, std::size_t node) : disk_(disk), node_(node) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    const auto& bytes = disk_.nodes_[node_].bytes;
    if (offset >= bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
    return count;
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    std::size_t done = 0;
    QUERN_RETURN_IF_ERROR(disk_.write(node_, offset, bytes, done));
    return done;
  }
  Result<std::uint64_t> size() override { return std::uint64_t{disk_.nodes_[node_].bytes.size()}; }
  Status cut(std::uint64_t bytes) override { return disk_.cut(node_, bytes); }
  Status sync() override { return disk_.sync(node_); }

 private:
  SimulatedDisk& disk_;
  std::size_t node_;
};

SimulatedDisk::SimulatedDisk() {
  nodes_.emplace_back();
  nodes_.back().folder = true;
}

SimulatedDisk::SimulatedDisk(const SimulatedDisk& other) : nodes_(other.nodes_), names_made_(other.names_made_) {}

void SimulatedDisk::fail_at(std::size_t operation, FaultKind kind) {
  operations_ = 0;
  fault_at_ = operation;
  fault_ = kind;
  happened_ = dead_ = false;
}

std::size_t SimulatedDisk::find(std::string_view path) const {
  std::size_t node = 0;
  while (!path.empty()) {
    const std::size_t length = std::min(path.find('/'), path.size());
    const std::string part(path.substr(0, length));
    path.remove_prefix(std::min(length + 1, path.size()));
    if (part.empty() || part == ".") continue;
    const auto found = nodes_[node].names.find(part);
    if (found == nodes_[node].names.end()) return kNone;
    node = found->second;
  }
  return node;
}

Status SimulatedDisk::split(std::string_view path, std::size_t& folder, std::string& name) const {
  const std::size_t slash = path.find_last_of('/');
  name = path.substr(slash + 1);
  folder = slash == std::string_view::npos ? 0 : find(path.substr(0, slash));
  return folder == kNone || !nodes_[folder].folder ? error(ENOENT) : Status();
}

Status SimulatedDisk::step(bool needs_room, FaultKind& effect) {
  effect = FaultKind::none;
  if (dead_) return error(EIO);
  const std::size_t now = operations_++;
  if (fault_ == FaultKind::disk_full && now >= fault_at_ && needs_room) {
    happened_ = true;
    return error(ENOSPC);
  }
  if (now != fault_at_) return {};
  happened_ = true;
  effect = fault_;
  switch (fault_) {
    case FaultKind::kill: dead_ = true; return error(EIO);
    case FaultKind::torn_512:
    case FaultKind::torn_4096: dead_ = true; return {};
    case FaultKind::io_error: return error(EIO);
    default: return {};
  }
}

Status SimulatedDisk::write(std::size_t node, std::uint64_t offset, std::span<const std::uint8_t> bytes,
                            std::size_t& done) {
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(true, effect));
  auto& target = nodes_[node].bytes;
  const auto put = [&](std::size_t begin, std::size_t end) {
    if (target.size() < offset + end) target.resize(offset + end);
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end),
              target.begin() + static_cast<std::ptrdiff_t>(offset + begin));
  };
  done = bytes.size();
  if (effect == FaultKind::torn_512 || effect == FaultKind::torn_4096) {
    const std::size_t sector = effect == FaultKind::torn_512 ? 512 : 4096;
    for (std::size_t at = 0, i = 0; at < bytes.size(); at += sector, ++i)
      if (i % 2 == 1) put(at, std::min(at + sector, bytes.size()));
    return error(EIO);
  }
  if (effect == FaultKind::short_write && bytes.size() > 1) done = bytes.size() / 2;
  put(0, done);
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Status SimulatedDisk::cut(std::size_t node, std::uint64_t bytes) {
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(false, effect));
  if (dead_) return error(EIO);
  nodes_[node].bytes.resize(static_cast<std::size_t>(bytes));
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Status SimulatedDisk::sync(std::size_t node) {
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(false, effect));
  if (dead_) return error(EIO);
  nodes_[node].durable = nodes_[node].bytes;
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Result<std::unique_ptr<File>> SimulatedDisk::open(std::string_view path) {
  if (dead_) return error(EIO);
  if (on_open_) QUERN_RETURN_IF_ERROR(on_open_(path));
  const std::size_t node = find(path);
  if (node == kNone) return error(ENOENT);
  if (nodes_[node].folder) return error(EISDIR);
  return std::unique_ptr<File>(new SimulatedFile(*this, node));
}

Status SimulatedDisk::add(std::string_view path, Node node) {
  std::size_t folder = 0;
  std::string name;
  QUERN_RETURN_IF_ERROR(split(path, folder, name));
  if (nodes_[folder].names.contains(name)) return error(EEXIST);
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(true, effect));
  if (dead_) return error(EIO);
  nodes_.push_back(std::move(node));
  nodes_[folder].names[name] = nodes_.size() - 1;
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Result<std::unique_ptr<File>> SimulatedDisk::create(std::string_view path) {
  QUERN_RETURN_IF_ERROR(add(path, Node{}));
  return open(path);
}

Status SimulatedDisk::make_folder(std::string_view path) {
  Node node;
  node.folder = true;
  return add(path, std::move(node));
}

Status SimulatedDisk::rename(std::string_view from, std::string_view to) {
  std::size_t from_folder = 0, to_folder = 0;
  std::string from_name, to_name;
  QUERN_RETURN_IF_ERROR(split(from, from_folder, from_name));
  QUERN_RETURN_IF_ERROR(split(to, to_folder, to_name));
  const auto found = nodes_[from_folder].names.find(from_name);
  if (found == nodes_[from_folder].names.end()) return error(ENOENT);
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(false, effect));
  if (dead_) return error(EIO);
  const std::size_t node = found->second;
  nodes_[from_folder].names.erase(found);
  nodes_[to_folder].names[to_name] = node;
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Status SimulatedDisk::remove(std::string_view path) {
  std::size_t folder = 0;
  std::string name;
  QUERN_RETURN_IF_ERROR(split(path, folder, name));
  if (!nodes_[folder].names.contains(name)) return error(ENOENT);
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(false, effect));
  if (dead_) return error(EIO);
  nodes_[folder].names.erase(name);
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Status SimulatedDisk::remove_folder(std::string_view path) {
  const std::size_t node = find(path);
  if (node == kNone) return error(ENOENT);
  if (!nodes_[node].names.empty()) return error(ENOTEMPTY);
  return remove(path);
}

Result<Vector<String>> SimulatedDisk::list(std::string_view path) {
  if (dead_) return error(EIO);
  const std::size_t node = find(path);
  if (node == kNone || !nodes_[node].folder) return error(ENOENT);
  Vector<String> out;
  for (const auto& [name, number] : nodes_[node].names) out.emplace_back(name);
  return out;
}

Status SimulatedDisk::sync_folder(std::string_view path) {
  const std::size_t node = find(path);
  if (node == kNone) return error(ENOENT);
  FaultKind effect{};
  QUERN_RETURN_IF_ERROR(step(false, effect));
  if (dead_) return error(EIO);
  nodes_[node].durable_names = nodes_[node].names;
  return effect == FaultKind::io_error_after ? error(EIO) : Status();
}

Result<std::unique_ptr<FileLock>> SimulatedDisk::lock(std::string_view path, storage::LockKind, bool) {
  if (find(path) == kNone) QUERN_RETURN_IF_ERROR(add(path, Node{}));
  return std::unique_ptr<FileLock>(new SimulatedLock);
}

Result<String> SimulatedDisk::new_name() {
  ++names_made_;
  return storage::hex(names_made_ * UINT64_C(0x9E3779B97F4A7C15)) + storage::hex(names_made_);
}

SimulatedDisk SimulatedDisk::after(Survival survival, std::uint64_t seed) const {
  SimulatedDisk out(*this);
  std::mt19937_64 random(seed);
  for (Node& node : out.nodes_) {
    const bool names_kept = survival == Survival::everything || survival == Survival::names ||
                            (survival == Survival::mixture && random() % 2 == 0);
    if (!names_kept) node.names = node.durable_names;
    if (survival == Survival::durable) node.bytes = node.durable;
    if (survival == Survival::names) {
      const std::size_t size = node.bytes.size();
      node.bytes = node.durable;
      node.bytes.resize(size);
    }
    if (survival == Survival::mixture) {
      const std::size_t sector = random() % 2 == 0 ? 512 : 4096;
      std::vector<std::uint8_t> old = node.durable;
      if (random() % 2 == 0) old.resize(std::max(old.size(), node.bytes.size()));
      for (std::size_t at = 0; at < std::min(old.size(), node.bytes.size()); at += sector)
        if (random() % 2 == 0)
          std::copy(
              node.bytes.begin() + static_cast<std::ptrdiff_t>(at),
              node.bytes.begin() + static_cast<std::ptrdiff_t>(std::min({at + sector, node.bytes.size(), old.size()})),
              old.begin() + static_cast<std::ptrdiff_t>(at));
      node.bytes = old;
    }
    node.durable = node.bytes;
    node.durable_names = node.names;
  }
  return out;
}

void SimulatedDisk::all_files_of(std::size_t folder, const std::string& prefix, std::vector<std::string>& out) const {
  for (const auto& [name, node] : nodes_[folder].names) {
    if (nodes_[node].folder) {
      all_files_of(node, prefix + name + "/", out);
    } else {
      out.push_back(prefix + name);
    }
  }
}

std::vector<std::string> SimulatedDisk::all_files() const {
  std::vector<std::string> out;
  all_files_of(0, "", out);
  return out;
}

std::vector<std::uint8_t>& SimulatedDisk::bytes_of(const std::string& path) { return nodes_[find(path)].bytes; }

}  // namespace quern::testing

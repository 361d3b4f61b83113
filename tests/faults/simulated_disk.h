// A disk in memory that knows what would survive a power cut, and fails on demand: the test double of stores'
// file operations. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/file_system.h"

namespace quern::testing {

/// What happens at the operation that was chosen. Operations are those that change something or sync it.
enum class FaultKind {
  none,
  kill,            ///< it and all later ones are not carried out
  torn_512,        ///< of a write half the sectors of 512 bytes are carried out, then as kill
  torn_4096,       ///< the same with 4 KiB
  io_error,        ///< it fails with EIO, later ones do not
  disk_full,       ///< it and all later ones that need room fail with ENOSPC
  short_write,     ///< a write moves half its bytes
  io_error_after,  ///< it is carried out and fails with EIO all the same
};

/// What is there after a crash.
enum class Survival {
  everything,  ///< the process died, the machine did not
  durable,     ///< what was synced and nothing else
  names,       ///< all names, of files what was synced and zeros for the rest
  data,        ///< names that were synced, all data
  mixture,     ///< by chance: names of a folder or not, sectors of unsynced writes or not
};

class SimulatedDisk final : public storage::FileSystem {
 public:
  SimulatedDisk();
  SimulatedDisk(const SimulatedDisk& other);
  SimulatedDisk& operator=(const SimulatedDisk&) = delete;

  void fail_at(std::size_t operation, FaultKind kind);
  std::size_t operations() const { return operations_; }
  bool fault_happened() const { return happened_; }
  /// The disk after the machine came back; works again.
  SimulatedDisk after(Survival survival, std::uint64_t seed) const;

  /// For tests that damage files.
  std::vector<std::string> all_files() const;
  std::vector<std::uint8_t>& bytes_of(const std::string& path);
  /// Called before a file is opened, also one just made, with its path; a status that is not ok is the outcome. May
  /// change the disk.
  void on_open(std::function<Status(std::string_view)> hook) { on_open_ = std::move(hook); }
  bool exists(const std::string& path) const { return find(path) != kNone; }

  Result<std::unique_ptr<storage::File>> open(std::string_view path) override;
  Result<std::unique_ptr<storage::File>> create(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status make_folder(std::string_view path) override;
  Status remove_folder(std::string_view path) override;
  Result<Vector<String>> list(std::string_view path) override;
  Result<bool> is_link(std::string_view) override { return false; }
  Status sync_folder(std::string_view path) override;
  Result<std::unique_ptr<storage::FileLock>> lock(std::string_view path, storage::LockKind kind, bool wait) override;
  Result<String> new_name() override;

 private:
  friend class SimulatedFile;
  using Names = std::map<std::string, std::size_t>;
  struct Node {
    bool folder = false;
    std::vector<std::uint8_t> bytes, durable;
    Names names, durable_names;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::size_t find(std::string_view path) const;
  Status split(std::string_view path, std::size_t& folder, std::string& name) const;
  /// Counts an operation; a status that is not ok is its outcome.
  Status step(bool needs_room, FaultKind& effect);
  Status add(std::string_view path, Node node);
  Status write(std::size_t node, std::uint64_t offset, std::span<const std::uint8_t> bytes, std::size_t& done);
  Status cut(std::size_t node, std::uint64_t bytes);
  Status sync(std::size_t node);
  void all_files_of(std::size_t folder, const std::string& prefix, std::vector<std::string>& out) const;

  std::vector<Node> nodes_;
  std::size_t operations_ = 0;
  std::size_t fault_at_ = kNone;
  FaultKind fault_ = FaultKind::none;
  bool happened_ = false;
  std::function<Status(std::string_view)> on_open_;
  bool dead_ = false;
  std::uint64_t names_made_ = 0;
};

}  // namespace quern::testing

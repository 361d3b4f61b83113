#include "tests/faults/placed_nodes.h"

namespace quern::testing {

std::string node_folder(std::size_t node) { return "node" + std::to_string(node); }

Status place_small(SimulatedDisk& disk, std::uint32_t data, std::uint32_t parity, std::size_t nodes,
                   checkpoint::Report& report) {
  const checkpoint::Store store(disk, "store");
  QUERN_RETURN_IF_ERROR(store.make_folders(report));
  checkpoint::Placement placement;
  placement.data = data;
  placement.parity = parity;
  for (std::size_t i = 0; i < nodes; ++i) {
    QUERN_RETURN_IF_ERROR(checkpoint::make_one_folder(disk, node_folder(i), report));
    QUERN_RETURN_IF_ERROR(disk.sync_folder("."));
    placement.nodes.push_back({String("n") + String(std::to_string(i).c_str()), String(node_folder(i).c_str())});
  }
  return checkpoint::write_placement(disk, store.root(), std::move(placement), report);
}

void lose(SimulatedDisk& disk, const std::string& folder) {
  const auto names = disk.list(folder);
  if (!names.ok()) return;
  for (const String& name : *names) {
    const std::string path = folder + "/" + std::string(name.data(), name.size());
    if (disk.list(path).ok()) {
      lose(disk, path);
    } else {
      (void)disk.remove(path);
    }
  }
  (void)disk.remove_folder(folder);
}

void lose_nodes(SimulatedDisk& disk, std::uint32_t nodes) {
  for (std::size_t i = 0; i < 32; ++i)
    if ((nodes >> i & 1) != 0) lose(disk, node_folder(i));
}

}  // namespace quern::testing

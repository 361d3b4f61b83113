// What a step does in which order, where it writes, and which files it codes: from rates of late.
#include <algorithm>
#include <thread>

#include "offload/pass.h"
#include "offload/schedule/make_schedule.h"

namespace quern::offload {
namespace {

constexpr std::uint64_t kMeasureAll = 64;  ///< each so many steps a slow folder and coding are measured, too
constexpr double kNeverCoded = 2e9;        ///< bytes a second of a folder that no coder keeps up with

}  // namespace

Machine Optimizer::machine() const {
  Machine out;
  out.cpu = update_rate_.per_second();
  for (const auto& folder : folders_) {
    const FolderUse use = folder->use();
    out.paths.push_back({use.read_rate, use.write_rate});
  }
  const CodingRates coding = coding_rates();
  for (std::size_t f = 0; f < out.paths.size(); ++f)
    if (packs_[f] && coding.known()) out.paths[f] = packed_rates(out.paths[f], coding);
  out.buffers = slots_.size();
  return out;
}

/// The subgroups where they are now.
Vector<Job> Optimizer::jobs() const {
  Vector<Job> out(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    out[g].values = groups_[g].values;
    out[g].bytes = stored_bytes(g);
    if (in_files() && slot_of_[g] == kNone) out[g].path = manifest_.groups[g].folder;
  }
  return out;
}

CodingRates Optimizer::coding_rates() const {
  const std::lock_guard lock(mutex_);
  return {pack_rate_.per_second(), unpack_rate_.known() ? unpack_rate_.per_second() : pack_rate_.per_second(),
          packed_share_.per_second()};
}

/// Whether files may be entropy coded where that is faster: coders must leave most of the memory to subgroups.
bool Optimizer::may_pack() const {
  if (options_.file_form != FileForm::measured || !in_files()) return false;
  const std::uint64_t coders = coder_bytes(folders_.size());
  return options_.memory_limit == 0 ||
         (coders <= options_.memory_limit / 8 && options_.memory_limit - coders >= 4 * largest_bytes_);
}

/// Which folders get entropy-coded files from now on.
void Optimizer::choose_forms() {
  if (!may_pack()) return;
  const CodingRates coding = coding_rates();
  if (!coding.known()) return;
  Vector<PathRates> rates;
  for (const auto& folder : folders_) rates.push_back({folder->use().read_rate, folder->use().write_rate});
  std::uint64_t bytes = 0, values = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) bytes += stored_bytes(g), values += groups_[g].values;
  if (values == 0) return;
  const double bytes_a_value = static_cast<double>(bytes) / static_cast<double>(values);
  const UpdateRate update{update_rate_.per_second() * bytes_a_value, runner_->get().width()};
  packs_ = folders_to_pack(rates, coding, update, packs_, std::max(1u, std::thread::hardware_concurrency()));
}

/// Whether files are or will be entropy coded, by what the manifest and the folders' forms say. Coders that are of no
/// use any more go: their memory belongs to subgroups again.
void Optimizer::count_coders() {
  packs_any_ = std::find(packs_.begin(), packs_.end(), true) != packs_.end() ||
               std::any_of(manifest_.groups.begin(), manifest_.groups.end(),
                           [](const StoredSubgroup& group) { return group.packed_bytes != 0; });
  if (packs_any_) return;
  for (const auto& folder : folders_) folder->drop_coders();
}

double Optimizer::expected_seconds() const {
  const Machine now = machine();
  const Vector<Job> all = jobs();
  return simulate(now, all, make_schedule(now, all));
}

void Optimizer::plan(Pass& pass) {
  choose_forms();
  count_coders();
  pass.folder.resize(groups_.size());
  Schedule schedule = make_schedule(machine(), jobs());
  if (manifest_.step % kMeasureAll == 0) use_every_path(folders_.size(), schedule);
  for (const Placed& placed : schedule) {
    pass.order.push_back(placed.job);
    if (in_files()) pass.folder[placed.job] = static_cast<std::uint32_t>(placed.path);
  }
  // How fast coding is, and what it saves, is found by one file; that it could pay must be possible at all.
  const bool try_one = !coding_rates().known() || manifest_.step % kMeasureAll == 0;
  if (!try_one || pass.order.empty() || !may_pack()) return;
  for (const auto& folder : folders_) {
    const FolderUse use = folder->use();
    if (use.write_rate >= kNeverCoded) continue;
    pass.tried = pass.order.front();
    packs_any_ = true;
    return;
  }
}

/// Where a load puts the subgroups, which has nothing to read before.
Vector<std::uint32_t> Optimizer::even_folders() const {
  PathShares shares(machine().paths);
  Vector<std::uint32_t> out(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) out[g] = static_cast<std::uint32_t>(shares.place(stored_bytes(g)));
  return out;
}

}  // namespace quern::offload

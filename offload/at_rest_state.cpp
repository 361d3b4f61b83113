// The state for checkpoints: what it is, its bytes as they lie, and back.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "offload/pass.h"

namespace quern::offload {
namespace {

using storage::decimal;
using storage::fail;
using storage::join;
using storage::Report;

}  // namespace

Result<Vector<std::uint8_t>> Optimizer::describe(Report& report) {
  QUERN_RETURN_IF_ERROR(check_usable(report));
  Manifest out = manifest_;
  // Where it lies is no part of it.
  out.state = {};
  out.folders = 1;
  out.stamp = 1;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    StoredSubgroup& group = out.groups[g];
    group.folder = 0;
    group.stamp = 1;
    group.packed_bytes = 0;
    if (in_files()) continue;
    const SubgroupData& data = slots_[slot_of_[g]].data;
    group.beside_bytes = data.moments.beside_part().size();
    group.hash = hash_of(data);
  }
  return write_manifest(out);
}

Result<std::uint64_t> Optimizer::at_rest_bytes(std::size_t group, Report& report) const {
  QUERN_RETURN_IF_ERROR(check_usable(report));
  if (group >= groups_.size())
    return fail(report, StatusCode::invalid_argument,
                join({"there is no subgroup ", decimal(group), "; the state has ", decimal(groups_.size())}));
  return in_files() ? stored_bytes(group) : slots_[slot_of_[group]].data.bytes();
}

Status Optimizer::read_at_rest(std::size_t group, std::uint64_t begin, std::span<std::uint8_t> out, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t bytes, at_rest_bytes(group, report));
  if (begin > bytes || out.size() > bytes - begin)
    return fail(report, StatusCode::invalid_argument,
                join({"subgroup ", decimal(group), " has ", decimal(bytes), " bytes; others were asked for"}));
  if (out.empty()) return {};
  Pass pass;
  pass.writes = false;
  pass.order.push_back(group);
  pass.body = [&](SubgroupData& data, const Subgroup&) {
    const std::span<const std::uint8_t> parts[] = {
        {data.weights.data(), data.weights.size()}, data.moments.fixed_part(), data.moments.beside_part()};
    std::uint64_t at = 0;
    for (const auto& part : parts) {
      const std::uint64_t first = std::max(begin, at);
      const std::uint64_t end = std::min(begin + out.size(), at + part.size());
      if (first < end)
        std::memcpy(out.data() + (first - begin), part.data() + (first - at), static_cast<std::size_t>(end - first));
      at += part.size();
    }
    return Status();
  };
  Status status = run_pass(pass, report);
  return finish_pass(pass, status, report);
}

Status Optimizer::restore(std::span<const std::uint8_t> description, const AtRestSource& source, Report& report) {
  QUERN_RETURN_IF_ERROR(check_process(report));
  if (broken_ && in_files()) return check_usable(report);
  const auto found = parse_manifest(description);
  if (!found.ok())
    return fail(report, found.status().code(),
                join({"this is no description of an offloaded state: ", String(found.status().text())}));
  if (found->region_values != manifest_.region_values || found->subgroup_values != manifest_.subgroup_values ||
      found->form.bits != manifest_.form.bits || found->form.finest != manifest_.form.finest)
    return fail(report, StatusCode::invalid_argument,
                join({"the saved state has other parameters than this one, or was made with subgroups of ",
                      decimal(found->subgroup_values), " values and codes of ", decimal(found->form.bits),
                      " bits. Open the optimizer as the saved one was, or load values instead"}));
  Pass pass;
  pass.order.resize(groups_.size());
  std::iota(pass.order.begin(), pass.order.end(), std::size_t{0});
  pass.reads = false;
  pass.body = [&](SubgroupData& data, const Subgroup& group) -> Status {
    const auto number = static_cast<std::size_t>(&group - groups_.data());
    const StoredSubgroup& stored = found->groups[number];
    std::uint64_t at = 0;
    const auto fill = [&](std::span<std::uint8_t> part) {
      const Status status = part.empty() ? Status() : source(number, at, part);
      at += part.size();
      return status;
    };
    QUERN_RETURN_IF_ERROR(fill(data.weights.span()));
    QUERN_RETURN_IF_ERROR(fill(data.moments.fixed_room()));
    // The fixed part says how much lies beside it, which must be what was described.
    QUERN_ASSIGN_OR_RETURN(const auto beside, data.moments.beside_room(stored.beside_bytes));
    QUERN_RETURN_IF_ERROR(fill(beside));
    if (hash_of(data) != stored.hash)
      return fail(report, StatusCode::checksum_mismatch,
                  join({"the bytes of subgroup ", decimal(number), " are not those that were saved"}));
    return data.moments.accept();
  };
  broken_ = false;
  loaded_ = loaded_ && in_files();
  Status status = run_pass(pass, report);
  pass.next.step = found->step;
  pass.next.seed = found->seed;
  return finish_pass(pass, status, report);
}

}  // namespace quern::offload

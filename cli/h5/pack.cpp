// quern h5 pack: plans, copies the file with packed datasets in it, checks, reports.
#include <hdf5.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/files/safe_file.h"
#include "cli/h5/copy/output.h"
#include "cli/h5/file.h"
#include "cli/h5/pack_plan.h"
#include "cli/h5/pack_write.h"
#include "cli/h5/quota.h"
#include "cli/h5/verb.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"

namespace quern::cli {
namespace {

/// A dataset that was packed.
struct Packed {
  std::uint64_t value_bytes = 0;
  std::uint64_t before = 0;  ///< bytes its chunks took
  std::uint64_t after = 0;
  PackedQuality quality;
};

class Packing {
 public:
  Packing(const H5Args& args, hid_t file, const H5Tree& tree)
      : args_(args), file_(file), tree_(tree), plan_(plan_pack(file, tree, args)) {
    progress_.emplace(args.input, args.run);
    for (PackJob& job : plan_.jobs) {
      by_object_[job.object] = &job;
      const H5Id dataset = h5_open_at(file, tree.objects[job.object].address);
      bytes_ += 2 * h5_value_bytes(dataset.get());  // written once, checked once
    }
  }

  /// Returns the bytes of the file, which is there when `accept` wants it.
  std::uint64_t run(const AcceptBytes& accept) {
    refuse_nothing();
    H5Changes changes;
    changes.replace = [this](std::size_t object, hid_t from, hid_t to_file, hid_t type) {
      return replace(object, from, to_file, type);
    };
    changes.keeps_attribute = [this](std::size_t object, const std::string& name) { return keeps(object, name); };
    changes.add_attributes = [this](std::size_t object, hid_t to) {
      const PackJob& job = *by_object_.at(object);
      if (job.record) h5_write_record(to, *job.record);
    };
    H5Comparison comparison;
    comparison.is_replaced = [this](std::size_t object) { return packed_.contains(object); };
    comparison.keeps_attribute = changes.keeps_attribute;
    comparison.check_replaced = [this](std::size_t object, hid_t from, hid_t to) {
      const H5Id list(H5Dget_create_plist(to), H5Pclose);
      if (!h5_uses_quern(list.get()))
        fail(Exit::io, tree_.path(object) + ": is not packed in the copy; please report it");
      Packed& packed = packed_.at(object);
      const PackJob& job = *by_object_.at(object);
      packed.quality = check_packed(from, to, job, args_, [this](std::uint64_t b) { advance(b); });
      if (job.asked.kind == BoundKind::psnr && packed.quality.psnr_db && *packed.quality.psnr_db < job.asked.value)
        fail(Exit::bound,
             fmt::format("{}: no bound was found that gives {:.6g} dB; the nearest gives {:.6g}; the output "
                         "was not kept. Give a lower PSNR, or --bound {}=abs:VALUE",
                         job.name, job.asked.value, *packed.quality.psnr_db, job.name));
    };
    const std::uint64_t bytes = write_h5_output(args_, file_, tree_, changes, comparison, accept);
    progress_.reset();
    return bytes;
  }

  void report() const;

 private:
  void refuse_nothing() const {
    if (!plan_.jobs.empty()) return;
    for (const LeftDataset& left : plan_.left) note_left(left, true);
    fail(Exit::usage, args_.input + ": no dataset to pack; -v says why, --dataset NAME chooses one");
  }

  H5Id replace(std::size_t object, hid_t from, hid_t to_file, hid_t type) {
    const auto found = by_object_.find(object);
    if (found == by_object_.end()) return {};
    PackJob& job = *found->second;
    try {
      H5Id out = write_to_target(from, to_file, type, job, args_, [this](std::uint64_t b) { advance(b); });
      Packed& packed = packed_[object];
      packed.value_bytes = h5_value_bytes(from);
      packed.before = H5Dget_storage_size(from);
      packed.after = H5Dget_storage_size(out.get());
      return out;
    } catch (LeftAlone& left) {
      const bool named = !args_.datasets.empty() || !args_.bounds.empty() || !args_.bounds_file.empty();
      plan_.left.push_back({job.name, std::move(left), named});
      return {};
    }
  }

  /// Attributes of an earlier packing give way to the new ones.
  bool keeps(std::size_t object, const std::string& name) const {
    return !by_object_.at(object)->record || !h5_is_record(name);
  }

  void advance(std::uint64_t bytes) {
    done_ += bytes;
    progress_->update(std::min(done_, bytes_), bytes_);
  }

  void note_left(const LeftDataset& left, bool always) const {
    if (args_.run.quiet || args_.run.json) return;
    if (always || left.named || args_.run.verbose)
      print_note(fmt::format("{}: {} stays as it is: {}", args_.input, left.name, left.why.reason));
  }

  Json json() const;
  void print_lines() const;

  const H5Args& args_;
  hid_t file_;
  const H5Tree& tree_;
  PackPlan plan_;
  std::unordered_map<std::size_t, PackJob*> by_object_;
  std::unordered_map<std::size_t, Packed> packed_;
  std::optional<Progress> progress_;  ///< while there is work
  std::uint64_t bytes_ = 0;
  std::uint64_t done_ = 0;
};

Json Packing::json() const {
  Json changed = Json::array();
  for (const PackJob& job : plan_.jobs) {
    const auto found = packed_.find(job.object);
    if (found == packed_.end()) continue;
    const ErrorBound bound = job.physical();
    Json line{{"dataset", job.name},
              {"bound", bound_json(bound.kind, bound.value)},
              {"requested", bound_json(job.asked.kind, job.asked.value)},
              {"input_bytes", found->second.before},
              {"output_bytes", found->second.after},
              {"value_bytes", found->second.value_bytes},
              {"chunk", job.chunk},
              {"max_error", found->second.quality.max_error},
              {"psnr_db", number_or_null(found->second.quality.psnr_db)}};
    if (job.record && job.record->accumulated) line["accumulated"] = *job.record->accumulated;
    changed.push_back(std::move(line));
  }
  Json left = Json::array();
  for (const LeftDataset& one : plan_.left) left.push_back({{"dataset", one.name}, {"reason", one.why.reason}});
  return Json{{"input", args_.input},
              {"output", args_.output.path},
              {"input_bytes", file_bytes(args_.input)},
              {"output_bytes", file_bytes(args_.output.path)},
              {"psnr_target", args_.total_size ? Json(args_.bound->value) : Json(nullptr)},
              {"changed", changed},
              {"left", left},
              {"plugin_folder", own_plugin_folder()}};
}

void Packing::print_lines() const {
  for (const PackJob& job : plan_.jobs) {
    const auto found = packed_.find(job.object);
    if (found == packed_.end()) continue;
    const ErrorBound bound = job.physical();
    const double ratio = static_cast<double>(found->second.value_bytes) /
                         static_cast<double>(std::max<std::uint64_t>(found->second.after, 1));
    std::string line =
        fmt::format("{}: {}  {}  {:.2f}x  {} -> {} bytes", args_.output.path, job.name,
                    bound_text(bound.kind, bound.value), ratio, found->second.before, found->second.after);
    if (job.asked.kind == BoundKind::psnr && found->second.quality.psnr_db)
      line += fmt::format("  PSNR {:.2f} dB", *found->second.quality.psnr_db);
    if (job.record && job.record->accumulated)
      line += fmt::format("  (with earlier errors {})", bound_text(bound.kind, *job.record->accumulated));
    print_note(line);
  }
}

void Packing::report() const {
  if (args_.run.json) {
    print_json(json());
    return;
  }
  if (args_.run.quiet) return;
  print_lines();
  std::vector<std::string> groups;
  for (const LeftDataset& left : plan_.left) {
    note_left(left, false);
    groups.push_back(left.why.group);
  }
  const std::uint64_t before = file_bytes(args_.input);
  const std::uint64_t after = file_bytes(args_.output.path);
  print_note(fmt::format("{}: {} packed, {} left as stored{}; {} -> {} bytes{}", args_.output.path,
                         datasets_text(packed_.size()), groups.size(),
                         groups.empty() ? "" : " (" + count_text(groups) + ")", before, after,
                         after > before ? ": the file has grown" : ""));
  const std::string folder = own_plugin_folder();
  print_note(folder.empty()
                 ? "other programs need the plugin libh5quern.so to read it, which is not built here; build the target "
                   "h5quern_serial"
                 : fmt::format("other programs read it with HDF5_PLUGIN_PATH={}", folder));
}

}  // namespace

Exit pack_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  check_output(args.input, args.output.path, args.output.force);
  const H5Tree tree = h5_tree(file.get());
  const auto pack = [&](const H5Args& how, const AcceptBytes& accept) {
    Packing packing(how, file.get(), tree);
    bool wanted = true;
    const std::uint64_t bytes = packing.run([&](std::uint64_t size) { return wanted = !accept || accept(size); });
    if (wanted) packing.report();
    return bytes;
  };
  if (args.total_size) {
    pack_to_size(args, file.get(), tree, pack);
  } else {
    pack(args, nullptr);
  }
  return Exit::ok;
}

}  // namespace quern::cli

// quern h5 unpack: copies the file with the filter taken off; values stay what they are.
#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "cli/h5/boxes.h"
#include "cli/h5/copy/output.h"
#include "cli/h5/file.h"
#include "cli/h5/pack_write.h"
#include "cli/h5/verb.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kBoxBytes = UINT64_C(64) << 20;

/// Goes through a dataset's values in boxes and calls use(box, values).
template <class Use>
void for_values(hid_t dataset, const RunArgs& run, const Use& use) {
  const H5Id type(H5Dget_type(dataset), H5Tclose);
  const H5Id space(H5Dget_space(dataset), H5Sclose);
  const H5Id dcpl(H5Dget_create_plist(dataset), H5Pclose);
  const std::size_t width = H5Tget_size(type.get());
  H5Boxes boxes(h5_extents(space.get()), h5_chunk(dcpl.get()), width, std::min(kBoxBytes, memory_limit(run) / 8));
  H5Box box;
  if (!boxes.next(box)) return;
  Buffer values(boxes.largest_elems() * width, "a part of a dataset");
  do {
    h5_read_box(dataset, type.get(), box, values.data());
    use(type.get(), box, values.data());
  } while (boxes.next(box));
}

class Unpacking {
 public:
  Unpacking(const H5Args& args, hid_t file, const H5Tree& tree) : args_(args), file_(file), tree_(tree) {
    progress_.emplace(args.input, args.run);
    if (args.datasets.empty()) {
      for (std::size_t i = 0; i < tree.objects.size(); ++i)
        if (tree.objects[i].type == H5O_TYPE_DATASET) choose(i, false);
    } else {
      for (const std::string& name : args.datasets) choose(h5_find_dataset(file, tree, name), true);
    }
    if (chosen_.empty()) fail(Exit::usage, args.input + ": no dataset uses quern");
  }

  void run() {
    H5Changes changes;
    changes.replace = [this](std::size_t object, hid_t from, hid_t to_file, hid_t type) {
      return chosen_.contains(object) ? unpack(from, to_file, type) : H5Id();
    };
    changes.keeps_attribute = [](std::size_t, const std::string&) { return true; };
    changes.add_attributes = [](std::size_t, hid_t) {};
    H5Comparison comparison;
    comparison.is_replaced = [this](std::size_t object) { return chosen_.contains(object); };
    comparison.keeps_attribute = changes.keeps_attribute;
    comparison.check_replaced = [this](std::size_t object, hid_t from, hid_t to) { compare(object, from, to); };
    write_h5_output(args_, file_, tree_, changes, comparison);
    progress_.reset();
  }

  void report() const {
    const std::uint64_t before = file_bytes(args_.input);
    const std::uint64_t after = file_bytes(args_.output.path);
    Json changed = Json::array();
    for (std::size_t i = 0; i < tree_.objects.size(); ++i)
      if (chosen_.contains(i)) changed.push_back({{"dataset", tree_.path(i)}});
    if (args_.run.json) {
      print_json(Json{{"input", args_.input},
                      {"output", args_.output.path},
                      {"input_bytes", before},
                      {"output_bytes", after},
                      {"changed", changed},
                      {"left", left_}});
    } else if (!args_.run.quiet) {
      if (args_.run.verbose)
        for (const Json& one : changed)
          print_note(fmt::format("{}: {} is unpacked", args_.output.path, one["dataset"].get<std::string>()));
      print_note(fmt::format("{}: {} unpacked, {} left as stored; {} -> {} bytes", args_.output.path,
                             datasets_text(changed.size()), left_.size(), before, after));
    }
  }

 private:
  void choose(std::size_t object, bool named) {
    const H5Id dataset = h5_open_at(file_, tree_.objects[object].address);
    const H5Id dcpl(H5Dget_create_plist(dataset.get()), H5Pclose);
    if (h5_uses_quern(dcpl.get())) {
      if (chosen_.insert(object).second) bytes_ += 2 * h5_value_bytes(dataset.get());
      return;
    }
    const std::string path = tree_.path(object);
    left_.push_back({{"dataset", path}, {"reason", "it does not use quern"}});
    if ((named || args_.run.verbose) && !args_.run.quiet && !args_.run.json)
      print_note(fmt::format("{}: {} stays as it is: it does not use quern", args_.input, path));
  }

  H5Id unpack(hid_t from, hid_t to_file, hid_t type) {
    const H5Id dcpl(H5Dget_create_plist(from), H5Pclose);
    const H5Id space(H5Dget_space(from), H5Sclose);
    h5_check(H5Premove_filter(dcpl.get(), QUERN_HDF5_FILTER_ID), "take the filter off");
    H5Id out(H5Dcreate_anon(to_file, type, space.get(), dcpl.get(), H5P_DEFAULT), H5Dclose);
    if (!out.ok()) h5_fail("make an unpacked dataset");
    for_values(from, args_.run, [&](hid_t memory_type, const H5Box& box, const void* values) {
      h5_write_box(out.get(), memory_type, box, values);
      advance(box.elems() * H5Tget_size(memory_type));
    });
    return out;
  }

  void compare(std::size_t object, hid_t from, hid_t to) {
    std::vector<unsigned char> other;
    for_values(from, args_.run, [&](hid_t memory_type, const H5Box& box, const void* values) {
      other.resize(box.elems() * H5Tget_size(memory_type));
      h5_read_box(to, memory_type, box, other.data());
      if (std::memcmp(values, other.data(), other.size()) != 0)
        fail(Exit::io, tree_.path(object) + ": a value differs in the copy, which was not kept; please report it");
      advance(other.size());
    });
  }

  void advance(std::uint64_t bytes) {
    done_ += bytes;
    progress_->update(std::min(done_, bytes_), bytes_);
  }

  const H5Args& args_;
  hid_t file_;
  const H5Tree& tree_;
  std::unordered_set<std::size_t> chosen_;
  Json left_ = Json::array();
  std::optional<Progress> progress_;  ///< while there is work
  std::uint64_t bytes_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace

Exit unpack_file(const H5Args& args) {
  if (quern_hdf5_register() < 0) fail(Exit::resource, "the filter cannot be registered: " + h5_reason());
  const H5Id file = h5_open(args.input);
  check_output(args.input, args.output.path, args.output.force);
  const H5Tree tree = h5_tree(file.get());
  Unpacking unpacking(args, file.get(), tree);
  unpacking.run();
  unpacking.report();
  return Exit::ok;
}

}  // namespace quern::cli

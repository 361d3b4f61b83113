// What quern h5 asks of the library itself; in the program, also where the verb is in a module.
#include "cli/h5_values.h"

#include "cli/memory.h"
#include "cli/stream_notes.h"

namespace quern::cli {

bool open_dataset(const std::string& path, const std::string& name, InputArray& out, std::string& why) {
  out.path = path;
  out.label = path + " " + name;
  out.dataset = name;
  out.kind = io::FileKind::hdf5;
  io::OpenOptions options;
  options.dataset = name;
  auto reader = io::open_reader(path, out.kind, options, why);
  if (!reader.ok()) return false;
  out.reader = std::move(reader).value();
  out.meta = out.reader->meta();
  out.fill_bits = out.meta.fill_bits;
  return true;
}

bool bound_in_file_units(const ErrorBound& asked, const InputArray& array, ErrorBound& out, std::string& why) {
  const auto bound = io::stored_bound(asked, array.meta, why);
  if (bound.ok()) out = *bound;
  return bound.ok();
}

ErrorBound absolute_bound(const ErrorBound& asked, InputArray& array, const RunArgs& run) {
  if (asked.kind != BoundKind::rel) return asked;
  const WholeArray whole =
      WholeArray::fits(array, memory_limit(run)) ? WholeArray::load(array) : WholeArray::spool(array);
  Execution execution;
  execution.threads = run.threads;
  CompressOptions options;
  options.bound = asked;
  use_valid_range(array, whole.view(), execution, options);
  const EnforcedBound bound = options.range ? enforced_bound(asked, *options.range)
                                            : enforced_bound(whole.view(), asked, array.fill_bits, execution);
  return {bound.kind, bound.value};
}

std::optional<std::uint32_t> codec_id(const std::string& name) {
  const ArrayCodec* found = builtin_codecs().by_name(name);
  if (found == nullptr) return std::nullopt;
  return found->info().id;
}

}  // namespace quern::cli

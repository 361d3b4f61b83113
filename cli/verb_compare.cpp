// quern compare: quality of array B as a stand-in for array A.
#include <fmt/format.h>

#include "cli/input_array.h"
#include "cli/memory.h"
#include "cli/quality_text.h"
#include "cli/verbs.h"

namespace quern::cli {
namespace {

WholeArray addressable(InputArray& input, std::uint64_t memory) {
  if (WholeArray::fits(input, memory)) return WholeArray::load(input);
  print_note(input.label + ": does not fit in memory; using a temporary file");
  return WholeArray::spool(input);
}

}  // namespace

Exit run_compare(const CompareArgs& args) {
  check_device(args.run);
  if (!args.html.empty()) fail(Exit::usage, "--html: this build has no picture reports; leave it out or use --json");
  const auto& datasets = args.data.datasets;
  InputArray a = open_input(args.a, datasets.empty() ? "" : datasets.front(), args.data);
  InputArray b = open_input(args.b, datasets.empty() ? "" : datasets.back(), args.data);
  if (a.meta.dtype != b.meta.dtype || !(a.meta.shape == b.meta.shape))
    fail(Exit::usage, fmt::format("{} is {} of {}, {} is {} of {}: only arrays of one type and shape can be compared",
                                  a.label, a.meta.shape.text(), dtype_name(a.meta.dtype), b.label, b.meta.shape.text(),
                                  dtype_name(b.meta.dtype)));
  const std::uint64_t memory = memory_limit(args.run);
  const WholeArray first = addressable(a, memory / 3);
  const WholeArray second = addressable(b, memory / 3);
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory;
  QualityOptions options;
  options.validity.fill_bits = a.fill_bits;
  const Quality quality =
      check(measure_quality(first.view(), second.view(), options, execution), Phase::encode, a.label);
  if (args.run.json) {
    Json out;
    out["a"] = a.label;
    out["b"] = b.label;
    out["dtype"] = dtype_name(a.meta.dtype);
    out["shape"] = a.meta.shape.extents();
    add_quality(quality, a.meta.shape, a.meta.dtype, out);
    out["version"] = QUERN_VERSION;
    print_json(out);
  } else if (!args.run.quiet) {
    print_text(fmt::format("{} against {}\n", b.label, a.label) + quality_text(quality, a.meta.shape, a.meta.dtype));
  }
  return Exit::ok;
}

}  // namespace quern::cli

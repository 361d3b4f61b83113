// quern compare: quality of array B as a stand-in for array A.
#include <fmt/format.h>

#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/files/page_file.h"
#include "cli/messages/quality_text.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/suspicions.h"
#include "cli/verbs/verbs.h"

#ifdef QUERN_HAVE_REPORT
#include "cli/report/compare_report.h"
#endif

namespace quern::cli {
namespace {

WholeArray addressable(InputArray& input, std::uint64_t memory) {
  if (WholeArray::fits(input, memory)) return WholeArray::load(input);
  print_note(input.label + ": does not fit in memory; using a temporary file");
  return WholeArray::spool(input);
}

/// Arrays are compared; what a stream does to an array is the work of verify.
void refuse_streams(const CompareArgs& args) {
  const bool first = is_stream_file(args.a);
  if (!first && !is_stream_file(args.b)) return;
  const std::string& stream = first ? args.a : args.b;
  const std::string& original = first ? args.b : args.a;
  fail(Exit::usage, fmt::format("{}: is a quern stream, no array; type quern verify {} {}, or decompress it first",
                                stream, original, stream));
}

#ifdef QUERN_HAVE_REPORT
/// The label without the folder: a report goes to others, who need not know where files lay.
std::string shown_name(const InputArray& input) {
  const std::size_t slash = input.path.rfind('/');
  return slash == std::string::npos ? input.label : input.label.substr(slash + 1);
}

void write_html(const CompareArgs& args, const InputArray& a, const InputArray& b, const WholeArray& first,
                const WholeArray& second, const Quality& quality, const Vector<Suspicion>& suspicions) {
  report::ReportOptions options;
  options.original_name = shown_name(a);
  options.reconstructed_name = shown_name(b);
  if (options.original_name == options.reconstructed_name) {
    options.original_name = a.label;
    options.reconstructed_name = b.label;
  }
  options.variable = a.dataset;
  options.units = a.meta.packed ? "packed units" : io::text_attribute(a.meta, "units");
  options.fill_bits = a.fill_bits;
  for (const Suspicion& s : suspicions) options.facts.emplace_back("suspected", suspicion_text(s, a, args.data));
  const auto suspected = suspected_fills(suspicions);
  options.fill_bits.insert(options.fill_bits.end(), suspected.begin(), suspected.end());
  options.footer = "quern " QUERN_VERSION;
  write_page(args.html, report::compare_report_html(first.view(), second.view(), quality, options), args.force);
}
#endif

}  // namespace

Exit run_compare(const CompareArgs& args) {
  refuse_streams(args);
  check_page({args.a, args.b}, args.html, args.force);
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
  const Vector<Suspicion> suspicions = examine_input(a, first.view(), args.data, args.run);
  const auto suspected = suspected_fills(suspicions);
  options.validity.fill_bits.insert(options.validity.fill_bits.end(), suspected.begin(), suspected.end());
  const Quality quality =
      check(measure_quality(first.view(), second.view(), options, execution), Phase::encode, a.label);
#ifdef QUERN_HAVE_REPORT
  if (!args.html.empty()) write_html(args, a, b, first, second, quality, suspicions);
#endif
  if (args.run.json) {
    Json out;
    out["a"] = a.label;
    out["b"] = b.label;
    out["dtype"] = dtype_name(a.meta.dtype);
    out["shape"] = a.meta.shape.extents();
    add_quality(quality, a.meta.shape, a.meta.dtype, out);
    out["suspicions"] = suspicions_json(suspicions, a, args.data);
    out["version"] = QUERN_VERSION;
    print_json(out);
  } else if (!args.run.quiet) {
    print_text(fmt::format("{} against {}\n", b.label, a.label) + quality_text(quality, a.meta.shape, a.meta.dtype));
    if (!suspected.empty()) print_text("  left out        suspected fill values\n");
  }
  return Exit::ok;
}

}  // namespace quern::cli

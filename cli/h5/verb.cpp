// quern h5: the filter's settings for other tools, and files packed, unpacked and checked.
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/h5/file.h"
#include "cli/h5/values.h"
#include "cli/h5/verb.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

constexpr std::uint32_t kNoMaskSearch = 0x10;
constexpr unsigned kEffortShift = 8;
constexpr unsigned kOwnEffort = 6;  // stored as 0
/// Chunks are written whole and once: the smallest streams of all codecs, and later writes give back what they are
/// handed.
constexpr std::uint32_t kWriteOnce = 0x20;

std::uint32_t use_option(FilterUse use) { return use == FilterUse::write_once ? kWriteOnce : 0; }

Exit print_settings(const H5Args& args) {
  const FilterWords words = filter_words(args.codec, *args.bound, FilterUse::by_others);
  const std::string text = repack_filter(words, args.optional);
  if (!args.run.json) {
    print_text(text + "\n");
    return Exit::ok;
  }
  print_json(Json{{"filter", QUERN_HDF5_FILTER_ID},
                  {"cd_values", words},
                  {"h5repack", text},
                  {"nccopy", fmt::format("{},{}", QUERN_HDF5_FILTER_ID, fmt::join(words, ","))}});
  return Exit::ok;
}

}  // namespace

FilterWords filter_words(const CodecArgs& codec, const ErrorBound& bound, FilterUse use) {
  std::uint32_t id = 0;
  if (codec.codec != "auto") {
    const auto found = codec_id(codec.codec);
    if (!found) fail(Exit::usage, fmt::format("--codec {}: no such codec; see quern list codecs", codec.codec));
    id = *found;
  }
  const std::uint32_t goal = codec.goal == "speed" ? 2 : codec.goal == "psnr" ? 1 : 0;
  const std::uint32_t effort = codec.effort == kOwnEffort ? 0 : codec.effort << kEffortShift;
  FilterWords words(QUERN_HDF5_REQUEST_WORDS);
  if (quern_hdf5_request(static_cast<quern_bound_kind>(bound.kind), bound.value, id,
                         goal | effort | (codec.find_repeated ? 0U : kNoMaskSearch) | use_option(use),
                         words.data()) < 0)
    fail(Exit::usage, h5_reason());
  return words;
}

std::string repack_filter(const FilterWords& words, bool optional) {
  return fmt::format("UD={},{},{},{}", QUERN_HDF5_FILTER_ID, optional ? 1 : 0, words.size(), fmt::join(words, ","));
}

Exit run_h5(const H5Args& args) {
  h5_prepare_command();
  // The filter takes its threads from here; what the user set stays unless -T says otherwise.
  if (args.run.threads != 1) setenv("QUERN_HDF5_THREADS", std::to_string(thread_count(args.run)).c_str(), 1);
  switch (args.work) {
    case H5Work::args: return print_settings(args);
    case H5Work::pack: return pack_file(args);
    case H5Work::unpack: return unpack_file(args);
    case H5Work::check: return check_file(args);
  }
  return Exit::usage;
}

}  // namespace quern::cli

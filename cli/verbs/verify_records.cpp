// quern verify of records: checksums and structure, for there is no array to hold them against.
#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/record_report.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {

Exit run_verify_records(const VerifyArgs& args) {
  const Mapping file = Mapping::of_file(args.stream);
  std::vector<RecordFindings> all;
  bool damaged = false;
  for (const auto& stream : split_streams(file.bytes(), args.stream, false, true)) {
    if (!begins_records(stream))
      fail(Exit::usage, fmt::format("{}: also holds an array, which has an original; type quern info --check {}",
                                    args.stream, args.stream));
    const auto offset = static_cast<std::uint64_t>(stream.data() - file.bytes().data());
    all.push_back(read_record_report(stream, offset, RecordDepth::content, args.run, args.stream));
    damaged = damaged || !all.back().damage.empty();
  }
  if (args.run.json) {
    Json line;
    line["input"] = args.stream;
    line["input_bytes"] = file.bytes().size();
    line["streams"] = Json::array();
    for (const RecordFindings& findings : all) line["streams"].push_back(record_json(findings));
    line["whole"] = !damaged;
    line["version"] = QUERN_VERSION;
    print_json(line);
  } else if (!args.run.quiet) {
    std::string text = fmt::format("{}: {}\n", args.stream, damaged ? "DAMAGED" : "is whole");
    for (const RecordFindings& findings : all) text += record_text(findings);
    print_text(text);
  }
  if (damaged) fail(Exit::stream, args.stream + ": is damaged; restore it from a copy");
  return Exit::ok;
}

}  // namespace quern::cli

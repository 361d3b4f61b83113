// Models of streams.
#include "cli/models/stream_models.h"

#include <string>

#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/files/safe_file.h"
#include "cli/messages/file_report.h"
#include "cli/models/model_errors.h"
#include "cli/models/model_files.h"
#include "cli/streams/stream_file.h"
#include "models/model_file.h"

namespace quern::cli {
namespace {

/// Writes OUT from every stream of the file by `copy`, and says what came of it.
template <class Copy>
void copy_streams(const ModelArgs& args, const Copy& copy) {
  const Mapping file = Mapping::of_file(args.file);
  const auto streams = split_streams(file.bytes(), args.file);
  SafeFile out(args.output, {.replace = args.force});
  FdSink sink(out.descriptor());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string name = streams.size() == 1 ? args.file : fmt::format("{}, step {}", args.file, i);
    const Status done = copy(streams[i], sink, name);
    if (sink.error() != 0) fail(Exit::io, args.output + ": " + errno_text(sink.error()));
    check(done, Phase::decode, name);
  }
  out.commit();
  if (args.json)
    print_json(Json{{"stream", args.output}, {"bytes", sink.bytes()}, {"bytes_before", file.bytes().size()}});
  else
    print_text(fmt::format("{}: {} bytes, {} before\n", args.output, sink.bytes(), file.bytes().size()));
}

/// Puts a model into a folder, unless it is there.
void keep_model(const std::string& folder, std::span<const std::uint8_t> file, const std::string& name) {
  const ModelId id = check_model(models::read_known_model(file), name).id;
  if (ModelFiles({"", {folder}}).find(id).ok()) return;
  SafeFile out(folder + "/" + id_text(id) + ".qmodel", {});
  if (!write_all(out.descriptor(), file)) fail_errno(folder, "write");
  out.commit();
}

}  // namespace

Exit embed_models(const ModelArgs& args) {
  if (!args.models.file.empty()) static_cast<void>(model_id_of(args.models.file));
  const ModelFiles models(args.models);
  copy_streams(args, [&](std::span<const std::uint8_t> stream, ByteSink& out, const std::string& /*name*/) {
    return embed_model(stream, models, out);
  });
  return Exit::ok;
}

Exit take_out_models(const ModelArgs& args) {
  const std::string& folder = args.models.stores.front();
  static_cast<void>(list_model_files(folder));
  copy_streams(args, [&](std::span<const std::uint8_t> stream, ByteSink& out, const std::string& name) -> Status {
    QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> file, take_out_model(stream, out));
    keep_model(folder, file, name);
    return {};
  });
  return Exit::ok;
}

}  // namespace quern::cli

// Models that options name.
#include "cli/models/model_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/messages/messages.h"
#include "cli/models/model_errors.h"
#include "models/model_file.h"
#include "models/sha256.h"

namespace quern::cli {
namespace {

struct CodecsInUse {
  explicit CodecsInUse(const ModelArguments& arguments) : files(arguments), with_models(files) {}
  ModelFiles files;
  CodecsWithModels with_models;
};

/// Where codecs() looks: set once, before a verb runs.
std::unique_ptr<CodecsInUse>& in_use() {
  static std::unique_ptr<CodecsInUse> codecs;
  return codecs;
}

models::KnownModel read_model(const std::string& path) {
  const Mapping file = Mapping::of_file(path);
  return check_model(models::read_known_model(file.bytes()), path);
}

Result<Vector<std::uint8_t>> bytes_of_model(const std::string& path, const ModelId& id) {
  const Mapping file = Mapping::of_file(path);
  QUERN_ASSIGN_OR_RETURN(const models::KnownModel model, models::read_known_model(file.bytes()));
  if (model.id != id) return Status(StatusCode::missing_model, "another model");
  const auto bytes = file.bytes();
  return Vector<std::uint8_t>(bytes.begin(), bytes.end());
}

}  // namespace

std::string id_text(const ModelId& id) {
  models::Digest digest{};
  std::copy(id.begin(), id.end(), digest.begin());
  return models::hex(digest).substr(0, 2 * id.size());
}

ModelFiles::ModelFiles(ModelArguments arguments) : arguments_(std::move(arguments)) {}

Result<Vector<std::uint8_t>> ModelFiles::find(const ModelId& id) const {
  std::vector<std::string> paths;
  if (!arguments_.file.empty()) paths.push_back(arguments_.file);
  // What cannot be read matters only where no other file has the model.
  std::vector<std::string> unread;
  for (const std::string& folder : arguments_.stores) {
    try {
      const std::vector<std::string> found = list_model_files(folder);
      paths.insert(paths.end(), found.begin(), found.end());
    } catch (const CliError& error) {
      unread.emplace_back(error.what());
    }
  }
  for (const std::string& path : paths) {
    try {
      auto bytes = bytes_of_model(path, id);
      if (bytes.ok()) return bytes;
    } catch (const CliError& error) {
      unread.emplace_back(error.what());
    }
  }
  for (const std::string& problem : unread) print_note(problem);
  return Status(StatusCode::missing_model, "the stream needs its model, which was not found");
}

std::vector<std::string> list_model_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    if (at->path().extension() == ".qmodel" && at->is_regular_file()) paths.push_back(at->path().string());
  if (problem) fail(Exit::io, folder + ": cannot be read: " + problem.message() + "; name a folder of .qmodel files");
  std::sort(paths.begin(), paths.end());
  return paths;
}

void use_models(const ModelArguments& arguments) {
  if (!arguments.file.empty()) static_cast<void>(model_id_of(arguments.file));
  for (const std::string& folder : arguments.stores) static_cast<void>(list_model_files(folder));
  if (!arguments.file.empty() || !arguments.stores.empty()) in_use() = std::make_unique<CodecsInUse>(arguments);
}

const Registry& codecs() { return in_use() ? in_use()->with_models.registry() : builtin_codecs(); }

std::string model_id_of(const std::string& path) { return id_text(read_model(path).id); }

bool can_embed(const std::string& path) { return read_model(path).decoding.size() <= models::kMostEmbeddedBytes; }

}  // namespace quern::cli

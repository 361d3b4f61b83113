// Models of learned codecs in files and folders, and the codecs that find theirs there.
#pragma once

#include <string>
#include <vector>

#include <quern/codec.h>
#include <quern/models.h>

#include "cli/args/run_args.h"

namespace quern::cli {

/// 32 hexadecimal digits.
std::string id_text(const ModelId& id);

/// Model files: those of --model, then the .qmodel files of --model-store in the order of their names. Files are looked
/// into when a model is asked for; those of a folder that are no models of codecs are passed over.
class ModelFiles final : public ModelSource {
 public:
  explicit ModelFiles(ModelArguments arguments);
  Result<Vector<std::uint8_t>> find(const ModelId& id) const override;

 private:
  ModelArguments arguments_;
};

/// Model files of a folder, by name. Throws CliError when it cannot be read.
std::vector<std::string> list_model_files(const std::string& folder);

/// Sets where codecs() finds models; once, before a verb runs. Throws CliError where --model or --model-store names
/// nothing that can be read, or a file that is no model of a codec.
void use_models(const ModelArguments& arguments);
/// The codecs of this build, with the models that use_models named.
const Registry& codecs();

/// Id of the model that --model names. Throws CliError.
std::string model_id_of(const std::string& file);

/// Whether what decoding takes of a model is small enough for streams. Throws CliError.
bool can_embed(const std::string& file);

}  // namespace quern::cli

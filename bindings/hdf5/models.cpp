#include "bindings/hdf5/models.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {
namespace {

/// No model file is larger (docs/format-model.md).
constexpr std::size_t kMostBytes = std::size_t{1} << 24;

/// Of a model file that a context took. Behind magic and version stands the kind, which is 3 for codec stencil
/// (docs/format-model.md, chapter 1).
bool is_for_stencil(const std::vector<char>& bytes) { return bytes.size() > 11 && bytes[10] == 3 && bytes[11] == 0; }

std::string in_error(const std::string& path) { return "QUERN_MODELS names " + path + ", which "; }

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes(file ? kMostBytes + 1 : 0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.eof() || file.bad())
    throw Problem(Trouble::request, in_error(path) + (file ? "is no model file: it is too large"
                                                           : "cannot be read: name .qmodel files, or unset it"));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

const std::string& EncodingModels::of_codec(const std::string& codec) const {
  static const std::string none;
  return codec == "autoencoder" ? autoencoder : codec == "stencil" ? stencil : none;
}

EncodingModels add_models(quern_context& context) {
  const char* const text = std::getenv("QUERN_MODELS");  // NOLINT(concurrency-mt-unsafe): only read
  EncodingModels first;
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::size_t end = rest.find(':');
    const std::string path(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (path.empty()) continue;
    const std::vector<char> bytes = read_file(path);
    std::array<char, QUERN_MODEL_ID_SIZE> id{};
    if (quern_context_add_model(&context, bytes.data(), bytes.size(), id.data()) != QUERN_OK)
      throw Problem(Trouble::request,
                    in_error(path) + "is no model of codec autoencoder or stencil: " + quern_last_error(&context));
    std::string& encodes = is_for_stencil(bytes) ? first.stencil : first.autoencoder;
    if (encodes.empty()) encodes = id.data();
  }
  return first;
}

}  // namespace quern::hdf5

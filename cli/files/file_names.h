// How outputs are named after inputs.
#pragma once

#include <string>

namespace quern::cli {

inline constexpr const char* kStreamSuffix = ".qn";

/// The text of an environment variable; empty when it is not set.
std::string environment(const char* name);
/// Folder of temporary files: TMPDIR, or /tmp.
std::string temporary_folder();
bool is_directory(const std::string& path);
/// Whether anything has that name, a link that leads nowhere among it.
bool is_there(const std::string& path);
/// The part after the last slash.
std::string base_name(const std::string& path);
/// "model.nc" and "ocean/temp" give "model.ocean.temp.qn", in the folder of `path`.
std::string variable_output(const std::string& path, const std::string& variable);
/// `name` in `folder`.
std::string in_folder(const std::string& folder, const std::string& name);
/// IN without its ".qn"; throws CliError (usage) when it has none.
std::string restored_name(const std::string& path);

}  // namespace quern::cli

// What quern doctor says of the HDF5 plugin.
#pragma once

#include <string>
#include <vector>

namespace quern::cli {

struct PluginState {
  bool available = false;            ///< HDF5 finds and loads it
  std::vector<std::string> folders;  ///< where this HDF5 looks, in its order
  std::string text;                  ///< one line: found or not, why not, and what to set
};

/// The line to type so that other programs find the plugin: an export of HDF5_PLUGIN_PATH; before it, in a build tree
/// that has no plugin yet, the command that builds it.
std::string plugin_advice();

/// Lets this process read datasets that use the filter, wherever plugins are looked for. Nothing in a build without
/// HDF5.
void prepare_filter();

/// Asks HDF5 itself. In a build without HDF5 `text` says so.
PluginState examine_plugin();

}  // namespace quern::cli

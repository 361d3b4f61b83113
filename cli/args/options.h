// How options are added to a verb. Internal to the argument layer.
#pragma once

#include "cli/args/raw_args.h"

namespace quern::cli {

/// A verb with its inputs, called `inputs` in the help text.
inline CLI::App& add_verb(CLI::App& program, RawArgs& raw, const char* name, const char* what, const char* inputs,
                          const char* inputs_are) {
  CLI::App& verb = *program.add_subcommand(name, what);
  verb.add_option(inputs, raw.files, inputs_are)->required()->type_name("");
  return verb;
}

inline void add_value(CLI::App& verb, const char* names, std::string& value, const char* type, const char* what) {
  verb.add_option(names, value, what)->type_name(type);
}

/// An option that may be given several times, each time with one value.
inline void add_repeatable(CLI::App& verb, const char* names, std::vector<std::string>& values, const char* type,
                           const std::string& what) {
  verb.add_option(names, values, what)->type_name(type)->allow_extra_args(false);
}

}  // namespace quern::cli

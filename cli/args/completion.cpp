// Completion scripts, generated from the program's definition so that they cannot fall behind it.
#include <fmt/format.h>

#include "cli/args/raw_args.h"

namespace quern::cli {
namespace {

/// Fixed answers of options and of the positional argument of some verbs.
struct Answers {
  std::string codecs;  ///< "auto" and all names

  explicit Answers(const std::vector<std::string>& names) : codecs("auto") {
    for (const std::string& name : names) codecs += " " + name;
  }
  /// Null where there are none.
  const char* of(const std::string& name) const;
};

const char* Answers::of(const std::string& name) const {
  if (name == "--type") return "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64";
  if (name == "--order") return "C F";
  if (name == "--codec") return codecs.c_str();
  if (name == "--goal") return "ratio psnr speed";
  if (name == "--device") return "auto cpu cuda";
  if (name == "--progress") return "auto always never";
  if (name == "h5") return "args pack unpack check";
  if (name == "checkpoint")
    return "save load ls info diff verify repair compact gc convert export bench tiers place keeper";
  if (name == "lidar") return "compress decompress info verify compare bench history";
  if (name == "offload") return "bench";
  if (name == "history") return "init add ls stat gc verify parity repair bundle";
  if (name == "--mode") return "set points exact";
  if (name == "--format") return "bin pcd ply npy las";
  if (name == "list") return "codecs devices";
  if (name == "completion") return "bash zsh fish";
  return nullptr;
}

struct OptionWords {
  std::string short_name;  ///< "-t" or empty
  std::string long_name;   ///< "--type"
  std::string description;
  bool takes_value = false;
};

void collect(const CLI::App& app, std::vector<OptionWords>& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    OptionWords words;
    if (!option->get_snames().empty()) words.short_name = "-" + option->get_snames().front();
    words.long_name = "--" + option->get_lnames().front();
    words.description = option->get_description();
    words.takes_value = option->get_items_expected_max() > 0;
    out.push_back(std::move(words));
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); }))
    collect(*group, out);
}

std::vector<const CLI::App*> verbs_of(const CLI::App& program) {
  std::vector<const CLI::App*> out;
  for (const CLI::App* verb : program.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); }))
    out.push_back(verb);
  return out;
}

std::string long_names(const CLI::App& app) {
  std::vector<OptionWords> options;
  collect(app, options);
  std::string names;
  for (const auto& option : options) names += option.long_name + " ";
  return names;
}

std::string bash_script(const CLI::App& program, const Answers& answers) {
  std::string verbs, cases, values;
  for (const CLI::App* verb : verbs_of(program)) {
    verbs += verb->get_name() + " ";
    std::string names = long_names(*verb);
    if (const char* words = answers.of(verb->get_name())) names += words;
    const auto works = verbs_of(*verb);
    if (works.empty()) {
      cases += fmt::format("    {}) words=\"{}\" ;;\n", verb->get_name(), names);
      continue;
    }
    cases += fmt::format("    {}) case \"${{COMP_WORDS[2]}}\" in\n", verb->get_name());
    for (const CLI::App* work : works)
      cases += fmt::format("      {}) words=\"{}{}\" ;;\n", work->get_name(), long_names(*work),
                           verbs_of(*work).empty() ? "" : answers.of(work->get_name()));
    cases += fmt::format("      esac\n      [ \"$COMP_CWORD\" -eq 2 ] && words=\"{}\" ;;\n", names);
  }
  for (const char* name : {"--type", "--order", "--codec", "--goal", "--device", "--progress"})
    values +=
        fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n", name, answers.of(name));
  return fmt::format(R"(_quern() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}--help --version" -- "$current")); return
  fi
  case "$previous" in
{}  esac
  case "${{COMP_WORDS[1]}}" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _quern quern
)",
                     verbs, values, cases);
}

/// Text inside single quotes, with what zsh and fish treat specially taken out.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

/// A call of _arguments for one verb, or one work of a verb.
std::string zsh_arguments(const CLI::App& app, const Answers& answers) {
  std::vector<OptionWords> options;
  collect(app, options);
  std::string out = "_arguments";
  for (const auto& option : options) {
    const char* words = answers.of(option.long_name);
    const std::string value = !option.takes_value ? ""
                              : words != nullptr  ? fmt::format(":value:({})", words)
                                                  : ":value:_files";
    out += fmt::format(" \\\n        '*{}[{}]{}'", option.long_name, quoted(option.description), value);
  }
  const char* words = answers.of(app.get_name());
  return out + (words != nullptr ? fmt::format(" \\\n        '*:what:({})' ;;\n", words)
                                 : std::string(" \\\n        '*:file:_files' ;;\n"));
}

std::string zsh_script(const CLI::App& program, const Answers& answers) {
  std::string verbs, cases;
  for (const CLI::App* verb : verbs_of(program)) {
    verbs += fmt::format("    '{}:{}'\n", verb->get_name(), quoted(verb->get_description()));
    const auto works = verbs_of(*verb);
    cases += fmt::format("    {})\n      ", verb->get_name());
    if (!works.empty()) cases += "case $words[2] in\n";
    for (const CLI::App* work : works)
      cases +=
          fmt::format("      {}) shift words; (( CURRENT-- )); {}", work->get_name(), zsh_arguments(*work, answers));
    if (!works.empty()) cases += "      *) ";
    cases += zsh_arguments(*verb, answers);
    if (!works.empty()) cases += "      esac ;;\n";
  }
  return fmt::format(R"(#compdef quern
_quern() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'verb' verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
compdef _quern quern
)",
                     verbs, cases);
}

std::string fish_options(const CLI::App& app, const std::string& condition, const Answers& answers) {
  std::vector<OptionWords> options;
  collect(app, options);
  std::string out;
  for (const auto& option : options) {
    out += fmt::format("complete -c quern {} -l {}", condition, option.long_name.substr(2));
    if (!option.short_name.empty()) out += " -s " + option.short_name.substr(1);
    if (const char* words = answers.of(option.long_name))
      out += fmt::format(" -x -a '{}'", words);
    else if (option.takes_value)
      out += " -r";
    out += fmt::format(" -d '{}'\n", quoted(option.description));
  }
  return out;
}

std::string fish_script(const CLI::App& program, const Answers& answers) {
  std::string out;
  for (const CLI::App* verb : verbs_of(program)) {
    out += fmt::format("complete -c quern -n __fish_use_subcommand -f -a {} -d '{}'\n", verb->get_name(),
                       quoted(verb->get_description()));
    const std::string condition = fmt::format("-n '__fish_seen_subcommand_from {}'", verb->get_name());
    out += fish_options(*verb, condition, answers);
    if (const char* words = answers.of(verb->get_name()))
      out += fmt::format("complete -c quern {} -f -a '{}'\n", condition, words);
    for (const CLI::App* work : verbs_of(*verb))
      out += fish_options(*work,
                          fmt::format("-n '__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'",
                                      verb->get_name(), work->get_name()),
                          answers);
  }
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& program, const RawArgs& raw) {
  const Answers answers(raw.codecs);
  if (raw.what == "bash") return bash_script(program, answers);
  if (raw.what == "zsh") return zsh_script(program, answers);
  return fish_script(program, answers);
}

}  // namespace quern::cli

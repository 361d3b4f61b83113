// Descriptions are wrapped, and option groups are shown as what they are: the choice of a bound.
#include "cli/args/help_text.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace quern::cli {
namespace {

constexpr std::size_t kColumn = 32;  // where descriptions begin
constexpr std::size_t kWidth = 100;

void new_line(std::string& out, std::size_t& at, std::size_t indent) {
  out += '\n';
  out.append(indent, ' ');
  at = indent;
}

/// Adds words to a line that has `at` columns already; the lines that follow are indented.
void add_words(std::string& out, std::size_t& at, std::string_view words, std::size_t indent) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (at > indent && at + 1 + word.size() > kWidth) new_line(out, at, indent);
    if (at > indent) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
}

/// One entry: what is written in the first column, and words that are wrapped in the second.
std::string entry(const std::string& name, std::string_view description) {
  std::string out = "  ";
  out += name;
  std::size_t at = out.size();
  if (at + 1 < kColumn) {
    out.append(kColumn - at, ' ');
    at = kColumn;
  } else {
    new_line(out, at, kColumn);
  }
  add_words(out, at, description, kColumn);
  out += '\n';
  return out;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string out = make_description(app) + make_usage(app, name);
    for (const CLI::App* group : groups_of(app)) {
      out += "\nBOUND, " + group->get_description() + ":\n";
      for (const CLI::Option* option : group->get_options())
        if (option != group->get_help_ptr()) out += make_option(option, false);
    }
    out += make_positionals(app) + make_groups(app, CLI::AppFormatMode::Normal) + make_verbs(app);
    return out + "\n" + make_footer(app);
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string bound;
    for (const CLI::App* group : groups_of(app))
      bound = group->get_description() == "exactly one" ? " BOUND" : " [BOUND]";
    std::string usage = CLI::Formatter::make_usage(app, name);
    const std::size_t options = usage.find(" [OPTIONS]");
    return options == std::string::npos ? usage : usage.insert(options, bound);
  }

  /// Lines that do not begin with a space are prose.
  std::string make_footer(const CLI::App* app) const override {
    std::string out;
    const std::string footer = app->get_footer();
    std::string_view text = footer;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.starts_with(' ')) {
        out += line;
      } else {
        std::size_t at = 0;
        add_words(out, at, line, 0);
      }
      out += '\n';
    }
    return out;
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string options = make_option_opts(option);
    return entry(make_option_name(option, is_positional) + (is_positional ? "" : options), make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App* verb) const override {
    return entry(verb->get_name(), verb->get_description());
  }

 private:
  static std::vector<const CLI::App*> groups_of(const CLI::App* app) {
    return app->get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); });
  }

  std::string make_verbs(const CLI::App* app) const {
    const auto verbs = app->get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
    if (verbs.empty()) return {};
    std::string out = app->get_parent() == nullptr ? "\nVerbs:\n" : "\nWorks:\n";
    for (const CLI::App* verb : verbs) out += make_subcommand(verb);
    return out;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "VERB");
  formatter->label("Positionals", "Arguments");
  return formatter;
}

std::string one_line(std::string message, const CLI::App& program) {
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::string out;
  for (const char c : message) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    if (c == '\n') {
      out += "; ";
    } else {
      out += control ? '?' : c;
    }
  }
  const auto verbs = program.get_subcommands();
  return out + (verbs.empty() ? "; see quern --help" : "; see quern " + verbs.front()->get_name() + " --help");
}

}  // namespace quern::cli

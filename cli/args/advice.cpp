// Tables of habits.
#include "cli/args/advice.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace quern::cli {
namespace {

constexpr const char* kVerbs =
    "compress, decompress, info, verify, compare, bench, estimate, model, train, h5, checkpoint, lidar, offload, list, "
    "doctor "
    "or completion";

struct Habit {
  const char* word;
  const char* verb;
};
/// What other programs call it.
constexpr std::array kHabits{Habit{"-d", "decompress"},
                             Habit{"--decompress", "decompress"},
                             Habit{"-x", "decompress"},
                             Habit{"extract", "decompress"},
                             Habit{"uncompress", "decompress"},
                             Habit{"unpack", "decompress"},
                             Habit{"decode", "decompress"},
                             Habit{"-z", "compress"},
                             Habit{"--compress", "compress"},
                             Habit{"pack", "compress"},
                             Habit{"encode", "compress"},
                             Habit{"-l", "info"},
                             Habit{"--list", "info"},
                             Habit{"inspect", "info"},
                             Habit{"show", "info"},
                             Habit{"-t", "info --check"},
                             Habit{"--test", "info --check"},
                             Habit{"test", "info --check"},
                             Habit{"check", "info --check"},
                             Habit{"-b", "bench"},
                             Habit{"benchmark", "bench"},
                             Habit{"diff", "compare"},
                             Habit{"args", "h5 args"},
                             Habit{"codecs", "list codecs"},
                             Habit{"devices", "list devices"}};

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> with_plain_options(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "version" && words.size() == 1) return {"--version"};
  if (words.front() != "help" && words.front() != "-h" && words.front() != "--help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

std::string no_such_verb(const std::string& word, const std::vector<std::string>& rest) {
  const std::string file = rest.empty() ? "FILE" : rest.front();
  const auto* habit = std::find_if(kHabits.begin(), kHabits.end(), [&](const Habit& h) { return h.word == word; });
  if (habit != kHabits.end()) {
    const std::string verb = habit->verb;
    const bool takes_file = !verb.starts_with("list") && verb != "h5 args";
    const std::string bound = verb == "compress" ? " --rel 1e-3" : "";
    return fmt::format("{} is no verb; type quern {}{}{}", word, verb, bound, takes_file ? " " + file : "");
  }
  if (word.ends_with(".qn"))
    return fmt::format("{} is no verb; to bring it back, type quern decompress {}", word, word);
  if (word.find_first_of("./") != std::string::npos && !word.starts_with('-'))
    return fmt::format("{} is no verb; to compress it, type quern compress --rel 1e-3 {}", word, word);
  return fmt::format("{} is no verb; use {}", word, kVerbs);
}

std::string missing_after(std::string_view verb, std::string_view work, const std::string& missing) {
  if (work == "history")
    return "a word is missing after lidar history; type quern lidar history init, add, ls, stat, gc, verify, parity, "
           "repair or bundle";
  if (!work.empty()) {
    const bool is_option = missing.starts_with('-');
    return fmt::format("{} is missing after {} {}{}", is_option ? missing : "a file or word (" + missing + ")", verb,
                       work, missing == "--store" ? ": name the store's folder, as in --store runs/a" : "");
  }
  if (verb == "compress")
    return "a file is missing after compress; type quern compress --rel 1e-3 FILE, with - for standard input";
  if (verb == "decompress" || verb == "info")
    return fmt::format("a file is missing after {}; type quern {} FILE.qn", verb, verb) +
           (verb == "decompress" ? ", with - for standard input" : "");
  if (verb == "verify") return "two files are missing after verify; type quern verify ORIGINAL FILE.qn";
  if (verb == "compare") return "two files are missing after compare; type quern compare A B";
  if (verb == "bench") return "a file is missing after bench; type quern bench FILE";
  if (verb == "h5") return "a word is missing after h5; type quern h5 args, pack, unpack or check";
  if (verb == "checkpoint")
    return "a word is missing after checkpoint; type quern checkpoint save, load, ls, info, diff, verify, repair, "
           "compact, gc, convert, export, bench, tiers, place or keeper";
  if (verb == "lidar")
    return "a word is missing after lidar; type quern lidar compress, decompress, info, verify, compare, bench or "
           "history";
  if (verb == "offload") return "a word is missing after offload; type quern offload bench";
  if (verb == "list") return "a word is missing after list; type quern list codecs or quern list devices";
  if (verb == "completion") return "a word is missing after completion; type quern completion bash, zsh or fish";
  return fmt::format("{} is missing after {}", missing, verb);
}

std::string no_levels(const std::vector<std::string>& files) {
  for (const std::string& word : files) {
    if (!word.starts_with('-') || !is_digits(std::string_view(word).substr(1))) continue;
    return fmt::format(
        "{}: there are no levels; the bound decides the size; --effort 1 to 9 says how much time the search for a "
        "small "
        "stream may take, and --goal speed takes the fast codec",
        word);
  }
  return {};
}

std::string stray_extent(const std::string& shape, const std::vector<std::string>& files) {
  if (files.empty() || !is_digits(shape)) return {};
  std::string whole = shape;
  std::string spaced = shape;
  for (const std::string& file : files) {
    if (!is_digits(file)) break;
    whole += "x" + file;
    spaced += " " + file;
  }
  if (whole == shape) return {};
  return fmt::format("-s {}: join the extents by x, as in -s {} (a file of that name is ./{})", spaced, whole,
                     files.front());
}

}  // namespace quern::cli

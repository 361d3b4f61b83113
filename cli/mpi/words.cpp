// Options of quern are told from inputs by quern's own definition of its verbs.
#include "cli/mpi/words.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/raw_args.h"

namespace quern::cli::mpi {
namespace {

struct Verb {
  const char* name;
  Work work;
  std::vector<std::string> words;  ///< of quern
};

const std::array<Verb, 4>& verbs() {
  static const std::array<Verb, 4> all = {{{"compress", Work::compress, {"compress"}},
                                           {"decompress", Work::decompress, {"decompress"}},
                                           {"verify", Work::verify, {"verify"}},
                                           {"h5-pack", Work::h5_pack, {"h5", "pack"}}}};
  return all;
}

/// Walks over the words, one option or input at a time.
class Words {
 public:
  Words(const std::vector<std::string>& words, std::size_t first) : words_(words), at_(first) {}

  bool more() const { return at_ < words_.size(); }
  const std::string& next() { return words_[at_++]; }
  /// The value of the option `word`: behind its "=", or the next word.
  std::string value(const std::string& word) {
    if (const std::size_t equals = word.find('='); word.starts_with("--") && equals != std::string::npos)
      return word.substr(equals + 1);
    if (!more()) fail(Exit::usage, word + ": needs a value");
    return next();
  }

 private:
  const std::vector<std::string>& words_;
  std::size_t at_;
};

std::string name_of(const std::string& word) { return word.starts_with("--") ? word.substr(0, word.find('=')) : word; }

/// Takes an option of quern-mpi; false for others.
bool take_own(const std::string& word, Words& words, Request& out) {
  const std::string name = name_of(word);
  if (name == "-r" || name == "--recursive") {
    out.many.recursive = true;
  } else if (name == "--files-from") {
    out.many.files_from = words.value(word);
  } else if (name == "--journal") {
    out.journal = words.value(word);
  } else if (name == "-o" || name == "--output") {
    out.output = words.value(word);
  } else if (name == "--json") {
    out.json = true;
  } else if (name == "-q" || name == "--quiet") {
    out.quiet = true;
  } else if (name == "-v" || name == "--verbose") {
    out.verbose = true;
  } else {
    return false;
  }
  return true;
}

/// Options that make no sense for many files over many ranks.
void refuse(const std::string& name) {
  if (name == "-c" || name == "--stdout" || name == "--append" || name == "--skip-existing" || name == "--region" ||
      name == "--range")
    fail(Exit::usage, name + ": not over MPI" +
                          (name == "--skip-existing" ? "; the journal knows what is done already" : "; use quern"));
}

/// Whether quern's verb has the option, and a value goes with it.
bool takes_value(const CLI::App& verb, const std::string& word) {
  const std::string name = name_of(word);
  if (const CLI::Option* option = verb.get_option_no_throw(name); option != nullptr)
    return option->get_items_expected_max() > 0 && word.find('=') == std::string::npos;
  // "-tf32": the value hangs on.
  if (!word.starts_with("--") && word.size() > 2 && verb.get_option_no_throw(word.substr(0, 2)) != nullptr)
    return false;
  fail(Exit::usage,
       fmt::format("{}: quern {} has no such option; see quern {} --help", word, verb.get_name(), verb.get_name()));
}

/// Reads the options as quern does, so that a wrong one is refused once and not by every rank.
DataArgs check_options(const Request& request, const Verb& verb) {
  std::vector<std::string> words = {"quern"};
  words.insert(words.end(), verb.words.begin(), verb.words.end());
  words.insert(words.end(), request.passed.begin(), request.passed.end());
  words.emplace_back("INPUT");
  if (request.work == Work::verify) words.emplace_back("STREAM");
  if (request.work == Work::h5_pack) words.insert(words.end(), {"-o", "OUTPUT"});
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  Command command;
  std::string message;
  if (parse_only(static_cast<int>(pointers.size()), pointers.data(), {}, command, message) != 0)
    fail(Exit::usage, message);
  return request.work == Work::verify ? command.verify.data : command.compress.data;
}

}  // namespace

Request read_words(const std::vector<std::string>& words) {
  if (words.empty()) fail(Exit::usage, "say what to do: quern-mpi compress, decompress, verify or h5-pack; see --help");
  const auto verb =
      std::find_if(verbs().begin(), verbs().end(), [&](const Verb& v) { return words.front() == v.name; });
  if (verb == verbs().end())
    fail(Exit::usage, words.front() + ": quern-mpi does compress, decompress, verify and h5-pack; see --help");
  RawArgs raw;
  const auto program = define_program(raw);
  const CLI::App& options = *program->get_subcommand(verb->words.front());
  Request out;
  out.work = verb->work;
  Words left(words, 1);
  while (left.more()) {
    const std::string word = left.next();
    if (word == "-" || !word.starts_with('-')) {
      out.inputs.push_back(word);
      continue;
    }
    if (take_own(word, left, out)) continue;
    refuse(name_of(word));
    if (name_of(word) == "--progress") {
      const std::string when = left.value(word);
      if (when != "auto" && when != "always" && when != "never")
        fail(Exit::usage, "--progress " + when + ": use auto, always or never");
      out.progress = when == "always"  ? ProgressMode::always
                     : when == "never" ? ProgressMode::never
                                       : ProgressMode::automatic;
      continue;
    }
    out.passed.push_back(word);
    if (takes_value(options, word)) out.passed.push_back(left.value(word));
  }
  if (out.inputs.empty() && out.many.files_from.empty())
    fail(Exit::usage, "no file was named; give folders with -r, files, or --files-from LIST");
  if (std::find(out.inputs.begin(), out.inputs.end(), "-") != out.inputs.end() || out.many.files_from == "-")
    fail(Exit::usage, "-: ranks have no standard input; name files");
  if (out.output.empty() || out.output == "-")
    fail(Exit::usage, out.work == Work::verify ? "name the folder of the streams with -o FOLDER"
                                               : "name the folder that outputs go to with -o FOLDER");
  out.data = check_options(out, *verb);
  return out;
}

const char* usage_text() {
  return "usage: mpirun -n N quern-mpi VERB [OPTIONS of quern VERB] IN... -o FOLDER\n"
         "Does what quern does for each of many files, on all ranks of an MPI job: whichever rank is free takes the "
         "next\n"
         "file. A journal remembers what is done: after a job was killed the same command does only what is left.\n"
         "\n"
         "  compress     arrays, as quern compress; FOLDER gets the tree of the inputs\n"
         "  decompress   streams, as quern decompress\n"
         "  verify       originals against the streams that compress wrote into FOLDER\n"
         "  h5-pack      HDF5 and netCDF-4 files, as quern h5 pack\n"
         "\n"
         "  -r                 folders among IN stand for the files below them\n"
         "  --files-from LIST  more inputs, one a line or each ended by a zero byte\n"
         "  -o FOLDER          where outputs go; it is made if it is missing\n"
         "  --journal FILE     [FOLDER/quern-mpi.journal]\n"
         "  --json             quern's JSON line of each file on standard output\n"
         "  -q, -v             only errors; also a line for each file\n"
         "\n"
         "-T says how many threads each rank uses [1]. The quern beside quern-mpi is run, else the one on PATH.\n"
         "The exit code is 0, or that of the first file that failed; a file that fails does not stop the others.\n"
         "\n"
         "Examples:\n"
         "  mpirun -n 64 quern-mpi compress --rel 1e-4 -r run/ -o small/\n"
         "  mpirun -n 64 quern-mpi verify -r run/ -o small/\n"
         "  srun quern-mpi h5-pack --rel 1e-4 -r run/ -o packed/\n";
}

}  // namespace quern::cli::mpi

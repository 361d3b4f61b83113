// Options of quern offload, and how their texts are read.
#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/options.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

/// "DIR" or "DIR=RATE", as in /nvme0=100M; a folder whose name has a '=' needs a rate, or =0.
OffloadFolder read_folder(const std::string& text) {
  OffloadFolder folder{text, 0};
  if (const auto at = text.rfind('='); at != std::string::npos) {
    const std::string_view rate = std::string_view(text).substr(at + 1);
    if (rate != "0") folder.rate = static_cast<double>(parse_size(rate, "--folder DIR=RATE"));
    folder.path = text.substr(0, at);
  }
  while (folder.path.size() > 1 && folder.path.back() == '/') folder.path.pop_back();
  if (folder.path.empty()) fail(Exit::usage, "--folder: the folder's name is empty");
  return folder;
}

/// "raw", or bits with what is special behind dashes, as in 8-coarse-packed.
OffloadForm read_form(const std::string& text) {
  OffloadForm form;
  form.name = text;
  if (text == "raw") return form;
  std::string_view rest = text;
  const auto take = [&](std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  };
  form.bits = take("8") ? 8 : take("4") ? 4 : 0;
  form.finest = !take("-coarse");
  if (take("-packed"))
    form.files = offload::FileForm::packed;
  else if (take("-measured"))
    form.files = offload::FileForm::measured;
  if (form.bits != 0 && rest.empty()) return form;
  fail(Exit::usage, fmt::format("--forms {}: use raw, 8 or 4, and behind the bits -coarse, then -packed or -measured, "
                                "as in --forms raw,8,8-packed",
                                text));
}

std::uint64_t read_values(const std::string& text, const char* what, std::uint64_t usual) {
  if (text.empty()) return usual;
  const std::uint64_t values = parse_size(text, what);
  if (values > UINT64_C(1) << 40) fail(Exit::usage, fmt::format("{} {}: give at most 2^40", what, text));
  return values;
}

}  // namespace

void define_offload(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = *program.add_subcommand("offload", "optimizer state in folders: a bench of its steps");
  verb.require_subcommand(1);
  CLI::App& work = *verb.add_subcommand("bench", "measure steps of Adam whose state lies in folders");
  add_repeatable(work, "--folder", raw.folders, "DIR=RATE",
                 "folder for the state, and bytes a second in each direction, as of a slower disk; repeatable [.]");
  add_value(work, "--parameters", raw.parameters, "N", "values that are trained [4M]");
  add_value(work, "--subgroup", raw.subgroup, "N", "values that are read, updated and written at once [64K]");
  add_value(work, "--memory", raw.memory, "SIZE",
            "bytes of subgroups in memory [an eighth of the state in binary32, at least four subgroups; 4 MiB more for "
            "each folder with -packed or -measured]");
  add_value(work, "--forms", raw.forms, "LIST",
            "how the state lies: raw (binary32), 8, 4 (bits of a code), 8-packed and so on [raw,8,4]");
  add_value(work, "--steps", raw.step, "N", "steps of each form that are measured, after two others [3]");
  add_value(work, "--html", raw.html, "FILE", "a page with the timeline of the last step of each form");
  work.add_flag("-f,--force", raw.force, "replace an existing page");
  add_value(work, "-T,--threads", raw.threads, "N", "threads that update; 0 = all [1]");
  add_value(work, "--progress", raw.progress, "WHEN", "auto (on a terminal), always or never [auto]");
  work.add_flag("-q,--quiet", raw.quiet, "only errors");
  work.add_flag("--json", raw.json, "one JSON object on standard output");
  work.footer(
      "Beside the forms stands Adam in binary32 in memory, without folders. raw is what swappers of optimizer\n"
      "state do: 12 bytes a value, read ahead and written behind. Behind 8 or 4 may follow -coarse (the coarsest\n"
      "steps, which pack best), then -packed (files are entropy coded) or -measured (where that is faster, as\n"
      "optimizers do it). Coding takes 4 MiB of the memory for each folder; -measured codes nothing where that is\n"
      "more than an eighth of it: give --memory 32M or more for each folder.\n"
      "Folders of the bench are made inside of DIR and removed.\n"
      "What follows the last '=' of --folder is the rate: a DIR whose name has a '=' needs one, as in a=b=100M,\n"
      "and =0 is none. K, M and G count by 1024.\n"
      "Examples:\n"
      "  quern offload bench --folder /tmp=100M --parameters 1M --html steps.html\n"
      "  quern offload bench --folder /tmp=100M --folder /tmp=50M --parameters 2M --forms raw,8 --json\n"
      "  quern offload bench --folder /tmp=40M --parameters 1M --memory 8M --forms raw,8-packed --steps 1\n");
  verb.footer("'quern offload bench --help' has options and examples.");
}

void read_offload(const RawArgs& raw, const RunArgs& run, OffloadArgs& out) {
  out.parameters = read_values(raw.parameters, "--parameters", out.parameters);
  out.subgroup = read_values(raw.subgroup, "--subgroup", out.subgroup);
  if (out.subgroup % 16384 != 0)
    fail(Exit::usage, fmt::format("--subgroup {}: give a multiple of 16K, which is 16384", raw.subgroup));
  for (const std::string& text : raw.folders) out.folders.push_back(read_folder(text));
  if (out.folders.empty()) out.folders.push_back({".", 0});
  for (const std::string& form : split_list(raw.forms.empty() ? "raw,8,4" : raw.forms, "--forms"))
    out.forms.push_back(read_form(form));
  if (!raw.step.empty()) out.steps = parse_count(raw.step, "--steps", 100'000);
  if (out.steps == 0) fail(Exit::usage, "--steps 0: measure at least one");
  out.html = raw.html;
  out.force = raw.force;
  out.run = run;
  const std::uint64_t subgroup = std::min(out.subgroup, out.parameters);
  if (!run.memory || subgroup == 0 ||
      std::none_of(out.forms.begin(), out.forms.end(), [](const OffloadForm& form) { return form.bits == 0; }))
    return;
  const std::uint64_t groups = (out.parameters + subgroup - 1) / subgroup;
  const std::uint64_t fewest = 12 * subgroup * std::min(kFewestRawBuffers, groups);
  if (*run.memory < fewest)
    fail(Exit::usage,
         fmt::format(
             "--memory {}: raw needs {} bytes, for {} subgroups of 12 bytes a value. Give --memory {} or more, a "
             "smaller --subgroup, or --forms without raw",
             raw.memory, fewest, std::min(kFewestRawBuffers, groups), fewest));
}

}  // namespace quern::cli

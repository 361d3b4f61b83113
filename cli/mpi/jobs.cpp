#include "cli/mpi/jobs.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include <quern/io.h>

#include "cli/args/exit_codes.h"
#include "cli/files/array_files.h"
#include "cli/files/child.h"
#include "cli/files/file_names.h"
#include "cli/files/many_files.h"

namespace quern::cli::mpi {
namespace {

bool takes(const Request& request, const std::string& path) {
  switch (request.work) {
    case Work::compress:
    case Work::verify: return is_array_file(path, request.data);
    case Work::decompress: return path.ends_with(kStreamSuffix);
    case Work::h5_pack: break;
  }
  const io::FileKind kind = io::file_kind(path);
  return kind == io::FileKind::hdf5 || kind == io::FileKind::netcdf;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string output_of(const Request& request, const std::string& below) {
  const std::string whole = in_folder(request.output, below);
  switch (request.work) {
    case Work::compress:
    case Work::decompress: return folder_of(whole);
    case Work::verify: return whole + kStreamSuffix;
    case Work::h5_pack: break;
  }
  return whole;
}

}  // namespace

JobList list_jobs(const Request& request) {
  std::vector<std::string> names = request.inputs;
  if (!request.many.files_from.empty())
    for (std::string& name : read_file_list(request.many.files_from)) names.push_back(std::move(name));
  const FoundFiles found =
      find_files(names, request.many.recursive, [&](const std::string& path) { return takes(request, path); });
  if (found.files.empty()) fail(Exit::usage, "no file was found that quern could work on");
  JobList list;
  list.others = found.others;
  std::set<std::string> wholes;
  for (const FoundFile& file : found.files) {
    if (!wholes.insert(file.below).second)
      fail(Exit::usage, in_folder(request.output, file.below) + ": two inputs would be written to it; use two runs");
    list.jobs.push_back({file.path, output_of(request, file.below)});
  }
  return list;
}

std::string journal_path(const Request& request) {
  const char* const name = request.work == Work::verify ? "quern-mpi.verify.journal" : "quern-mpi.journal";
  return request.journal.empty() ? in_folder(request.output, name) : request.journal;
}

std::vector<std::string> run_words(const Request& request) {
  constexpr const char* kNames[] = {"compress", "decompress", "verify", "h5-pack"};
  std::vector<std::string> words = {kNames[static_cast<int>(request.work)]};
  words.insert(words.end(), request.passed.begin(), request.passed.end());
  words.push_back(request.output);
  return words;
}

std::string written_file(const Request& request, const Job& job) {
  const std::string name = base_name(job.input);
  switch (request.work) {
    case Work::compress: return in_folder(job.output, name + kStreamSuffix);
    case Work::decompress:
      return in_folder(job.output, name.substr(0, name.size() - std::string_view(kStreamSuffix).size()));
    case Work::verify: return {};
    case Work::h5_pack: break;
  }
  return job.output;
}

std::vector<std::string> quern_words(const Request& request, const Job& job, bool again) {
  std::vector<std::string> words = {quern_program()};
  switch (request.work) {
    case Work::compress: words.emplace_back("compress"); break;
    case Work::decompress: words.emplace_back("decompress"); break;
    case Work::verify: words.emplace_back("verify"); break;
    case Work::h5_pack: words.insert(words.end(), {"h5", "pack"}); break;
  }
  words.insert(words.end(), request.passed.begin(), request.passed.end());
  words.insert(words.end(), {"--json", "--progress", "never"});
  if (again && request.work != Work::verify) words.emplace_back("-f");
  if (request.work == Work::verify) {
    words.insert(words.end(), {job.input, job.output});
  } else {
    words.insert(words.end(), {job.input, "-o", job.output});
  }
  return words;
}

Bytes bytes_in(const std::string& json_lines, Work work) {
  Bytes bytes;
  std::istringstream lines(json_lines);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || work == Work::verify) continue;
    const std::uint64_t in = json.value("input_bytes", std::uint64_t{0});
    const std::uint64_t out = json.value("output_bytes", std::uint64_t{0});
    bytes.raw += work == Work::decompress ? out : in;
    bytes.stored += work == Work::decompress ? in : out;
  }
  return bytes;
}

}  // namespace quern::cli::mpi

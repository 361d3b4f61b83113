// Inputs, datasets and bounds to jobs.
#include "cli/verbs/compress_jobs.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <quern/io.h>

#include "cli/args/exit_codes.h"
#include "cli/bounds/bounds_file.h"
#include "cli/files/file_names.h"
#include "cli/files/input_array.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/many_jobs.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

struct Variable {
  std::string dataset;
  ErrorBound bound;
  CompressJob::Choice choice = CompressJob::Choice::named;
};

std::vector<std::string> names_in(const std::string& input) {
  std::string detail;
  const auto found = io::input_kind(input, detail);
  if (!found.ok()) fail_file(found.status(), detail);
  const io::FileKind kind = *found;
  if (kind != io::FileKind::hdf5 && kind != io::FileKind::netcdf)
    fail(Exit::usage, input + ": --bounds and --dataset are for HDF5 and netCDF files, whose variables have names");
  auto names = io::list_arrays(input, kind, detail);
  if (!names.ok()) fail_file(names.status(), detail);
  return std::move(names).value();
}

bool takes_all(const CompressArgs& args) {
  return std::find(args.data.datasets.begin(), args.data.datasets.end(), "*") != args.data.datasets.end();
}

std::string without_slash(const std::string& name) { return name.starts_with('/') ? name.substr(1) : name; }

/// The variables of one file that the bounds file or a bound beside it covers.
std::vector<Variable> bounded_variables(const std::string& input, const std::vector<VariableBound>& bounds,
                                        const CompressArgs& args) {
  std::vector<Variable> out;
  std::vector<bool> used(bounds.size(), false);
  for (const std::string& name : names_in(input)) {
    const auto found = std::find_if(bounds.begin(), bounds.end(), [&](const VariableBound& b) {
      return without_slash(b.variable) == without_slash(name);
    });
    if (found != bounds.end()) {
      used[static_cast<std::size_t>(found - bounds.begin())] = true;
      out.push_back({name, found->bound, CompressJob::Choice::named});
    } else if (args.bound) {
      out.push_back({name, *args.bound, CompressJob::Choice::all});
    } else if (!args.run.quiet) {
      print_note(
          fmt::format("{} {}: skipped, {} does not list it (a bound such as --lossless beside --bounds is for "
                      "such variables)",
                      input, name, args.bounds_file));
    }
  }
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (!used[i])
      fail(Exit::usage,
           fmt::format("{}: has no variable {}, which {} lists", input, bounds[i].variable, args.bounds_file));
  return out;
}

void name_outputs(const CompressArgs& args, const std::vector<FoundFile>& files,
                  const std::vector<std::vector<Variable>>& variables, std::vector<CompressJob>& jobs) {
  const std::string& wanted = args.output.path;
  const std::string folder = args.append ? std::string() : output_folder(wanted, args.many);
  if (jobs.size() > 1 && !wanted.empty() && !args.append && folder.empty())
    fail(Exit::usage, fmt::format("-o {}: {} arrays need a folder that exists, one output each (or --append for time "
                                  "steps of one array)",
                                  wanted, jobs.size()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const Variable& variable : variables[i]) {
      CompressJob& job = jobs[at++];
      const bool many = variables[i].size() > 1 || !args.bounds_file.empty() || takes_all(args);
      const auto stream_of = [&](const std::string& path) {
        return many ? variable_output(path, variable.dataset) : path + kStreamSuffix;
      };
      if (args.append || (!wanted.empty() && folder.empty())) {
        job.output = wanted;
      } else if (job.input == "-") {
        if (!folder.empty()) fail(Exit::usage, "standard input has no name for a file in a folder; give -o FILE");
        job.output.assign(1, '-');
      } else {
        job.output = folder.empty() ? stream_of(job.input) : in_folder(folder, stream_of(files[i].below));
      }
    }
  }
}

std::vector<Variable> variables_of(const std::string& input, const CompressArgs& args,
                                   const std::vector<VariableBound>& bounds) {
  if (!bounds.empty()) return bounded_variables(input, bounds, args);
  if (args.data.datasets.empty()) return {{std::string(), *args.bound, CompressJob::Choice::only}};
  std::vector<Variable> out;
  if (takes_all(args)) {
    for (const std::string& name : names_in(input)) out.push_back({name, *args.bound, CompressJob::Choice::all});
  } else {
    for (const std::string& name : args.data.datasets) out.push_back({name, *args.bound, CompressJob::Choice::named});
  }
  return out;
}

}  // namespace

CompressPlan plan_compress_jobs(const CompressArgs& args, const std::vector<FoundFile>& files) {
  CompressPlan plan;
  std::vector<VariableBound> bounds;
  if (!args.bounds_file.empty()) bounds = read_bounds_file(args.bounds_file);
  const bool goes_on = args.many.recursive || !args.many.files_from.empty();
  std::vector<std::vector<Variable>> variables;
  for (const FoundFile& file : files) {
    std::vector<Variable> here;
    Exit code = Exit::ok;
    const auto find = [&] { here = variables_of(file.path, args, bounds); };
    if (goes_on) {
      attempt(code, find);
    } else {
      find();
    }
    if (code != Exit::ok) ++plan.failed;
    if (plan.result == Exit::ok) plan.result = code;
    for (const Variable& variable : here)
      plan.jobs.push_back({file.path, variable.dataset, variable.bound, variable.choice, std::string()});
    variables.push_back(std::move(here));
  }
  name_outputs(args, files, variables, plan.jobs);
  std::set<std::string> outputs;
  for (const CompressJob& job : plan.jobs)
    if (!args.append && job.output != "-" && !outputs.insert(job.output).second)
      fail(Exit::usage, job.output + ": two inputs would be written to it; compress them into different folders");
  if (args.many.skip_existing)
    plan.left_alone = std::erase_if(plan.jobs, [&](const CompressJob& job) {
      if (!is_there(job.output)) return false;
      plan.kept_inputs.insert(job.input);
      return true;
    });
  return plan;
}

}  // namespace quern::cli

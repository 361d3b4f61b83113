// Inputs, datasets and bounds to jobs.
#include "cli/verbs/compress_jobs.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <quern/io.h>

#include "cli/args/exit_codes.h"
#include "cli/files/bounds_file.h"
#include "cli/files/file_names.h"
#include "cli/files/input_array.h"
#include "cli/messages/file_report.h"

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

void name_outputs(const CompressArgs& args, const std::vector<std::vector<Variable>>& variables,
                  std::vector<CompressJob>& jobs) {
  const std::string& wanted = args.output.path;
  const bool into_folder = !wanted.empty() && wanted != "-" && is_directory(wanted);
  if (jobs.size() > 1 && !wanted.empty() && !args.append && !into_folder)
    fail(Exit::usage, fmt::format("-o {}: {} arrays need a folder that exists, one output each (or --append for time "
                                  "steps of one array)",
                                  wanted, jobs.size()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    for (const Variable& variable : variables[i]) {
      CompressJob& job = jobs[at++];
      const bool many = variables[i].size() > 1 || !args.bounds_file.empty() || takes_all(args);
      if (args.append || (!wanted.empty() && !into_folder)) {
        job.output = wanted;
      } else if (job.input == "-") {
        if (into_folder) fail(Exit::usage, "standard input has no name for a file in a folder; give -o FILE");
        job.output.assign(1, '-');
      } else {
        job.output = many ? variable_output(job.input, variable.dataset) : job.input + kStreamSuffix;
        if (into_folder) job.output = in_folder(wanted, base_name(job.output));
      }
    }
  }
}

}  // namespace

std::vector<CompressJob> plan_compress_jobs(const CompressArgs& args) {
  std::vector<VariableBound> bounds;
  if (!args.bounds_file.empty()) bounds = read_bounds_file(args.bounds_file);
  std::vector<std::vector<Variable>> variables;
  std::vector<CompressJob> jobs;
  for (const std::string& input : args.inputs) {
    std::vector<Variable> here;
    if (!bounds.empty()) {
      here = bounded_variables(input, bounds, args);
    } else if (args.data.datasets.empty()) {
      here.push_back({std::string(), *args.bound, CompressJob::Choice::only});
    } else if (takes_all(args)) {
      for (const std::string& name : names_in(input)) here.push_back({name, *args.bound, CompressJob::Choice::all});
    } else {
      for (const std::string& name : args.data.datasets)
        here.push_back({name, *args.bound, CompressJob::Choice::named});
    }
    for (const Variable& variable : here)
      jobs.push_back({input, variable.dataset, variable.bound, variable.choice, std::string()});
    variables.push_back(std::move(here));
  }
  name_outputs(args, variables, jobs);
  std::set<std::string> outputs;
  for (const CompressJob& job : jobs)
    if (!args.append && job.output != "-" && !outputs.insert(job.output).second)
      fail(Exit::usage, job.output + ": two inputs would be written to it; compress them into different folders");
  return jobs;
}

}  // namespace quern::cli

// What the user asked for, one struct a verb, and the parser that fills them. Parsing touches no file and prints
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/dtype.h>
#include <quern/estimate.h>
#include <quern/shape.h>
#include <quern/steps.h>

#include "cli/args/run_args.h"
#include "cli/args/values.h"
#include "cli/checkpoint/args.h"
#include "cli/lidar/args.h"
#include "cli/offload/args.h"

namespace quern::cli {

enum class Verb {
  print,
  compress,
  decompress,
  info,
  verify,
  compare,
  bench,
  estimate,
  model,
  train,
  h5,
  checkpoint,
  lidar,
  list_codecs,
  list_devices,
  doctor,
  offload
};
enum class H5Work { args, pack, unpack, check };

/// How the arrays of the input files are described.
struct DataArgs {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::vector<std::string> fills;  ///< texts: the bits depend on the element type, which the file may tell
  std::vector<std::string> datasets;
  std::uint64_t skip_bytes = 0;
  bool big_endian = false;
  bool column_major = false;
  bool strict_input = false;  ///< what looks wrong about the values is an error
};

struct OutputArgs {
  std::string path;  ///< empty: made from the input's name; "-": standard output
  bool force = false;
  bool remove_input = false;
};

struct CodecArgs {
  std::string codec = "auto";
  std::string goal = "ratio";
  unsigned effort = 6;
  Settings settings;
  bool idempotent = false;  ///< --set idempotent=1
  bool find_repeated = true;

  /// Whether streams are those that estimates speak of.
  bool is_default_search() const {
    const CodecArgs usual;
    return goal == usual.goal && effort == usual.effort && settings.empty() && !idempotent && find_repeated;
  }
};

/// Inputs of verbs that take many files.
struct ManyArgs {
  bool recursive = false;      ///< folders among the inputs stand for the files below them
  std::string files_from;      ///< a file with more names; "-": standard input; empty: none
  bool skip_existing = false;  ///< inputs whose output exists are left alone

  bool any() const { return recursive || !files_from.empty() || skip_existing; }
};

/// A bound that follows from an array's values: --digits or --information.
struct PrecisionArgs {
  bool information = false;
  double value = 0;  ///< how many digits, or the share of the information
};

struct CompressArgs {
  std::vector<std::string> inputs;
  ManyArgs many;
  std::optional<ErrorBound> bound;         ///< always set unless bounds_file is
  std::optional<PrecisionArgs> precision;  ///< takes the place of `bound` once the array is known
  std::string bounds_file;
  DataArgs data;
  CodecArgs codec;
  std::optional<ValueRange> range;
  RunArgs run;
  OutputArgs output;
  bool append = false;
  unsigned key_every = kDefaultKeyEvery;  ///< of --append: 1: no step is predicted
  bool verify = false;
  bool explain = false;     ///< say what was expected beside what came of it
  std::string calibration;  ///< a file that gets both; empty: none
};

struct DecompressArgs {
  std::vector<std::string> inputs;
  ManyArgs many;
  std::string region;
  std::optional<std::uint64_t> step;  ///< of a file of several; none: all
  unsigned level = 0;                 ///< 0: the arrays themselves
  bool keep_going = false;
  bool check_faults = false;
  RunArgs run;
  OutputArgs output;
};

struct InfoArgs {
  std::vector<std::string> inputs;
  bool check = false;
  bool headers_only = false;  ///< do not read masks
  RunArgs run;
};

/// What is said where the original is missing.
inline constexpr const char* kVerifyFiles = "verify needs two files: ORIGINAL IN (records have no original: IN alone)";

struct VerifyArgs {
  std::string original;  ///< empty when it was not given: right for records alone
  std::string stream;
  DataArgs data;
  RunArgs run;
};

struct CompareArgs {
  std::string a;
  std::string b;
  std::string html;
  bool force = false;
  DataArgs data;
  RunArgs run;
};

struct BenchArgs {
  std::vector<std::string> inputs;
  std::vector<std::string> codecs;  ///< empty: all
  std::vector<std::string> peers;   ///< of a sweep: templates of compressors that are not quern's (cli/peers)
  std::vector<double> rel;
  unsigned repeats = 5;
  bool sweep = false;  ///< labels for training, into `csv`
  std::string csv;
  DataArgs data;
  CodecArgs codec;
  RunArgs run;
};

/// What codecs would make of arrays.
struct EstimateArgs {
  std::vector<std::string> inputs;
  std::vector<std::string> codecs;         ///< empty: all that the model knows
  std::vector<double> at;                  ///< bounds
  bool absolute = false;                   ///< of kind abs; else rel
  std::optional<PrecisionArgs> precision;  ///< in place of `at`
  std::string model;                       ///< a file; empty: the one that ships
  std::string calibration;                 ///< a file of real compressions that correct ratios; empty: none
  std::string html;                        ///< a report with pictures; empty: none
  bool force = false;
  EstimateFeatures features = EstimateFeatures::usual;
  DataArgs data;
  RunArgs run;
};

enum class ModelWork { info, verify, list, strip, embed };

struct ModelArgs {
  ModelWork work = ModelWork::info;
  std::string file;    ///< empty: the one that ships; of list a folder
  std::string output;  ///< strip, embed
  ModelArguments models;
  bool force = false;
  bool json = false;
};

/// Words of train autoencoder and superres, as they were given; empty: the trainer's default.
struct TrainingData {
  std::vector<std::string> data;
  std::string block, latents, components, profile, bound, time_budget, steps;
  bool keep = false;
};

/// Words for the program that trains.
struct TrainArgs {
  bool autoencoder = false;  ///< and not quality
  bool superres = false;     ///< likewise
  TrainingData training;
  std::string runs;
  std::string output;
  std::string seed, epochs, deep_epochs, experts, hidden;
  std::string features;  ///< counts, deep or usually-deep; empty: counts
  std::string without;   ///< a part of the network that is left out, for ablations
  std::string rows;      ///< a file for the runs that were predicted; empty: none
  std::string test;      ///< a model that is tested, and none is trained; empty: none
  bool families = false;
  bool force = false;
};

/// HDF5 and netCDF-4 files that stay such files, with quern as a filter inside.
struct H5Args {
  H5Work work = H5Work::args;
  std::string input;                        ///< empty for args
  std::optional<ErrorBound> bound;          ///< always set for args; of pack, for datasets without a bound of their own
  std::optional<PrecisionArgs> precision;   ///< pack: takes the place of `bound` once a dataset is known
  std::optional<std::uint64_t> total_size;  ///< pack: bytes that the new file may have
  static constexpr double kMostSharedPsnr = 200;  ///< dB; what reaches more keeps about every bit
  double psnr_floor = 0;                          ///< dB that no dataset falls below for its sake
  std::vector<std::string> datasets;
  std::string bounds_file;
  std::vector<VariableBound> bounds;
  CodecArgs codec;
  bool optional = false;
  bool rechunk = false;
  bool rewritable = false;  ///< idempotent chunks, which copies and changes leave small
  bool again = false;       ///< pack what is packed already under another bound
  RunArgs run;
  OutputArgs output;
};

struct Command {
  Verb verb = Verb::print;
  std::string text;   ///< Verb::print: help, version or a completion script, to be printed as it is
  bool asked = true;  ///< Verb::print: false for help that answers a command line without words
  CompressArgs compress;
  DecompressArgs decompress;
  InfoArgs info;
  VerifyArgs verify;
  CompareArgs compare;
  BenchArgs bench;
  EstimateArgs estimate;
  ModelArgs model;
  TrainArgs train;
  H5Args h5;
  CheckpointArgs checkpoint;
  LidarArgs lidar;
  bool json = false;  ///< list and doctor
  OffloadArgs offload;
};

/// Reads a command line; argv[0] is the program's name, `codecs` are the names that texts mention. Returns 0 and fills
/// `out`, or returns 1 and sets `message` to one line without a line break. No side effects: a fuzzer may call it with
/// anything. Throws std::bad_alloc only.
int parse_only(int argc, const char* const* argv, const std::vector<std::string>& codecs, Command& out,
               std::string& message);

}  // namespace quern::cli

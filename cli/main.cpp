// The quern command: signals, arguments, one verb, one catch-all.
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <quern/codec.h>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"
#include "cli/files/interrupt.h"
#include "cli/messages/messages.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {

void attempt(Exit& result, const std::function<void()>& work) {
  try {
    work();
  } catch (const CliError& error) {
    print_note(error.what());
    if (result == Exit::ok) result = error.code();
  }
}

namespace {

Exit run(const Command& command) {
  switch (command.verb) {
    case Verb::print:
      if (command.asked) {
        print_text(command.text);
        return Exit::ok;
      }
      print_message(command.text);
      return Exit::usage;
    case Verb::compress: return run_compress(command.compress);
    case Verb::decompress: return run_decompress(command.decompress);
    case Verb::info: return run_info(command.info);
    case Verb::verify: return run_verify(command.verify);
    case Verb::compare: return run_compare(command.compare);
    case Verb::bench: return run_bench(command.bench);
    case Verb::estimate: return run_estimate(command.estimate);
    case Verb::model: return run_model(command.model);
    case Verb::train: return run_train(command.train);
    case Verb::h5: return run_h5(command.h5);
    case Verb::checkpoint: return run_checkpoint(command.checkpoint);
    case Verb::lidar: return run_lidar(command.lidar);
    case Verb::offload: return run_offload_bench(command.offload);
    case Verb::list_codecs: return run_list_codecs(command.json);
    case Verb::list_devices: return run_list_devices(command.json);
    case Verb::doctor: return run_doctor(command.json);
  }
  return Exit::usage;
}

/// Of the codecs of this build; those that keep every bit come last.
std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const bool archive : {false, true})
    for (const ArrayCodec* codec : builtin_codecs().all())
      if ((codec->info().tier == CodecTier::archive) == archive) names.emplace_back(codec->info().name);
  return names;
}

int guarded_main(int argc, const char* const* argv) {
  reserve_standard_descriptors();
  try {
    install_signal_handlers();
    Command command;
    std::string message;
    if (parse_only(argc, argv, codec_names(), command, message) != 0) {
      print_note(message);
      return static_cast<int>(Exit::usage);
    }
    return static_cast<int>(run(command));
  } catch (const CliError& error) {
    print_note(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    print_message("quern: memory ran out; lower -T, or free some\n");
  } catch (const std::exception& error) {
    print_note(std::string("an unexpected error, please report it: ") + error.what());
  } catch (...) {
    print_note("an unexpected error, please report it");
  }
  return static_cast<int>(Exit::resource);
}

}  // namespace
}  // namespace quern::cli

int main(int argc, char** argv) { return quern::cli::guarded_main(argc, argv); }

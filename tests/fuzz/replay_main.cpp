// Runs a fuzz target without a fuzzing engine: every file of the corpus as it is, and a fixed number of seeded
// mutations of each. Built with any compiler; this is what ctest runs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_common.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr const char* kFailureFile = "fuzz-failure.bin";
const Bytes* running = nullptr;

// Leaves the input that broke a property where it can be run again.
extern "C" void keep_input(int signal_number) {
  const int file = open(kFailureFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && write(file, running->data(), running->size()) >= 0) close(file);
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void run(const Bytes& input) {
  // A copy of exactly the input's size, so that a sanitizer sees a read past its end.
  const Bytes exact(input.begin(), input.end());
  running = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void mutate_once(Bytes& bytes, const Bytes& other, std::mt19937_64& random) {
  if (bytes.empty()) bytes.push_back(0);
  const std::size_t at = random() % bytes.size();
  const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 7) {
    case 0: *position = static_cast<std::uint8_t>(*position ^ 1U << random() % 8); break;
    case 1: *position = static_cast<std::uint8_t>(random()); break;
    case 2: *position = random() % 2 == 0 ? 0x00 : 0xFF; break;
    case 3: bytes.resize(at); break;
    case 4:
      bytes.insert(position, static_cast<std::size_t>(random() % 8 + 1), static_cast<std::uint8_t>(random()));
      break;
    case 5:
      bytes.erase(position, position + static_cast<std::ptrdiff_t>(std::min(bytes.size() - at, random() % 8 + 1)));
      break;
    default:
      if (!other.empty()) {
        const std::size_t from = random() % other.size();
        const std::size_t count = std::min({other.size() - from, bytes.size() - at, std::size_t{64}});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count, position);
      }
  }
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

std::vector<std::filesystem::path> inputs_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t mutations = 0;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutate" && i + 1 < argc) {
      mutations = std::stoull(argv[++i]);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::stoull(argv[++i]);
    } else {
      for (auto& path : inputs_of(argument)) paths.push_back(path);
    }
  }
  std::vector<Bytes> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path));
  if (corpus.empty()) {
    std::cerr << "usage: " << argv[0] << " [--mutate N] [--seed N] FILE-OR-FOLDER...   (no inputs were found)\n";
    return 1;
  }
  std::cout << corpus.size() << " inputs, " << mutations << " mutations each, seed " << seed << std::endl;
  std::signal(SIGABRT, keep_input);
  run({});
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    std::cout << paths[i].filename().string() << std::endl;  // named before it runs: the last line names a crash
    run(corpus[i]);
    std::mt19937_64 random(seed + i);
    for (std::size_t m = 0; m < mutations; ++m) {
      Bytes changed = corpus[i];
      for (std::size_t n = random() % 4 + 1; n > 0; --n) mutate_once(changed, corpus[random() % corpus.size()], random);
      run(changed);
    }
  }
  return 0;
}

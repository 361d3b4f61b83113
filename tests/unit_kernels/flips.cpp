#include "tests/unit_kernels/flips.h"

#include <algorithm>
#include <cstring>
#include <random>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#endif

namespace quern::kernels::testing {
namespace {

constexpr const char* kTargetNames[kFlipTargets] = {"general register", "flags",   "vector register", "stack",
                                                    "scratch",          "payload", "values"};

std::uint64_t sum(const std::array<std::uint64_t, kFlipOutcomes>& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return all;
}

}  // namespace

std::uint64_t FlipTally::all() const {
  std::uint64_t count = 0;
  for (const auto& stage : counts_)
    for (const auto& target : stage) count += sum(target);
  return count;
}

std::uint64_t FlipTally::silent() const {
  std::uint64_t count = 0;
  for (const auto& stage : counts_)
    for (const auto& target : stage) count += target[static_cast<std::size_t>(FlipOutcome::silent)];
  return count;
}

std::string FlipTally::table(std::span<const char* const> stages) const {
  std::string text = "| stage | flipped in | flips | harmless | detected | crash or hang | silent |\n";
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t t = 0; t < kFlipTargets; ++t) {
      if (sum(counts_[s][t]) == 0) continue;
      text += std::string("| ") + stages[s] + " | " + kTargetNames[t] + " | " + std::to_string(sum(counts_[s][t]));
      for (const std::uint64_t count : counts_[s][t]) text += " | " + std::to_string(count);
      text += " |\n";
    }
  }
  return text;
}

std::vector<Flip> plan_flips(std::uint64_t steps, std::size_t count, std::span<const FlipTarget> targets,
                             std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Flip> flips(count);
  for (Flip& flip : flips) flip = {1 + random() % steps, targets[random() % targets.size()], random()};
  std::sort(flips.begin(), flips.end(), [](const Flip& a, const Flip& b) { return a.step < b.step; });
  return flips;
}

#if defined(__x86_64__) && defined(__linux__)

namespace {

constexpr greg_t kTrapFlag = 0x100;
constexpr std::size_t kStackBytes = 4096;
constexpr long kMostMicroseconds = 200000;  // of processor time that a copy may take

struct Stepper {
  FlipScene* scene = nullptr;
  std::span<const Flip> flips;
  std::size_t next = 0;
  std::uint64_t step = 0;
  FlipTally* tally = nullptr;
  volatile bool on = false;
  volatile bool is_copy = false;
};
Stepper stepper;

void flip_bit(std::uint8_t* bytes, std::size_t size, std::uint64_t random) {
  const std::uint64_t bit = random % (8 * size);
  bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
}

/// The lower half of a vector register, or the upper one where the processor saved it.
void flip_vector(ucontext_t& context, std::uint64_t random) {
  constexpr std::size_t kLegacyBytes = 512, kAvxAt = 576, kVectors = 16;
  constexpr std::uint32_t kExtended = 0x46505853;
  auto* const state = reinterpret_cast<std::uint8_t*>(context.uc_mcontext.fpregs);
  const std::size_t number = random % kVectors;
  random /= kVectors;
  std::uint32_t magic = 0;
  std::memcpy(&magic, state + 464, sizeof magic);
  std::uint64_t saved = 0;
  if (magic == kExtended) std::memcpy(&saved, state + kLegacyBytes, sizeof saved);
  const bool upper = (random & 1) != 0 && (saved & 4) != 0;
  random /= 2;
  if (upper) {
    flip_bit(state + kAvxAt + 16 * number, 16, random);
  } else {
    flip_bit(reinterpret_cast<std::uint8_t*>(&context.uc_mcontext.fpregs->_xmm[number]), 16, random);
  }
}

void make(const Flip& flip, ucontext_t& context) {
  static constexpr int kRegisters[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                       REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  static constexpr unsigned kFlags[] = {0, 2, 6, 7, 11};
  auto& registers = context.uc_mcontext.gregs;
  switch (flip.target) {
    case FlipTarget::general_register:
      registers[kRegisters[flip.random % 16]] ^= greg_t{1} << (flip.random / 16 % 64);
      break;
    case FlipTarget::flags: registers[REG_EFL] ^= greg_t{1} << kFlags[flip.random % 5]; break;
    case FlipTarget::vector_register: flip_vector(context, flip.random); break;
    case FlipTarget::stack:
      flip_bit(reinterpret_cast<std::uint8_t*>(registers[REG_RSP]), kStackBytes, flip.random);
      break;
    default: {
      const auto memory =
          stepper.scene->memory[static_cast<std::size_t>(flip.target) - static_cast<std::size_t>(FlipTarget::scratch)];
      flip_bit(memory.data(), memory.size(), flip.random);
    }
  }
}

FlipOutcome outcome_of(int status) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) >= static_cast<int>(kFlipOutcomes)) return FlipOutcome::loud;
  return static_cast<FlipOutcome>(WEXITSTATUS(status));
}

/// Signal handlers of the test program are not the copy's.
void become_copy() {
  stepper.is_copy = true;
  close(STDERR_FILENO);  // for what a broken heap says
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP}) std::signal(number, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const itimerval limit{{0, 0}, {0, kMostMicroseconds}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

/// One instruction was run.
void on_step(int, siginfo_t*, void* where) {
  auto& context = *static_cast<ucontext_t*>(where);
  auto& flags = context.uc_mcontext.gregs[REG_EFL];
  if (!stepper.on) {
    flags &= ~kTrapFlag;
    return;
  }
  flags |= kTrapFlag;
  ++stepper.step;
  for (; stepper.next < stepper.flips.size() && stepper.flips[stepper.next].step <= stepper.step; ++stepper.next) {
    const Flip& flip = stepper.flips[stepper.next];
    if (flip.target == FlipTarget::values && !stepper.scene->values_open) continue;
    const long copy = syscall(SYS_fork);
    if (copy == 0) {
      become_copy();
      flags &= ~kTrapFlag;
      make(flip, context);
      return;
    }
    int status = 0;
    while (copy > 0 && waitpid(static_cast<pid_t>(copy), &status, 0) < 0) {
    }
    if (copy > 0) stepper.tally->add(stepper.scene->stage, flip.target, outcome_of(status));
  }
}

}  // namespace

std::string why_no_flips() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "a sanitizer's own memory would be hit";
#else
  return {};
#endif
}

void run_with_flips(FlipScene& scene, std::span<const Flip> flips, const std::function<void()>& code,
                    const std::function<FlipOutcome()>& verdict, FlipTally& tally) {
  stepper = {&scene, flips, 0, 0, &tally, true, false};
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  std::raise(SIGTRAP);
  code();
  stepper.on = false;
  if (stepper.is_copy) _exit(static_cast<int>(verdict()));
  sigaction(SIGTRAP, &before, nullptr);
}

#else

std::string why_no_flips() { return "single steps are written for x86-64 under Linux"; }

void run_with_flips(FlipScene&, std::span<const Flip>, const std::function<void()>&,
                    const std::function<FlipOutcome()>&, FlipTally&) {}

#endif

}  // namespace quern::kernels::testing

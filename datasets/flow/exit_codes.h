// What the command's exit status means; the same numbers as of the quern command.
#pragma once

namespace quern::flow {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 1;
inline constexpr int kExitIo = 2;
inline constexpr int kExitBrokeDown = 4;
inline constexpr int kExitMemory = 5;
inline constexpr int kExitInterrupted = 130;

}  // namespace quern::flow

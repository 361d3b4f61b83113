// How fast this machine is, as the time of a fixed piece of work: times that a model predicts are multiples of it.
#pragma once

namespace quern::surrogate {

/// Seconds of processor time of the calling thread that the fixed work takes: the least of three runs. About 3 ms.
double calibration_seconds();
/// Processor time of the whole process so far, in seconds.
double process_seconds();

}  // namespace quern::surrogate

// What is timed, one file each. A subject takes the array at hand, times its steps and tells what it checked.
#pragma once

#include "bench/gpu/session.h"

namespace quern::bench {

/// Smallest and largest value.
void bench_range(Session& session, const BenchArray& array);
/// Chunks encoded to slots, after a search for the range, and decoded; samples for plans; the bound check.
void bench_lorenzo(Session& session, const BenchArray& array);
/// Special values found, stored and restored; about a third of the array becomes NaN in a copy.
void bench_mask(Session& session, const BenchArray& array);

/// Chunks of the stencil codec in levels, decoded; the first of them encoded by the host.
void bench_stencil(Session& session, const BenchArray& array);
/// Its chunks in raster order, encoded; the host makes the jobs of the first, which stands for all.
void bench_stencil_encode(Session& session, const BenchArray& array);

/// Its chunks in levels, in planes and under the wavelet, encoded in steps; the first stands for all, here, too.
void bench_stencil_steps(Session& session, const BenchArray& array);

/// Chunks of the interp codec, decoded; the first of them encoded by the host.
void bench_interp(Session& session, const BenchArray& array);
/// The same chunks, encoded; the host makes their jobs.
void bench_interp_encode(Session& session, const BenchArray& array);

/// Whole calls on an array in device memory, as queued and as a graph: under a relative bound, with its range given and
/// not, under an absolute one, and back.
void bench_arrays(Session& session, const BenchArray& array);
/// Slabs of the array, 1 MiB each at most, in one call each way.
void bench_batches(Session& session, const BenchArray& array);

}  // namespace quern::bench

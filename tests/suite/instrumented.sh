#!/usr/bin/env bash
# Builds one instrumented preset (asan or tsan) and runs the tests of the library: not those too slow for it, nor those of the
# command and the flow solver, which drive whole programs under resource limits.
set -euo pipefail
preset=${1:?usage: instrumented.sh PRESET}
jobs=${QUERN_JOBS:-$(nproc)}
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
left_out='^(cli_|test_flow)'
# Kernels know no threads, and take a thread sanitizer ten minutes.
if [[ $preset == tsan ]]; then left_out='^(cli_|test_flow|unit_kernels$)'; fi
ctest --preset "$preset" -j "$jobs" -LE 'slow|suite|gpu' -E "$left_out"

#!/usr/bin/env bash
# Builds one instrumented preset (asan or tsan) and runs the test programs of the library, those that are named as their
# targets: not the command and the flow solver, which drive whole programs under resource limits, nor what is too slow for it.
set -euo pipefail
preset=${1:?usage: instrumented.sh PRESET}
jobs=${QUERN_JOBS:-$(nproc)}
left_out='^(cli_|test_flow)'
# Kernels know no threads, and take a thread sanitizer ten minutes.
if [[ $preset == tsan ]]; then left_out="$left_out|^unit_kernels\$"; fi
# These are about numbers, or drive code that others drive too: a training run, simulated devices on much data, targets,
# statistics, allocations that fail, processes that are killed, wrappers of the C interface.
if [[ $preset == asan && ${QUERN_TEST_THOROUGH:-0} != 1 ]]; then
  left_out="$left_out|^(simulated_|faults_|fortran_)"
  left_out="$left_out|^(quality|adversarial|unit_(capi_memory|checkpoint_capi_memory|cuda_metrics|goals|hpp|hpp_beside|metrics|moments|report|survey))\$"
fi

cmake --preset "$preset"
mapfile -t programs < <(comm -12 \
  <(ctest --preset "$preset" -N -LE 'slow|suite|gpu' -E "$left_out" 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p' | sort) \
  <(cmake --build --preset "$preset" --target help | sed -n 's/: phony$//p' | sort))
((${#programs[@]} > 20)) || { echo "instrumented.sh: of the tests only ${#programs[@]} are programs" >&2; exit 1; }
cmake --build --preset "$preset" -j "$jobs" --target "${programs[@]}"
ctest --preset "$preset" -j "$jobs" -R "^($(IFS='|'; echo "${programs[*]}"))\$"

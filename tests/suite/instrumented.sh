#!/usr/bin/env bash
# Builds one instrumented preset (asan or tsan) and runs the tests of the library: not those too slow for it, nor those of the
# command and the flow solver, which drive whole programs under resource limits.
set -euo pipefail
preset=${1:?usage: instrumented.sh PRESET}
jobs=${QUERN_JOBS:-$(nproc)}
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
ctest --preset "$preset" -j "$jobs" -LE 'slow|suite|gpu' -E '^(cli_|test_flow)'

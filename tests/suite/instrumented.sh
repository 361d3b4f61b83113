#!/usr/bin/env bash
# Builds one instrumented preset (asan or tsan) and runs its tests, except those too slow for it.
set -euo pipefail
preset=${1:?usage: instrumented.sh PRESET}
jobs=${QUERN_JOBS:-$(nproc)}
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
ctest --preset "$preset" -j "$jobs" -LE 'slow|suite|gpu'

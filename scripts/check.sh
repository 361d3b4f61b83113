#!/usr/bin/env bash
# What to run before a commit: layout, layers, static checks of the files that changed, a build with warnings as errors,
# and the tests that are not labelled slow. usage: scripts/check.sh [BASE]   (changed since BASE, default HEAD)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${1:-HEAD}
jobs=${QUERN_JOBS:-$(nproc)}

scripts/format.sh --check || { rc=$?; ((rc == 77)) || exit "$rc"; }
python3 scripts/check_layers.py
cmake --preset dev --log-level=WARNING
cmake --build --preset dev -j "$jobs"

mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } |
  grep -E '\.cpp$' | sort -u || true)
if ((${#changed[@]} == 0)); then
  echo "no C++ source changed since $base, clang-tidy has nothing to do"
elif ! command -v clang-tidy >/dev/null; then
  echo "no clang-tidy here, static checks left out"
else
  printf '%s\0' "${changed[@]}" | xargs -0 -n 1 -P "$jobs" clang-tidy -p build/dev --quiet
fi
ctest --preset dev -j "$jobs" -LE 'slow|suite'

#!/usr/bin/env bash
# What to run before a commit. usage:
#   scripts/check.sh [BASE]     layout, layers, static checks of what changed since BASE [HEAD], a build with warnings as
#                               errors, and the tests that are not labelled long or suite
#   scripts/check.sh --staged   layout, layers and spelling of the staged files: seconds, for a pre-commit hook
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${QUERN_JOBS:-$(nproc)}

allow_skip() { local rc=0; "$@" || rc=$?; ((rc == 0 || rc == 77)) || exit "$rc"; }

# codespell knows English misspellings; it is used where it is installed (Debian: codespell).
check_spelling() {
  if (($# == 0)); then return; fi
  if ! command -v codespell >/dev/null; then
    echo "no codespell here, spelling not checked"
    return
  fi
  codespell --ignore-words scripts/spelling.txt "$@"
}

if [[ ${1:-} == --staged ]]; then
  mapfile -d '' staged < <(git diff --cached --name-only -z --diff-filter=d)
  sources=() texts=()
  for file in "${staged[@]}"; do
    case "$file" in
      tests/golden/* | */corpus/*) ;;
      *.h | *.hpp | *.c | *.cpp | *.cu | *.cuh) sources+=("$file"); texts+=("$file") ;;
      *.md | *.py | *.sh | *.cmake | *CMakeLists.txt) texts+=("$file") ;;
    esac
  done
  if ((${#sources[@]})); then allow_skip scripts/format.sh --check "${sources[@]}"; fi
  python3 scripts/check_layers.py
  check_spelling ${texts[@]+"${texts[@]}"}
  exit 0
fi

base=${1:-HEAD}
allow_skip scripts/format.sh --check
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
ctest --preset dev -j "$jobs" -LE 'long|suite'

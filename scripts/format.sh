#!/usr/bin/env bash
# Lays out every C, C++ and CUDA file that git knows or would take with clang-format 14, or those that are named. With
# --check it says which are not laid out that way.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: scripts/format.sh [--check] [FILE...]" >&2; exit 1; }

check=0 files=()
while (($#)); do
  case "$1" in
    --check) check=1 ;;
    -*) usage ;;
    *) files+=("$1") ;;
  esac
  shift
done

formatter=$(command -v clang-format-14 || command -v clang-format || true)
if [[ -z $formatter ]]; then
  echo "SKIP: no clang-format here"
  exit 77
fi
# Other versions lay out differently; only the one the tree is kept with may judge it.
if [[ $("$formatter" --version) != *"version 14."* ]]; then
  echo "SKIP: $("$formatter" --version | head -n 1); the tree is laid out by version 14"
  exit 77
fi
if ((${#files[@]} == 0)) && ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  echo "SKIP: no git repository here, which says what files belong to the tree"
  exit 77
fi

if ((${#files[@]} == 0)); then
  mapfile -d '' listed < <(git ls-files -z --cached --others --exclude-standard -- \
    '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' '*.cuh')
  for file in "${listed[@]}"; do
    if [[ -e $file ]]; then files+=("$file"); fi
  done
fi
if ((check)); then
  printf '%s\0' "${files[@]}" | xargs -0 -n 100 -P "$(nproc)" "$formatter" --dry-run -Werror
  echo "${#files[@]} files are laid out as .clang-format says"
else
  printf '%s\0' "${files[@]}" | xargs -0 -n 100 -P "$(nproc)" "$formatter" -i
fi

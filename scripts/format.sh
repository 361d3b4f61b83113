#!/usr/bin/env bash
# Lays out every C++ and CUDA file with clang-format 14, or with --check says which files are not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=0
case "${1:-}" in
  "") ;;
  --check) check=1 ;;
  *) echo "usage: scripts/format.sh [--check]" >&2; exit 1 ;;
esac

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

mapfile -d '' files < <(find bench bindings cli codecs datasets examples kernels libcompress tests -type f \
  \( -name '*.h' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z)
if ((check)); then
  "$formatter" --dry-run -Werror "${files[@]}"
  echo "${#files[@]} files are laid out as .clang-format says"
else
  "$formatter" -i "${files[@]}"
fi

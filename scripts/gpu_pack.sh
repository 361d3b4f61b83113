#!/usr/bin/env bash
# usage: gpu_pack.sh BUILD DIR
# The work of gpu_check.sh --pack: programs of a CUDA build, stripped, the libraries that a bare machine lacks, and the
# scripts of the stages, in the tree's own places below DIR.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1 folder=$2
for program in gpu_equality bench_gpu quern; do
  if [[ ! -x $build/bin/$program ]]; then
    echo "gpu_check.sh: $build has no $program; scripts/gpu_check.sh --build-only builds it" >&2
    exit 1
  fi
done

rm -rf "$folder"
mkdir -p "$folder"/{bin,lib,scripts,bench/gpu,bench/results,tests/gpu}
for program in "$build"/bin/gpu_* "$build/bin/bench_gpu" "$build/bin/quern"; do
  [[ -f $program && -x $program ]] && strip -o "$folder/bin/$(basename "$program")" "$program"
done
# What belongs to the C and C++ runtimes is on every machine.
ldd "$folder"/bin/* | awk '/=> \// {print $3}' | sort -u | while read -r library; do
  case "$(basename "$library")" in
    libc.so* | libm.so* | libstdc++.so* | libgcc_s.so* | libdl.so* | libpthread.so* | librt.so*) ;;
    *) cp -L "$library" "$folder/lib/" ;;
  esac
done
cp scripts/gpu_check.sh scripts/gpu_pack.sh scripts/sanitize_shard.sh "$folder/scripts/"
cp bench/gpu/table.py "$folder/bench/gpu/"
cp bench/results/gpu-h200.jsonl "$folder/bench/results/"
cp tests/gpu/*.py "$folder/tests/gpu/"
mkdir -p "$folder/tests/cli"
cp tests/cli/*.py "$folder/tests/cli/"
if commit=$(git rev-parse --short HEAD 2>/dev/null); then echo "$commit" >"$folder/commit"; fi
du -sh "$folder" | awk '{print $1 " in " $2}'

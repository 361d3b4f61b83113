#!/usr/bin/env bash
# usage: keep_kernel_images.sh NVCC ARGUMENTS...
# A launcher of the CUDA compiler (CMAKE_CUDA_COMPILER_LAUNCHER): runs it as it is and leaves, beside the object OBJ.o, a folder
# OBJ.o.kept with the kernel image of each architecture, what the assembler said of it, and the name of the source.
# scripts/check_kernel_budgets.py --built reads them, so that no kernel is compiled twice.
set -euo pipefail
object="" source="" compiles=0 previous=""
for argument in "$@"; do
  [[ $previous == -o ]] && object=$argument
  [[ $argument == -c ]] && compiles=1
  [[ $argument == *.cu ]] && source=$argument
  previous=$argument
done
if ((!compiles)) || [[ -z $object || -z $source ]]; then exec "$@"; fi

kept=$object.kept
rm -rf "$kept"
mkdir -p "$kept"
status=0
"$@" --keep --keep-dir "$kept" -Xptxas -v >"$kept/assembler.log" 2>&1 || status=$?
if ((status)); then
  cat "$kept/assembler.log" >&2
  rm -rf "$kept"
  exit "$status"
fi
find "$kept" -type f ! -name '*.cubin' ! -name assembler.log -delete
realpath "$source" >"$kept/source"

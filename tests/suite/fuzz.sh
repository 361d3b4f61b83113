#!/usr/bin/env bash
# Fuzzes every target for a number of seconds, starting from the committed corpus. New inputs stay in the build folder.
set -euo pipefail
seconds=${1:?usage: fuzz.sh SECONDS}
if ! command -v clang++ >/dev/null; then
  echo "SKIP: no clang++ here, the fuzz targets were not built"
  exit 77
fi
cmake --preset fuzz
cmake --build --preset fuzz -j "${QUERN_JOBS:-$(nproc)}" --target quern_fuzzers
for target in build/fuzz/bin/fuzz_*; do
  name=$(basename "$target")
  found=build/fuzz/found/$name
  mkdir -p "$found"
  seeds=()
  [[ -d tests/fuzz/corpus/${name#fuzz_} ]] && seeds=("tests/fuzz/corpus/${name#fuzz_}")
  echo "== $name"
  "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" "${seeds[@]}"
done

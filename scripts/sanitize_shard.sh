#!/usr/bin/env bash
# usage: sanitize_shard.sh TOOL TEST SHARD SHARDS
# One shard of a GoogleTest program under one tool of compute-sanitizer, for scripts/gpu_check.sh: a line that says whether it
# is clean, and if not, its log from the folder LOGS.
set -uo pipefail
tool=$1 test=$2
log=$LOGS/$tool-$(basename "$test")-$3.log
options=(--tool "$tool" --error-exitcode 99 --print-limit 20)
every=${QUERN_SANITIZE_EVERY:-7}
if [[ $tool == racecheck ]]; then every=${QUERN_SANITIZE_EVERY_RACES:-37}; fi
# Tables and answers go to the host in one piece, with the gaps between their parts; and what hashes reads whole words, with
# bytes around its input that nobody wrote.
if [[ $tool == initcheck ]]; then
  options+=(--check-api-memory-access no --kernel-name-exclude kns=seal_segments,kns=write_headers,kns=write_trailers)
fi

export GTEST_SHARD_INDEX=$3 GTEST_TOTAL_SHARDS=$4
export QUERN_GPU_PLANES=4 QUERN_GPU_RUNS=1 QUERN_GPU_EVERY=$every QUERN_GPU_POISON_BYTES=67108864
begin=$SECONDS
if compute-sanitizer "${options[@]}" "$test" --gtest_brief=1 </dev/null >"$log" 2>&1; then
  echo "clean: $tool $(basename "$test") $((1 + $3))/$4, $((SECONDS - begin)) s"
else
  echo "FAILED: $tool $(basename "$test") $((1 + $3))/$4"
  cat "$log"
  exit 1
fi

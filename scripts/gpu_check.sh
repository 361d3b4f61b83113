#!/usr/bin/env bash
# What to run on a machine with a GPU: builds the tree with CUDA and runs what is labelled gpu. Needs a CUDA toolkit, cmake,
# ninja and a C++ compiler; every other dependency may come from a prefix folder, so that a bare machine will do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: scripts/gpu_check.sh [--stage STAGE]... [--build-only] [-j N]
  build      configure and build with CUDA into build/gpu; says whether there is a device
  equal      tests labelled gpu: same bytes and same values as the CPU, in one process and through files
  sanitize   a part of these tests under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
  bench      device benchmarks (bench/gpu): lines of JSON in build/gpu/bench/bench_gpu.jsonl, at most 8 minutes
Without --stage: all four in this order. --build-only is --stage build.
Exit status: 0 all stages ran and passed, 1 something failed, 77 nothing failed but a stage had nothing to run on or with.

  QUERN_DEPS                 folder with headers and libraries, as unpacked by `dpkg -x PACKAGE.deb $QUERN_DEPS`
                             (libgtest-dev, libzstd-dev, libxxhash-dev, and for the command libcli11-dev, libfmt-dev,
                             libfmt9, nlohmann-json3-dev)
  QUERN_BENCH_SECONDS        after so many seconds the benchmarks begin with no further array: 420
  QUERN_CUDA_ARCHITECTURES   e.g. 90, to build for the device at hand alone
TEXT
}

stages=() jobs=${QUERN_JOBS:-$(nproc)}
while (($#)); do
  case "$1" in
    --stage)
      case "${2:-}" in
        build | equal | sanitize | bench) stages+=("$2") ;;
        *) echo "gpu_check.sh: --stage takes build, equal, sanitize or bench" >&2; exit 1 ;;
      esac
      shift ;;
    --build-only) stages+=(build) ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -j?*) jobs=${1#-j} ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu_check.sh: unknown option $1" >&2; usage >&2; exit 1 ;;
  esac
  shift
done
((${#stages[@]})) || stages=(build equal sanitize bench)

build=build/gpu
toolkit=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$toolkit/bin:$toolkit/compute-sanitizer

# Compilers, linkers and programs look into the folder of packages too.
deps=
if [[ -n ${QUERN_DEPS:-} ]]; then
  deps=$(cd "$QUERN_DEPS" && pwd)
  triplet=$(cc -print-multiarch 2>/dev/null || true)
  libraries=$deps/usr/lib/$triplet:$deps/lib/$triplet:$deps/usr/lib:$deps/lib
  export CPATH=$deps/usr/include:$deps/include${CPATH:+:$CPATH}
  export LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

has_device() { command -v nvidia-smi >/dev/null && grep -q '^GPU' <<<"$(nvidia-smi -L 2>/dev/null)"; }

# Prints the reason and returns 77.
skip() { echo "SKIP: $1"; return 77; }

# Test programs labelled gpu, one a line: those named gpu_*, not the command or the interpreter that other tests run.
gpu_tests() {
  ctest --test-dir "$build" -L '^gpu$' --show-only=json-v1 2>/dev/null |
    sed -n 's/^ *"\(\/[^"]*\)",\{0,1\}$/\1/p' | sort -u | while read -r path; do
      [[ -f $path && -x $path && $(basename "$path") == gpu_* ]] && echo "$path"
    done
}

need_device() { has_device || skip "no device on this machine"; }

stage_build() {
  # Google Benchmark serves the CPU's benchmarks alone, and unpacked without its library it would end the configuration.
  local options=(-DCMAKE_BUILD_TYPE=Release -DQUERN_CUDA=ON -DQUERN_HDF5=OFF -DQUERN_DATASETS=OFF
    -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON)
  [[ -n ${QUERN_CUDA_ARCHITECTURES:-} ]] && options+=("-DQUERN_CUDA_ARCHITECTURES=$QUERN_CUDA_ARCHITECTURES")
  [[ -n $deps ]] && options+=("-DCMAKE_PREFIX_PATH=$deps/usr;$deps")
  cmake -S . -B "$build" -G Ninja "${options[@]}" && cmake --build "$build" -j "$jobs" || return 1
  if has_device; then
    nvidia-smi -L
  else
    echo "built for CUDA; no device on this machine, so nothing was run"
  fi
}

stage_equal() {
  need_device || return
  [[ -n $(gpu_tests) ]] || { skip "this build has no tests labelled gpu"; return; }
  ctest --test-dir "$build" -L '^gpu$' --output-on-failure --no-tests=error
}

stage_sanitize() {
  need_device || return
  command -v compute-sanitizer >/dev/null || { skip "no compute-sanitizer in this CUDA toolkit"; return; }
  local tests
  tests=$(gpu_tests)
  [[ -n $tests ]] || { skip "this build has no tests labelled gpu"; return; }
  # On a part of the cases, the slowest tool on the smallest. Each program is run in shards, as many side by side as there
  # are processors.
  local logs=$build/sanitize shards=8 test tool shard
  rm -rf "$logs"
  mkdir -p "$logs"
  for tool in racecheck initcheck memcheck synccheck; do
    while read -r test; do
      for ((shard = 0; shard < shards; ++shard)); do echo "$tool $test $shard $shards"; done
    done <<<"$tests"
  done | LOGS=$logs xargs -P "$jobs" -L 1 bash scripts/sanitize_shard.sh
}

stage_bench() {
  need_device || return
  local bench=$build/bin/bench_gpu
  [[ -x $bench ]] || { skip "this build has no device benchmarks"; return; }
  mkdir -p "$build/bench"
  "$bench" --out "$build/bench/bench_gpu.jsonl" --seconds "${QUERN_BENCH_SECONDS:-420}" || return 1
}

result=0
for stage in "${stages[@]}"; do
  echo "=== $stage"
  status=0
  case "$stage" in
    build) stage_build || status=$? ;;
    equal) stage_equal || status=$? ;;
    sanitize) stage_sanitize || status=$? ;;
    bench) stage_bench || status=$? ;;
  esac
  if ((status == 77)); then
    ((result)) || result=77
  elif ((status != 0)); then
    echo "gpu_check: stage $stage failed"
    exit 1
  fi
done
exit "$result"

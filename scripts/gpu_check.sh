#!/usr/bin/env bash
# What to run on a machine with a GPU. It builds the tree with CUDA there and runs what is labelled gpu: that needs a CUDA
# toolkit, cmake, ninja and a C++ compiler; every other dependency may come from a prefix folder. Or it runs programs that
# another machine built (--pack, --prebuilt): that needs a driver alone.
set -euo pipefail
started_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: scripts/gpu_check.sh [--stage STAGE]... [--build-only] [-j N]
       scripts/gpu_check.sh --pack DIR [--from BUILD]
       DIR/scripts/gpu_check.sh --prebuilt DIR [--stage STAGE]... [-j N]
  build      configure and build with CUDA into build/gpu; says whether there is a device
  equal      tests labelled gpu: same bytes and same values as the CPU, in one process and through files
  sanitize   a part of these tests under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
  bench      device benchmarks (bench/gpu): lines of JSON in build/gpu/bench/bench_gpu.jsonl, at most 8 minutes, and
             a table of them beside the committed results (bench/results/gpu-h200.jsonl)
  interp     the codec interp alone, in less than 3 minutes: same values as the CPU over 100 runs, the CPU's bytes in
             the benchmark, and what its kernels take both ways on 26 MB and 512 MiB; lines of JSON in
             build/gpu/bench/bench_interp.jsonl
  offload    steps of Adam over moments at rest: same bits as the CPU, in less than a minute
Without --stage: the first four in this order. --build-only is --stage build.

  --pack DIR      copies what was built (BUILD: build/gpu) into DIR, stripped, with what it needs to run elsewhere
  --prebuilt DIR  runs from DIR and builds nothing: equal, sanitize, bench, each on a part of its cases and at most 2 minutes;
                  results go to DIR/results
Example: QUERN_CUDA_ARCHITECTURES=90 scripts/gpu_check.sh --build-only && scripts/gpu_check.sh --pack gpu-check
         tar -c gpu-check | zstd -19 >gpu-check.tar.zst     then, on the machine with the GPU, unpacked:
         gpu-check/scripts/gpu_check.sh --prebuilt gpu-check
Exit status: 0 all stages ran and passed, 1 something failed, 77 nothing failed but a stage had nothing to run on or with.

  QUERN_DEPS                 folder with headers and libraries, as unpacked by `dpkg -x PACKAGE.deb $QUERN_DEPS`
                             (libgtest-dev, libzstd-dev, libxxhash-dev, and for the command libcli11-dev, libfmt-dev,
                             libfmt9, nlohmann-json3-dev)
  QUERN_BENCH_SECONDS        after so many seconds the benchmarks begin with no further array: 420
  QUERN_STAGE_SECONDS        seconds that a stage of --prebuilt may take: 115
  QUERN_CUDA_ARCHITECTURES   e.g. 90, to build for the device at hand alone
TEXT
}

stages=() pack="" prebuilt="" from=build/gpu jobs=${QUERN_JOBS:-$(nproc)}
while (($#)); do
  case "$1" in
    --stage)
      case "${2:-}" in
        build | equal | sanitize | bench | interp | offload) stages+=("$2") ;;
        *) echo "gpu_check.sh: --stage takes build, equal, sanitize, bench, interp or offload" >&2; exit 1 ;;
      esac
      shift ;;
    --build-only) stages+=(build) ;;
    --pack) pack=${2:?--pack needs a folder}; shift ;;
    --prebuilt) prebuilt=${2:?--prebuilt needs a folder}; shift ;;
    --from) from=${2:?--from needs a build folder}; shift ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -j?*) jobs=${1#-j} ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu_check.sh: unknown option $1" >&2; usage >&2; exit 1 ;;
  esac
  shift
done
# Folders are named from where the caller stands.
from_caller() { [[ $1 == /* ]] && echo "$1" || echo "$started_in/$1"; }

if [[ -n $pack ]]; then
  [[ $from == build/gpu ]] || from=$(from_caller "$from")
  exec bash scripts/gpu_pack.sh "$from" "$(from_caller "$pack")"
fi

# Where programs are, where results go, and the seconds a stage may take (0: no limit).
build=build/gpu programs=build/gpu/bin results=build/gpu limit=0
bench_options=(--seconds "${QUERN_BENCH_SECONDS:-420}")
if [[ -n $prebuilt ]]; then
  prebuilt=$(from_caller "$prebuilt")
  [[ -x $prebuilt/bin/gpu_equality ]] || { echo "gpu_check.sh: $prebuilt holds no programs; gpu_check.sh --pack makes such a folder" >&2; exit 1; }
  programs=$prebuilt/bin results=$prebuilt/results limit=${QUERN_STAGE_SECONDS:-115}
  bench_options=(--seconds 60 --bytes 25920000,536870912 --types f32 --tiles block,line --subjects lorenzo,arrays,mask)
  export LD_LIBRARY_PATH=$prebuilt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export QUERN_GPU_EVERY=${QUERN_GPU_EVERY:-4} QUERN_GPU_RUNS=${QUERN_GPU_RUNS:-20} QUERN_GPU_PLANES=${QUERN_GPU_PLANES:-64}
  export QUERN_SANITIZE_EVERY=${QUERN_SANITIZE_EVERY:-23} QUERN_SANITIZE_EVERY_RACES=${QUERN_SANITIZE_EVERY_RACES:-113}
  ((${#stages[@]})) || stages=(equal sanitize bench)
fi
((${#stages[@]})) || stages=(build equal sanitize bench)
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

# Programs of the tests labelled gpu, one a line.
gpu_tests() {
  find "$programs" -maxdepth 1 -type f -executable -name 'gpu_*' 2>/dev/null | sort
}

# Runs a command within the seconds of a stage; says so when they did not suffice.
within_limit() {
  local status=0
  if ((limit == 0)); then "$@"; return; fi
  timeout -k 5 "$limit" "$@" || status=$?
  if ((status == 124 || status == 137)); then echo "gpu_check: not done after $limit s"; fi
  return "$status"
}

need_device() { has_device || skip "no device on this machine"; }

stage_build() {
  if [[ -n $prebuilt ]]; then echo "gpu_check: --prebuilt builds nothing"; return 1; fi
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
  if [[ -z $prebuilt ]]; then
    ctest --test-dir "$build" -L '^gpu$' --output-on-failure --no-tests=error
    return
  fi
  within_limit bash -c '
    set -e
    for test in "$1"/gpu_*; do echo "--- $(basename "$test")"; "$test" --gtest_brief=1; done
    if command -v python3 >/dev/null; then
      echo "--- round trips through files"
      python3 "$2/tests/gpu/test_round_trips.py" "$1/quern"
    fi' equal "$programs" "$prebuilt"
}

stage_sanitize() {
  need_device || return
  command -v compute-sanitizer >/dev/null || { skip "no compute-sanitizer in this CUDA toolkit"; return; }
  local tests
  tests=$(gpu_tests)
  [[ -n $tests ]] || { skip "this build has no tests labelled gpu"; return; }
  # On a part of the cases, the slowest tool on the smallest. Each program is run in shards, as many side by side as there
  # are processors.
  local logs=$results/sanitize shards=8 test tool shard
  rm -rf "$logs"
  mkdir -p "$logs"
  for tool in racecheck initcheck memcheck synccheck; do
    while read -r test; do
      for ((shard = 0; shard < shards; ++shard)); do echo "$tool $test $shard $shards"; done
    done <<<"$tests"
  done >"$logs/shards.txt"
  LOGS=$logs within_limit xargs -a "$logs/shards.txt" -P "$jobs" -L 1 bash scripts/sanitize_shard.sh
}

stage_bench() {
  need_device || return
  local bench=$programs/bench_gpu written=$results/bench/bench_gpu.jsonl status=0
  [[ -x $bench ]] || { skip "this build has no device benchmarks"; return; }
  mkdir -p "$results/bench"
  within_limit "$bench" --out "$written" "${bench_options[@]}" || status=$?
  if command -v python3 >/dev/null && [[ -s $written ]]; then
    python3 bench/gpu/table.py --common bench/results/gpu-h200.jsonl "$written" | tee "$results/bench/table.md"
  fi
  return "$status"
}

# Whether a report of bench_gpu has checks, some of them of encoding, and all hold: no damage and the host's values, or
# the host's bytes. Tests cannot tell this: there the host decodes what the device calls damaged, and encodes what the
# device leaves.
checks_hold() {
  local checks bad
  checks=$(grep '"record": "check"' "$1") || { echo "gpu_check: $1 has no checks"; return 1; }
  grep -q '"subject": "interp_encode"' <<<"$checks" || { echo "gpu_check: $1 has no checks of encoding"; return 1; }
  bad=$(grep -v -e '"damaged_chunks": 0[,}].*"same_values": true' -e '"same_bytes": true' <<<"$checks") || return 0
  printf 'gpu_check: %s has damaged chunks, or other values or bytes than the host:\n%s\n' "$1" "$bad"
  return 1
}

# A run of each half has 80 seconds, whatever the limit of other stages is.
stage_interp() {
  need_device || return
  local equality=$programs/gpu_equality bench=$programs/bench_gpu written=$results/bench/bench_interp.jsonl limit=80
  [[ -x $equality && -x $bench ]] || { skip "this build has no tests labelled gpu, or no device benchmarks"; return; }
  mkdir -p "$results/bench"
  QUERN_GPU_EVERY=1 QUERN_GPU_RUNS=100 QUERN_GPU_PLANES=32 within_limit "$equality" --gtest_filter='*Interp*' || return
  within_limit "$bench" --out "$written" --subjects interp --types f32 --seconds 60 --bytes 25920000,536870912 \
    --tiles block,plane || return
  checks_hold "$written"
}

stage_offload() {
  need_device || return
  local limit=60
  [[ -x $programs/gpu_offload ]] || { skip "this build has no tests labelled gpu"; return; }
  within_limit "$programs/gpu_offload" --gtest_brief=1
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
    interp) stage_interp || status=$? ;;
    offload) stage_offload || status=$? ;;
  esac
  if ((status == 77)); then
    ((result)) || result=77
  elif ((status != 0)); then
    echo "gpu_check: stage $stage failed"
    exit 1
  fi
done
exit "$result"

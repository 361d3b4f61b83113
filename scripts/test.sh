#!/usr/bin/env bash
# The whole test suite on a fresh Debian machine: set-up, release build, then one run of ctest that also holds the
# sanitizer build, the CUDA compile gate and the format check as tests. Needs neither a GPU nor any data outside the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--fast] [--thorough] [--clients] [--no-setup] [-j N] [-- CTEST-ARGUMENTS]
  --fast       release build and its tests only
  --thorough   adds ThreadSanitizer, races of kernels on the simulator, one minute of fuzzing a target, every case of the
               largest tests, and kernels for all architectures (else sm_90: they take long to compile)
  --clients    first makes the virtual environment that tests of Python packages use (scripts/setup_clients.sh)
  --no-setup   do not look for missing packages
  -j N         processes (default: one a hardware thread, or $QUERN_JOBS)
Real fields are tested when $QUERN_TEST_DATA names their folder, or ../shared/data exists beside the tree.
TEXT
}

suite=ON thorough=OFF clients=0 setup=1 jobs=${QUERN_JOBS:-$(nproc)}
while (($#)); do
  case "$1" in
    --fast) suite=OFF ;;
    --thorough) thorough=ON; export QUERN_TEST_THOROUGH=1 ;;
    --clients) clients=1 ;;
    --no-setup) setup=0 ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown option $1" >&2; usage >&2; exit 1 ;;
  esac
  shift
done

if ((setup)); then scripts/setup.sh; fi
if ((clients)); then scripts/setup_clients.sh || (($? == 77)); fi
export QUERN_JOBS=$jobs
if [[ -z ${QUERN_TEST_DATA:-} && -d ../shared/data ]]; then
  QUERN_TEST_DATA=$(cd ../shared/data && pwd)
  export QUERN_TEST_DATA
fi

architectures="90"
if [[ $thorough == ON ]]; then architectures="80;90;100;120"; fi
cmake --preset release "-DQUERN_CUDA_ARCHITECTURES=$architectures" -DQUERN_SUITE=$suite -DQUERN_SUITE_THOROUGH=$thorough -DBUILD_TESTING=ON -DQUERN_BENCH=AUTO
cmake --build --preset release -j "$jobs"

echo
[[ -n ${QUERN_TEST_DATA:-} ]] || echo "note: no real fields here (set QUERN_TEST_DATA); tests that need them are skipped"
[[ $suite$thorough != ONOFF ]] || echo "note: races of kernels are not looked for (--thorough does, and a build without QUERN_SUITE)"
[[ $thorough == ON ]] || echo "note: kernels are compiled for sm_90 (--thorough: also sm_80, sm_100 and sm_120)"
[[ -e /dev/nvidiactl ]] || echo "note: no NVIDIA GPU here; tests that need one are skipped"
echo

# The closing lines are ctest's own; they are held back just long enough to list before them what was skipped and why.
set +e
ctest --preset release -j "$jobs" --output-junit "$PWD/build/release/junit.xml" "$@" </dev/null 2>&1 |
  awk -v log_file="build/release/Testing/Temporary/LastTest.log" -f scripts/skipped.awk
status=${PIPESTATUS[0]}
exit "$status"

#!/usr/bin/env bash
# Long tests of the checkpoint engine that no suite runs: ThreadSanitizer, every crash point, and thousands of small
# checkpoints with failures between them, whose memory must not grow.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/engine_soak.sh [--tsan] [--crash] [--saves N]
  --tsan      configure build/tsan, build the engine's unit test there and run it under ThreadSanitizer
  --crash     every crash point of an engine's saves (some 2000 states), with the build in build/release
  --saves N   N small checkpoints through pyquern with cancelled, failing and dropped saves between them; memory is
              compared after a tenth of them and at the end
Exit status: 0 all held, 1 not, 2 wrong use.
TEXT
}

(($#)) || { usage >&2; exit 2; }
while (($#)); do
  case "$1" in
    --tsan)
      (cd "$root" && cmake --preset tsan -DQUERN_INSTRUCTION_SETS=avx2 -DQUERN_CLI=OFF &&
        ninja -C build/tsan unit_checkpoint_engine && build/tsan/bin/unit_checkpoint_engine) ;;
    --crash)
      QUERN_TEST_THOROUGH=1 "$root/build/release/bin/faults_checkpoint" --gtest_filter='EngineCrash*' ;;
    --saves)
      PYTHONPATH=$root/bindings/python QUERN_LIBRARY=${QUERN_LIBRARY:-$root/build/release/lib/libquern-checkpoint.so} \
        "${PYTHON:-python3}" "$root/bench/checkpoint/engine_soak.py" "${2:?--saves needs a number}"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "engine_soak.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

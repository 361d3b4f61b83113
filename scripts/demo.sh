#!/usr/bin/env bash
# One command from a bare machine to a report: installs what is missing, builds, compresses the given files (or the fields
# of a flow simulation it runs itself) with every codec under several bounds, checks every value, and writes demo-report/.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--out FOLDER] [--no-setup] [--cuda] [FILE...]
  FILE    raw with shape and type in its name (NAME_50x100x100.f32), .npy, .h5 or .nc; FILE::NAME picks one array of an
          .h5 or .nc file. Files that cannot be read are reported and left out.
  --out   folder of the report [demo-report]
  --cuda  build the CUDA objects too where nvcc is found; without it they are built only where an NVIDIA device is
TEXT
}

setup=1 cuda=auto out=demo-report files=()
while (($#)); do
  case "$1" in
    --out) out=${2:?--out needs a folder}; shift ;;
    --no-setup) setup=0 ;;
    --cuda) cuda=yes ;;
    -h | --help) usage; exit 0 ;;
    --) shift; files+=("$@"); break ;;
    -*) echo "demo.sh: unknown option $1" >&2; usage >&2; exit 1 ;;
    *) files+=("$1") ;;
  esac
  shift
done

if ((setup)); then "$here/scripts/setup.sh" --minimal; fi
started=$SECONDS
jobs=${QUERN_JOBS:-$(nproc)}

has_device() { [[ -e /dev/nvidia0 ]] || nvidia-smi -L >/dev/null 2>&1; }

# A tree that was configured before keeps what it builds, unless --cuda asks for more.
options=(-DBUILD_TESTING=OFF -DQUERN_CLI=ON)
if [[ $cuda == yes ]]; then
  options+=(-DQUERN_CUDA=AUTO)
elif [[ ! -e $here/build/release/CMakeCache.txt ]] && ! has_device; then
  options+=(-DQUERN_CUDA=OFF)
  echo "demo: no NVIDIA device is here, so no CUDA objects are built; scripts/demo.sh --cuda builds them"
fi

# What is left to build, and how long that takes: five seconds of one processor a step, and more for CUDA objects.
announce() {
  local steps
  steps=$(ninja -C build/release -n "$@" 2>/dev/null | sed -n '$s/^\[[0-9]*\/\([0-9]*\)\].*/\1/p')
  if [[ -z $steps ]]; then return; fi
  echo "demo: building in $steps steps, $jobs at a time: some $(((steps * 5 / jobs + 59) / 60)) min, with CUDA objects twice that"
}

(
  cd "$here"
  cmake --preset release "${options[@]}"
  # The command; the plugin that lets other programs read packed files; the library under the Python package.
  targets=(quern_cli)
  known=$(ninja -C build/release -t targets all)
  for target in h5quern_serial quern_checkpoint_shared; do
    if grep -q "^$target: phony" <<<"$known"; then targets+=("$target"); fi
  done
  ((${#files[@]})) || targets+=(quern-flow)
  announce "${targets[@]}"
  cmake --build --preset release -j "$jobs" --target "${targets[@]}"
)
echo "built in $((SECONDS - started)) s"
bin=$here/build/release/bin
plugins=$here/build/release/plugins/serial

if ((${#files[@]} == 0)); then
  fields=$here/build/demo-fields
  rm -rf "$fields"
  echo "no files were given: simulating two shear layers that roll up, some 3 min of processor time"
  "$bin/quern-flow" --setup kelvin-helmholtz --size 48x96x96 --time 1.5 --out "$fields" -T 0
  files=("$fields"/*.f32)
fi
code=0
python3 "$here/scripts/demo.py" --quern "$bin/quern" --out "$out" -- "${files[@]}" || code=$?
echo "the command: $bin/quern"
if [[ -e $plugins/libh5quern.so ]]; then
  echo "so that other programs read files of quern h5 pack: export HDF5_PLUGIN_PATH=$plugins"
fi
exit "$code"

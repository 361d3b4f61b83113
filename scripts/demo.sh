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

# Kernels for the best instruction set of this processor; the baseline comes with every build.
native_set() {
  local flags
  flags=" $(sed -n 's/^flags[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1) "
  if [[ $flags == *" avx512f "* && $flags == *" avx512bw "* && $flags == *" avx512dq "* && $flags == *" avx512vl "* ]]; then
    echo avx512
  elif [[ $flags == *" avx2 "* ]]; then
    echo avx2
  fi
}

# What the demo does not need is not built: seconds count more here than what else there is.
options=("-DQUERN_INSTRUCTION_SETS=$(native_set)" -DQUERN_CUDA=OFF -DQUERN_HDF5=OFF)
for file in ${files[@]+"${files[@]}"}; do
  case "${file%%::*}" in
    *.h5 | *.hdf5 | *.he5 | *.nc | *.nc4 | *.cdf) options+=(-DQUERN_HDF5=AUTO) ;;
  esac
done
if has_device; then
  options+=(-DQUERN_CUDA=AUTO -DQUERN_CUDA_ARCHITECTURES=native)
elif [[ $cuda == yes ]]; then
  options+=(-DQUERN_CUDA=AUTO -DQUERN_CUDA_ARCHITECTURES=90)
fi

(
  cd "$here"
  cmake --preset demo "${options[@]}" --log-level=WARNING
  targets=(quern_cli)
  ((${#files[@]})) || targets+=(quern-flow)
  steps=$(ninja -C build/demo -n "${targets[@]}" 2>/dev/null | sed -n '$s/^\[[0-9]*\/\([0-9]*\)\].*/\1/p')
  if [[ -n $steps ]]; then echo "demo: building the command in $steps steps, $jobs at a time: some minutes on two processors"; fi
  cmake --build --preset demo -j "$jobs" --target "${targets[@]}"
)
echo "built in $((SECONDS - started)) s"
bin=$here/build/demo/bin

if ((${#files[@]} == 0)); then
  fields=$here/build/demo-fields
  rm -rf "$fields"
  echo "no files were given: simulating two shear layers that roll up, some 40 s of processor time"
  "$bin/quern-flow" --setup kelvin-helmholtz --size 32x64x64 --time 1.5 --out "$fields" -T 0
  files=("$fields"/*.f32)
fi
code=0
python3 "$here/scripts/demo.py" --quern "$bin/quern" --out "$out" -- "${files[@]}" || code=$?
cat <<TEXT
the command: $bin/quern (for this processor, without checkpoints$([[ ${options[*]} == *HDF5=AUTO* ]] || echo ", HDF5 and netCDF"))
everything (HDF5 filter, checkpoints and their Python package, CUDA where nvcc is found), in build/release/bin:
  cmake --preset release -DBUILD_TESTING=OFF && cmake --build --preset release
TEXT
exit "$code"

#!/usr/bin/env bash
# Makes a quality model as the one that ships: fields, runs, training. Takes some twenty minutes of processor time. What
# was made already is kept and used again.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/train_surrogate.sh WORK [FIELDS]
  WORK     folder for fields, runs and the model
  FIELDS   folder of recorded fields, NAME_SHAPE.TYPE (optional)
Needs quern, quern-flow and quern-train (a build with LibTorch) in build/release/bin, or in $QUERN_BIN, and NumPy.
The new model is WORK/quality.qmodel; put it into surrogate/models/ when its errors are no worse.
TEXT
}

if (($# < 1 || $# > 2)) || [[ $1 == -h || $1 == --help ]]; then
  usage
  exit $(($# < 1 || $# > 2))
fi
work=$1
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${QUERN_BIN:-$root/build/release/bin}
mkdir -p "$work"
if [[ ! -d $work/fields ]]; then
  python3 "$root/scripts/surrogate_fields.py" "$work/fields.part" "${@:2}"
  mkdir -p "$work/kh" "$work/sedov"
  "$bin/quern-flow" --size 48x64x64 --time 2.2 --every 60 --out "$work/kh" -q
  "$bin/quern-flow" --setup sedov --size 56x56x56 --time 0.15 --every 25 --out "$work/sedov" -q
  for step in 0120 0360 0600 0840 1080 1260; do
    for name in density velocity_x velocity_z pressure energy; do
      for file in "$work/kh/${name}_t${step}_"*; do mv "$file" "$work/fields.part/flowkh-${file##*/}"; done
    done
  done
  for step in 0100 0300 0500 0700; do
    for name in density velocity_x pressure; do
      for file in "$work/sedov/${name}_t${step}_"*; do mv "$file" "$work/fields.part/flowsedov-${file##*/}"; done
    done
  done
  mv "$work/fields.part" "$work/fields"
fi
# Each of the processes takes every so many-th file; all append to one file of runs, and what stands there is not made
# again. Times in it are of the processor: other work on the machine counts little.
bounds=1e-1,3e-2,1e-2,3e-3,1e-3,3e-4,1e-4,3e-5,1e-5,1e-6
jobs=${QUERN_JOBS:-$(nproc)}
files=("$work"/fields/*)
sweep() {  # FIRST STEP LAST
  local at
  for ((at = $1; at < $3; at += $2)); do
    "$bin/quern" bench --sweep -q --rel "$bounds" --csv "$work/runs.csv" "${files[at]}"
  done
}
sweep 0 1 1  # makes the file, with its header
pids=()
for ((job = 0; job < jobs; ++job)); do
  sweep $((job + 1)) "$jobs" ${#files[@]} &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
# The order of the processes does not matter: rows are sorted.
{ head -n 1 "$work/runs.csv"; tail -n +2 "$work/runs.csv" | LC_ALL=C sort; } >"$work/runs.sorted.csv"
# The numbers of epochs are those of the model that ships, as its record says.
"$bin/quern" train quality -f --epochs 2000 --deep-epochs 300 --experts 4 --hidden 60 --features deep \
  --data "${files[@]}" \
  --runs "$work/runs.sorted.csv" -o "$work/quality.qmodel"
"$bin/quern" model info "$work/quality.qmodel"

#!/usr/bin/env bash
# One command from a bare machine to a report: installs what is missing, builds, compresses the given files (or the fields
# of a flow simulation it runs itself) with every codec under several bounds, checks every value, and writes demo-report/.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--out FOLDER] [--no-setup] [FILE...]
  FILE    raw with shape and type in its name (NAME_50x100x100.f32), .npy, .h5 or .nc; FILE::NAME picks one array of an
          .h5 or .nc file. Files that cannot be read are reported and left out.
  --out   folder of the report [demo-report]
TEXT
}

setup=1 out=demo-report files=()
while (($#)); do
  case "$1" in
    --out) out=${2:?--out needs a folder}; shift ;;
    --no-setup) setup=0 ;;
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
(
  cd "$here"
  cmake --preset release -DBUILD_TESTING=OFF -DQUERN_CLI=ON
  targets=(quern_cli)
  ((${#files[@]})) || targets+=(quern-flow)
  cmake --build --preset release -j "$jobs" --target "${targets[@]}"
)
echo "built in $((SECONDS - started)) s"
bin=$here/build/release/bin

if ((${#files[@]} == 0)); then
  fields=$here/build/demo-fields
  rm -rf "$fields"
  echo "no files were given: simulating two shear layers that roll up"
  "$bin/quern-flow" --setup kelvin-helmholtz --size 48x96x96 --time 1.5 --out "$fields" -T 0
  files=("$fields"/*.f32)
fi
exec python3 "$here/scripts/demo.py" --quern "$bin/quern" --out "$out" -- "${files[@]}"

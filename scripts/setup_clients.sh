#!/usr/bin/env bash
# Makes build/clients, a virtual environment with the array packages of tests/python/clients.txt, in the versions that
# are named there, and build/clients-zarr2, which has zarr 2. CMake finds them: configure after this. Nothing is done
# where they are there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: scripts/setup_clients.sh [--torch] [--python FILE]
  --torch        also PyTorch, Lightning, Transformers and Accelerate (some gigabytes), for the tests of checkpoints
  --python FILE  the Python it is made of, 3.11 or newer (default: python3)
Exit status: 0 done, 2 wrong use, 77 PyPI cannot be reached, and nothing was changed.
TEXT
}

pins=(tests/python/clients.txt) python=python3
while (($#)); do
  case "$1" in
    --torch) pins+=(tests/python/clients-torch.txt) ;;
    --python) python=${2:?--python needs a file}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup_clients.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

# make_venv FOLDER FILE...: an environment with what the files name.
make_venv() {
  local venv=$1 stamp=$1/installed.txt file
  shift
  if [[ -x $venv/bin/python && -f $stamp ]] && cat "$@" | cmp -s - "$stamp"; then
    echo "setup_clients: $venv is up to date"
    return
  fi
  rm -rf "$venv"
  mkdir -p build
  "$python" -m venv "$venv"
  local requirements=()
  for file in "$@"; do requirements+=(-r "$file"); done
  if ! "$venv/bin/pip" install -q --disable-pip-version-check "${requirements[@]}"; then
    rm -rf "$venv"
    echo "SKIP: the packages of $* cannot be had from PyPI here"
    exit 77
  fi
  cat "$@" >"$stamp"
  echo "setup_clients: $venv is ready; configure again, so that the tests take it"
}

make_venv build/clients "${pins[@]}"
make_venv build/clients-zarr2 tests/python/clients-zarr2.txt

#!/usr/bin/env bash
# Makes build/clients, a virtual environment with the array packages of tests/python/clients.txt, in the versions that are
# named there. CMake finds it: configure after this. Nothing is done where it is there already.
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

venv=build/clients
stamp=$venv/installed.txt
if [[ -x $venv/bin/python && -f $stamp ]] && cat "${pins[@]}" | cmp -s - "$stamp"; then
  echo "setup_clients: $venv is up to date"
  exit 0
fi
rm -rf "$venv"
mkdir -p build
"$python" -m venv "$venv"
requirements=()
for file in "${pins[@]}"; do requirements+=(-r "$file"); done
if ! "$venv/bin/pip" install -q --disable-pip-version-check "${requirements[@]}"; then
  rm -rf "$venv"
  echo "SKIP: the packages of ${pins[*]} cannot be had from PyPI here"
  exit 77
fi
cat "${pins[@]}" >"$stamp"
echo "setup_clients: $venv is ready; configure again, so that the tests take it"

#!/usr/bin/env bash
# The checkpoint example with what pkg-config tells, and over find_package from a moved copy.
# usage: checkpoint.sh PREFIX LIBDIR EXAMPLE-FOLDER
set -euo pipefail
prefix=$1 libdir=$2 example=$3

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs 'quern-checkpoint >= 0.1')
"$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror "$example/train.c" "${flags[@]}" -lm -o "$work/train"
grep -q 'NEEDED.*libquern-checkpoint\.so\.0' <<<"$(readelf -d "$work/train")" ||
  { echo "the program does not load libquern-checkpoint.so.0"; exit 1; }
LD_LIBRARY_PATH=$prefix/$libdir "$work/train" "$work/store"
# Once more, from where it stopped.
LD_LIBRARY_PATH=$prefix/$libdir "$work/train" "$work/store" | tee "$work/log"
grep -q 'goes on from step' "$work/log" || { echo "the second run did not resume"; exit 1; }
if [[ -x $prefix/bin/quern ]]; then
  "$prefix/bin/quern" checkpoint verify --full --store "$work/store"
fi

moved="$work/moved here"
cp -a "$prefix" "$moved"
mkdir "$work/source"
cp "$example/train.c" "$work/source"
cat >"$work/source/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(train LANGUAGES C)
find_package(quern REQUIRED COMPONENTS checkpoint)
add_executable(train train.c)
target_link_libraries(train PRIVATE quern::checkpoint m)
TEXT
"$CMAKE" -S "$work/source" -B "$work/build" "-DCMAKE_PREFIX_PATH=$moved" >"$work/log" 2>&1 &&
  "$CMAKE" --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/build/train" "$work/store2"

# The Python package finds the library of the prefix it lies in, moved or not.
if python3=$(command -v /usr/bin/python3 || command -v python3) && "$python3" -c 'import numpy' 2>/dev/null; then
  env -u QUERN_LIBRARY PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$moved/share/quern/python" MOVED="$moved" STORE="$work/store2" \
    "$python3" - <<'TEXT'
import os
import pyquern as quern
from pyquern._checkpoint import library as _library
assert os.path.realpath(_library.library().path).startswith(os.path.realpath(os.environ["MOVED"])), _library.library().path
assert quern.checkpoint.ls(os.environ["STORE"]) == [50, 100]
state = quern.checkpoint.load(os.environ["STORE"])
assert state["layer.weight"].shape == (16, 4096)
print("Python reads what C wrote:", *state)
TEXT
fi

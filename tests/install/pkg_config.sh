#!/usr/bin/env bash
# The C example with the flags that pkg-config tells, and nothing else: shared, and wholly static.
# usage: pkg_config.sh PREFIX LIBDIR PROGRAM.c
set -euo pipefail
prefix=$1 libdir=$2 program=$3

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
flags=(-std=c99 -Wall -Wextra -Wpedantic -Werror)

read -ra shared < <(pkg-config --cflags --libs 'quern >= 0.1')
"$CC" "${flags[@]}" "$program" "${shared[@]}" -lm -o "$work/shared"
grep -q 'NEEDED.*libquern\.so\.0' <<<"$(readelf -d "$work/shared")" ||
  { echo "the program does not load libquern.so.0"; exit 1; }
LD_LIBRARY_PATH=$prefix/$libdir "$work/shared"

if ! echo 'int main(void) { return 0; }' | "$CC" -static -x c - -o "$work/probe" 2>/dev/null; then
  echo "no static C library here: the static program is left out"
  exit 0
fi
read -ra static < <(pkg-config --static --cflags --libs quern)
"$CC" -static "${flags[@]}" "$program" "${static[@]}" -o "$work/static"
env -i "$work/static"

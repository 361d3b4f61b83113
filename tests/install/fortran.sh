#!/usr/bin/env bash
# The Fortran example with the installed module source and library. usage: fortran.sh PREFIX LIBDIR PROGRAM.f90
set -euo pipefail
prefix=$1 libdir=$2 program=$3

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra libs < <(pkg-config --libs quern)
"$FC" "$(pkg-config --variable=fortrandir quern)/quern.f90" "$program" "${libs[@]}" -o roundtrip
LD_LIBRARY_PATH=$prefix/$libdir ./roundtrip

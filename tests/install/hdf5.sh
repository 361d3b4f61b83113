#!/usr/bin/env bash
# A program linked with the installed HDF5 filter by what pkg-config tells; then h5dump finds the installed plugin.
# usage: hdf5.sh PREFIX LIBDIR FLAVOUR PROGRAM.c
set -euo pipefail
prefix=$1 libdir=$2 flavour=$3 program=$4

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
pkg-config --exists "quern-hdf5-$flavour" || { echo "SKIP: pkg-config does not know this flavour of HDF5"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -ra flags < <(pkg-config --cflags --libs "quern-hdf5-$flavour")
"$CC" -std=c99 -Wall -Wextra "$program" "${flags[@]}" -o "$work/program"
env -u HDF5_PLUGIN_PATH "$work/program" "$work/x.h5"

command -v h5dump >/dev/null || exit 0
dump=$(HDF5_PLUGIN_PATH=$prefix/$libdir/quern/hdf5/$flavour h5dump -d x -y "$work/x.h5")
[[ $dump == *" -34.5,"* ]] || { echo "h5dump does not read the file through the installed plugin"; exit 1; }

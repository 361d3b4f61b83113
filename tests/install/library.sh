#!/usr/bin/env bash
# The C program of drives with what pkg-config tells, and over find_package from a moved copy.
# usage: lidar.sh PREFIX LIBDIR PROGRAM.c
set -euo pipefail
prefix=$1 libdir=$2 program=$3

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs 'quern-lidar >= 0.1')
"$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror "$program" "${flags[@]}" -lm -o "$work/drive"
grep -q 'NEEDED.*libquern-lidar\.so\.0' <<<"$(readelf -d "$work/drive")" ||
  { echo "the program does not load libquern-lidar.so.0"; exit 1; }
(cd "$work" && LD_LIBRARY_PATH=$prefix/$libdir ./drive)

moved="$work/moved here"
cp -a "$prefix" "$moved"
mkdir "$work/source"
cp "$program" "$work/source/drive.c"
cat >"$work/source/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(drive LANGUAGES C)
find_package(quern REQUIRED COMPONENTS lidar)
add_executable(drive drive.c)
target_link_libraries(drive PRIVATE quern::lidar m)
TEXT
"$CMAKE" -S "$work/source" -B "$work/build" "-DCMAKE_PREFIX_PATH=$moved" >"$work/log" 2>&1 &&
  "$CMAKE" --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
(cd "$work" && build/drive)

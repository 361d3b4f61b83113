#!/usr/bin/env bash
# A C program of libquern-NAME.so with what pkg-config tells, and over find_package from a moved copy.
# usage: library.sh PREFIX LIBDIR NAME PROGRAM.c [ARGUMENT ...]   the program runs in an empty folder
set -euo pipefail
prefix=$1 libdir=$2 name=$3 program=$4
shift 4

command -v pkg-config >/dev/null || { echo "SKIP: no pkg-config here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/empty" "$work/empty too" "$work/source"
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs "quern-$name >= 0.1")
"$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror "$program" "${flags[@]}" -lm -o "$work/program"
grep -q "NEEDED.*libquern-$name\.so\.0" <<<"$(readelf -d "$work/program")" ||
  { echo "the program does not load libquern-$name.so.0"; exit 1; }
(cd "$work/empty" && LD_LIBRARY_PATH=$prefix/$libdir ../program "$@")

moved="$work/moved here"
cp -a "$prefix" "$moved"
cp "$program" "$work/source/program.c"
cat >"$work/source/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.16)
project(program LANGUAGES C)
find_package(quern REQUIRED COMPONENTS $name)
add_executable(program program.c)
target_link_libraries(program PRIVATE quern::$name m)
TEXT
"$CMAKE" -S "$work/source" -B "$work/build" "-DCMAKE_PREFIX_PATH=$moved" >"$work/log" 2>&1 &&
  "$CMAKE" --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
(cd "$work/empty too" && ../build/program "$@")

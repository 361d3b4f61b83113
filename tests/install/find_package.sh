#!/usr/bin/env bash
# The C++ example over find_package, shared and static, from a copy of the installed tree at another place; a C
# program over libquern.a; and what a version that is not there says. usage: find_package.sh PREFIX LIBDIR
# EXAMPLE-FOLDER
set -euo pipefail
prefix=$1 libdir=$2 example=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
moved="$work/moved here"
cp -a "$prefix" "$moved"
if grep -rIlF "$prefix" "$moved"; then
  echo "the files above name the prefix they were installed to, so the tree cannot be moved"
  exit 1
fi

fail() { cat "$work/log"; echo "$1"; exit 1; }
# build FOLDER NAME [OPTIONS]: configures against the moved tree, and builds.
build() {
  local folder=$1 name=$2
  shift 2
  "$CMAKE" -S "$folder" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$moved" "$@" \
    >"$work/log" 2>&1 &&
    "$CMAKE" --build "$work/$name" >>"$work/log" 2>&1
}

build "$example" shared || fail "the example does not build with quern::quern"
grep -q 'NEEDED.*libquern\.so\.0' <<<"$(readelf -d "$work/shared/roundtrip")" ||
  fail "the example does not load libquern.so.0"
"$work/shared/roundtrip"

build "$example" static -DSTATIC=ON || fail "the example does not build with quern::quern_static"
if grep -q libquern <<<"$(readelf -d "$work/static/roundtrip")"; then fail "the static example loads libquern.so"; fi
"$work/static/roundtrip"

mkdir "$work/c"
cp "$example/../c/roundtrip.c" "$work/c"
cat >"$work/c/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(c_alone LANGUAGES C)
find_package(quern REQUIRED COMPONENTS shared static)
add_executable(roundtrip roundtrip.c)
target_link_libraries(roundtrip PRIVATE quern::quern_static)
TEXT
build "$work/c" c_static || fail "a project of C alone does not build with quern::quern_static"
"$work/c_static/roundtrip"

mkdir "$work/new"
cat >"$work/new/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(too_new LANGUAGES C)
find_package(quern 99 REQUIRED)
TEXT
if build "$work/new" too_new; then fail "find_package(quern 99) was satisfied"; fi
# The message is wrapped, so words are looked for, not the sentence.
grep -q 'compatible with requested version "99"' <<<"$(tr -s ' \n' ' ' <"$work/log")" ||
  fail "the message does not name the version"
grep -q 'quernConfig.cmake, version: 0' <<<"$(tr -s ' \n' ' ' <"$work/log")" || fail "the message does not name what is there"

sed -i 's/quern 99 REQUIRED/quern REQUIRED COMPONENTS gpu/' "$work/new/CMakeLists.txt"
if build "$work/new" component; then fail "a component that does not exist was found"; fi
echo "moved tree, both libraries, C alone, and refusals: as they should be"

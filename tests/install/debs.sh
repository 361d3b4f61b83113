#!/usr/bin/env bash
# Makes the Debian packages, unpacks them into an empty tree, holds what each file loads against the declared
# dependencies, and runs the command and a program from there. usage: debs.sh BUILD PROGRAM.c
set -euo pipefail
build=$1 program=$2

for tool in dpkg-deb dpkg-shlibdeps dpkg-query; do
  command -v $tool >/dev/null || { echo "SKIP: no $tool here"; exit 77; }
done
[[ -e $build/CPackConfig.cmake ]] || { echo "SKIP: this build makes no packages (no gzip)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CPACK" --config "$build/CPackConfig.cmake" -G DEB -B "$work/out" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

failed=0
fail() { echo "$1"; failed=1; }

# owner FILE: the installed package that a library comes from. /lib may be a link to /usr/lib, and dpkg knows one of
# the names.
owner() {
  local real
  real=$(realpath "$1")
  { dpkg-query -S "$real" || dpkg-query -S "${real#/usr}" || dpkg-query -S "/usr$real"; } 2>/dev/null |
    head -n 1 | cut -d: -f1
}

# Every library that a program or library of the package names comes from a package that it depends on.
check_dependencies() {
  local package=$1 tree=$2 depends file library path from
  depends=" $(dpkg-deb -f "$package" Depends | tr ',|' '\n\n' | sed -E 's/^ *([a-z0-9.+-]+).*/\1/' | tr '\n' ' ') "
  while read -r file; do
    readelf -h "$file" >/dev/null 2>&1 || continue
    for library in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
      path=$(ldd "$file" |
        awk -v name="$library" '$1 == name && $2 == "=>" {print $3} $1 ~ "/" name "$" {print $1}' | head -n 1)
      from=$(owner "${path:-/nowhere}" || true)
      [[ -n $from ]] || { echo "note: no package owns $library (${path:-not found}), so it is not checked"; continue; }
      [[ $depends == *" $from "* ]] || fail "$(basename "$file") loads $library of $from, and Depends has:$depends"
    done
  done < <(find "$tree" -type f -perm -u+x ! -name '*.a' -o -type f -name '*.so.*')
}

mkdir "$work/alone"
names=" "
for package in "$work"/out/*.deb; do
  name=$(dpkg-deb -f "$package" Package)
  names+="$name "
  dpkg-deb -x "$package" "$work/alone/$name"
  dpkg-deb -x "$package" "$work/root"
  for field in Version Architecture Maintainer Section Priority Description Installed-Size Depends; do
    [[ -n $(dpkg-deb -f "$package" $field) ]] || fail "$name has no field $field"
  done
  for document in copyright changelog.gz changelog.Debian.gz; do
    [[ -s $work/alone/$name/usr/share/doc/$name/$document ]] || fail "$name has no $document"
  done
  check_dependencies "$package" "$work/alone/$name"
done
for name in libquern0 libquern-dev; do
  [[ $names == *" $name "* ]] || fail "the package $name was not made"
done

[[ $(dpkg-deb -f "$work"/out/libquern-dev_*.deb Depends) == *"libquern0 (= "* ]] ||
  fail "libquern-dev takes any libquern0"
grep -q '^libquern 0 libquern0 (>= ' <<<"$(dpkg-deb --ctrl-tarfile "$work"/out/libquern0_*.deb | tar -xO ./shlibs)" ||
  fail "libquern0 does not say which package programs that load it depend on"
grep -q ldconfig <<<"$(dpkg-deb --ctrl-tarfile "$work"/out/libquern0_*.deb | tar -xO ./triggers)" ||
  fail "libquern0 has no ldconfig trigger"

# The other libraries come in packages of their own, which say so to those that are linked with them.
for name in lidar offload checkpoint; do
  package=libquern-${name}0
  if [[ $names != *" $package "* ]]; then
    [[ $name == checkpoint ]] || fail "the package $package was not made"
    continue
  fi
  dpkg-deb --ctrl-tarfile "$work/out/$package"_*.deb | tar -xO ./shlibs |
    grep -q "^libquern-$name 0 $package (>= " || fail "$package has no shlibs"
  [[ -n $(find "$work/alone/$package" -name "libquern-$name.so.0") ]] || fail "$package does not hold the library"
  [[ -s $work/alone/libquern-dev/usr/include/quern/$name.h ]] || fail "libquern-dev lacks $name.h"
  [[ $(dpkg-deb -f "$work"/out/libquern-dev_*.deb Depends) == *"$package (= "* ]] ||
    fail "libquern-dev takes any $package"
done

library=$(find "$work/root/usr/lib" -name 'libquern.so.0')
"$CC" -std=c99 -I"$work/root/usr/include" "$program" "$(dirname "$library")/libquern.so" -lm -o "$work/program"
env -i LD_LIBRARY_PATH="$(dirname "$library")" "$work/program" ||
  fail "a program does not run with the unpacked library"

if [[ $names == *" quern "* ]]; then
  quern=$work/root/usr/bin/quern
  grep -q '^\.TH QUERN 1' <<<"$(gzip -dc "$work/root/usr/share/man/man1/quern.1.gz")" || fail "the manual is not there"
  head -c 40000 /dev/zero | tr '\0' 'q' >"$work/field.f32"
  env -i "$quern" compress --abs 0.1 -t f32 -s 100x100 "$work/field.f32" &&
    env -i "$quern" verify "$work/field.f32" "$work/field.f32.qn" >/dev/null ||
    fail "the unpacked command does not work"
  if [[ -n $(find "$build" -name quern_files.so -not -path "*/tests/*" -not -path "*/_CPack_Packages/*") ]]; then
    grep -q '"HDF5":' <<<"$(env -i "$quern" doctor --json)" || fail "the unpacked command does not load its module for HDF5"
  fi
fi
((failed)) || echo "packages:$names"
exit "$failed"

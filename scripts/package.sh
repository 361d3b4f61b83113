#!/usr/bin/env bash
# Builds the Debian packages libquern0, libquern-dev, quern and hdf5-filter-quern-* into build/package/debs, for the system it runs on.
# usage: scripts/package.sh [--no-setup] [-j N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

setup=1 jobs=${QUERN_JOBS:-$(nproc)}
while (($#)); do
  case "$1" in
    --no-setup) setup=0 ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) echo "usage: scripts/package.sh [--no-setup] [-j N]"; exit 0 ;;
    *) echo "package.sh: unknown option $1" >&2; exit 1 ;;
  esac
  shift
done
if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "package.sh: needs dpkg-shlibdeps, that is a Debian system with dpkg-dev" >&2
  exit 1
fi

if ((setup)); then scripts/setup.sh --minimal; fi
options=()
# Who answers for the packages, as Debian's own tools are told.
if [[ -n ${DEBEMAIL:-} ]]; then options+=("-DQUERN_PACKAGE_CONTACT=${DEBFULLNAME:-quern maintainers} <$DEBEMAIL>"); fi
cmake --preset package "${options[@]+"${options[@]}"}"
cmake --build --preset package -j "$jobs"
rm -rf build/package/debs
(cd build/package && cpack -G DEB -B debs)
rm -rf build/package/debs/_CPack_Packages
for package in build/package/debs/*.deb; do
  echo "$package: $(dpkg-deb -f "$package" Depends)"
done

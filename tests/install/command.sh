#!/usr/bin/env bash
# The installed command loads its module for HDF5 and netCDF from where both are installed, also when the tree has moved, and does not
# load the libraries without need. usage: command.sh PREFIX
set -euo pipefail
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -a "$prefix" "$work/moved"
for quern in "$prefix/bin/quern" "$work/moved/bin/quern"; do
  grep -q '"HDF5":' <<<"$(env -i "$quern" doctor --json)" || { echo "$quern does not load its module"; exit 1; }
  if ldd "$quern" | grep -E 'libhdf5|libnetcdf|libcurl'; then echo "$quern is linked with these"; exit 1; fi
done

#!/usr/bin/env bash
# Makes the LiDAR scans of a street that is driven for two months: 60 days of 20 scans (2.5 GB, minutes), or with --full
# of 300 (38 GB, an hour or more). Further words go to quern-drives, as --town 2 for another street.
set -euo pipefail

usage() { echo "usage: scripts/lidar_days.sh BUILD-FOLDER OUT [--full] [WORDS FOR quern-drives...]" >&2; exit 1; }

(($# >= 2)) || usage
command=$1/bin/quern-drives out=$2
shift 2
frames=20
if [[ ${1:-} == --full ]]; then
  frames=300
  shift
fi
[[ -x $command ]] || { echo "$command is not there: build the target quern-drives" >&2; exit 1; }
time "$command" --out "$out" --days 60 --frames "$frames" -T "$(nproc)" "$@"

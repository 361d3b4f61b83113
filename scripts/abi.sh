#!/usr/bin/env bash
# Compares the binary interface of a built libquern.so with the committed description
# libcompress/capi/abi/libquern-*.abi, or renews that description. New functions, and members added at the end of a
# struct with a struct_size, are compatible.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/abi.sh [--renew] [--library FILE] [--header FILE] [--abi FILE]
  --renew          write the description anew instead of comparing with it
  --library FILE   the library, with debug information (default: build/release/lib/libquern.so)
  --header FILE    its header (default: quern.h and quern_estimate.h of libcompress/include/quern); only types declared
                   there count; may be given again
  --abi FILE       the description (default: libcompress/capi/abi/libquern-MAJOR.MINOR.abi of the header's version)
Exit status: 0 compatible or renewed, 1 incompatible, 2 wrong use, 77 abidw and abidiff (abigail-tools) are missing.
TEXT
}

renew=0 library=$root/build/release/lib/libquern.so headers=() description=
while (($#)); do
  case "$1" in
    --renew) renew=1 ;;
    --library) library=${2:?--library needs a file}; shift ;;
    --header) headers+=("${2:?--header needs a file}"); shift ;;
    --abi) description=${2:?--abi needs a file}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "abi.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

((${#headers[@]})) || headers=("$root/libcompress/include/quern/"{quern,quern_estimate}.h)
header=${headers[0]}
version_part() { sed -n "s/^#define QUERN_VERSION_$1 //p" "$header"; }
description=${description:-$root/libcompress/capi/abi/libquern-$(version_part MAJOR).$(version_part MINOR).abi}
if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
  echo "SKIP: no abidw and abidiff here (Debian package abigail-tools)"
  exit 77
fi
[[ -e $library ]] || { echo "abi.sh: $library does not exist; build the target quern_shared first" >&2; exit 2; }
# grep -q leaves at the first match, and pipefail would take the end of a writer cut short so for a failure.
if ! grep -q '\.debug_info' <<<"$(readelf -SW "$library")"; then
  echo "abi.sh: $library has no debug information, so its types cannot be told" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Alone in a folder, because what lies beside the header is not part of the interface.
mkdir "$work/headers"
cp "${headers[@]}" "$work/headers"
abidw --headers-dir "$work/headers" --drop-private-types --exported-interfaces-only --drop-undefined-syms \
  --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-architecture --type-id-style hash \
  --out-file "$work/now.abi" "$library"

if ((renew)); then
  mkdir -p "$(dirname "$description")"
  cp "$work/now.abi" "$description"
  echo "wrote $description"
  exit 0
fi
if [[ ! -e $description ]]; then
  echo "abi.sh: there is no $description; a new version begins with: scripts/abi.sh --renew" >&2
  exit 2
fi
python3 "$root/scripts/abi_without_growth.py" "$description" "$work/now.abi" "$work/compared.abi"
if abidiff --no-added-syms "$description" "$work/compared.abi"; then
  echo "$(basename "$library") is compatible with $(basename "$description")"
  exit 0
fi
cat <<TEXT
Programs compiled with the header that $(basename "$description") was made from would misbehave with this library.
Undo what is listed above, or, before the version is released, accept it: scripts/abi.sh --renew, and a line in
CHANGELOG.md.
TEXT
exit 1

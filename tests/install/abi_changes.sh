#!/usr/bin/env bash
# Does scripts/abi.sh notice? Libraries of empty functions are made from quern.h and from changed copies of it.
# usage: abi_changes.sh ROOT
set -euo pipefail
root=$1
command -v abidw >/dev/null && command -v abidiff >/dev/null || { echo "SKIP: no abidw and abidiff here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# library NAME SED-PROGRAM: NAME/quern/quern.h is the header after the program, NAME/libquern.so what it declares.
library() {
  mkdir -p "$work/$1/quern"
  cp "$root/libcompress/include/quern/quern_estimate.h" "$work/$1/quern"
  sed -E "$2" "$root/libcompress/include/quern/quern.h" >"$work/$1/quern/quern.h"
  if [[ -n $2 ]] && cmp -s "$work/$1/quern/quern.h" "$root/libcompress/include/quern/quern.h"; then
    echo "$1: the change finds nothing to change in quern.h; adapt this test"
    exit 1
  fi
  { echo '#include <quern/quern.h>'
    tr '\n' ' ' <"$work/$1/quern/quern.h" | grep -oE 'QUERN_API [a-z][^;{}]*\);' | sed 's/);$/) { __builtin_trap(); }/'
  } >"$work/$1/functions.c"
  "$CC" -g -shared -fPIC -I"$work/$1" -Wl,-soname,libquern.so.0 "$work/$1/functions.c" -o "$work/$1/libquern.so"
}

failed=0
# expect STATUS NAME SED-PROGRAM
expect() {
  local status=0
  library "$2" "$3"
  bash "$root/scripts/abi.sh" --library "$work/$2/libquern.so" --header "$work/$2/quern/quern.h" --abi "$work/base.abi" \
    >"$work/log" 2>&1 || status=$?
  if ((status != $1)); then
    cat "$work/log"
    echo "$2: exit status $status instead of $1"
    failed=1
  fi
}

library base ''
bash "$root/scripts/abi.sh" --renew --library "$work/base/libquern.so" --header "$work/base/quern/quern.h" --abi "$work/base.abi"
expect 0 unchanged ''
expect 0 function_added 's/^QUERN_API size_t quern_codec_count\(void\);/&\nQUERN_API int quern_new(int a);/'
expect 0 member_at_the_end 's/^\} quern_verdict;/  double later;\n&/'
expect 1 function_gone '/^QUERN_API size_t quern_codec_count\(void\);/d'
between='s/^  uint64_t specials_lost;.*signs of zero.*/  double between;\n&/'
expect 1 member_in_the_middle "$between"
expect 1 member_in_the_middle_and_at_the_end "$between; s/^\} quern_verdict;/  double later;\n&/"
expect 1 member_of_another_type 's/^  double first_error;/  float first_error;/'
expect 1 struct_without_a_size_grows 's/^\} quern_runner;/  void* later;\n&/'
expect 1 argument_of_another_type 's/quern_codec_get\(size_t index/quern_codec_get(uint16_t index/'
expect 1 argument_added 's/quern_abi_version\(void\)/quern_abi_version(int a)/'
((failed)) || echo "additions pass, seven kinds of damage do not"
exit "$failed"

#!/bin/bash
# Loops that count in different ways meet a probe each strip, short trips none, and compute what they did.
. "$(dirname "$0")/lib.sh"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
for level in -O1 -O2 -O3 "-O3 -fno-pic -no-pie" "-O2 -flto"; do
  say "== $level"
  # shellcheck disable=SC2086
  "$bin/headway-cc" $level -I"$runtime" "$test_dir/strips.c" "$work/stub.o" -o "$work/strips"
  timeout 120 "$work/strips" || fail "$level"
done

#!/bin/bash
# memset and memcpy of large or unknown size meet probes, and do what they did.
. "$(dirname "$0")/lib.sh"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
for level in -O0 -O2 "-O3 -march=native" "-O2 -flto"; do
  say "== $level"
  # shellcheck disable=SC2086
  "$bin/headway-cc" $level -I"$runtime" "$test_dir/blocks.c" "$work/stub.o" -o "$work/blocks"
  timeout 20 "$work/blocks" || fail "$level"
done

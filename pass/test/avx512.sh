#!/bin/bash
# AVX-512's registers, which a probe does not keep, are kept by the code that uses them.
. "$(dirname "$0")/lib.sh"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
for level in -O1 -O3 "-O2 -flto"; do
  say "== $level"
  # shellcheck disable=SC2086
  "$bin/headway-cc" $level -mavx512f -mavx512bw -mavx512vl -mprefer-vector-width=512 -I"$runtime" \
    "$test_dir/avx512.c" "$work/stub.o" -o "$work/avx512"
  timeout 20 "$work/avx512" || fail "$level"
done

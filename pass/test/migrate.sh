#!/bin/bash
# A computation that changes its thread at every probe reads the flag of the thread it is on, and
# keeps no thread-local address or value from before.
. "$(dirname "$0")/lib.sh"
plain_objects
clang-19 -O1 -I"$runtime" -I"$test_dir" -c "$test_dir/migrate.c" -o "$work/migrate.o"
parts=("$work/migrate.o" "$work/stub.o" "$work/outside.o")

run() { # NAME ROUNDS FLAGS…
  local name=$1 rounds=$2; shift 2
  say "== $name"
  "$bin/headway-cc" "$@" -I"$test_dir" "$test_dir/migrate_work.c" "${parts[@]}" -lpthread -o "$work/migrate"
  timeout 60 "$work/migrate" "$rounds" || fail "$name"
}

# Here every iteration has a probe.
run "-O0" 4 -O0
run "-O2" 200 -O2
run "-O3 -march=native" 200 -O3 -march=native
run "-O2 -flto" 200 -O2 -flto

say "== -O2 in a shared object"
"$bin/headway-cc" -O2 -fPIC -shared -I"$test_dir" "$test_dir/migrate_work.c" -o "$work/libwork.so"
clang-19 -rdynamic "${parts[@]}" -L"$work" -lwork -Wl,-rpath,"$work" -lpthread -o "$work/migrate"
timeout 60 "$work/migrate" || fail "shared object"

say "== negative control: without the pass's early stage the same code does keep them"
"$bin/headway-cc" -O2 -mllvm -headway-naive-addresses -I"$test_dir" \
  "$test_dir/migrate_work.c" "${parts[@]}" -lpthread -o "$work/naive"
if timeout 60 "$work/naive" >"$work/naive.out"; then fail "the negative control is right: the test proves nothing"; fi
grep -c WRONG "$work/naive.out" | sed 's/$/ computations wrong, as expected/'

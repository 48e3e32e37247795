#!/bin/bash
# Every loop yields at every level of optimisation; a plain load shows that the test would notice.
. "$(dirname "$0")/lib.sh"
plain_objects
clang-19 -O1 -I"$runtime" -c "$test_dir/yield.c" -o "$work/yield.o"
parts=("$work/yield.o" "$work/stub.o" "$work/outside.o")

run() { # NAME FLAGS…
  local name=$1; shift
  say "== $name"
  "$bin/headway-cc" "$@" -I"$test_dir" "$test_dir"/{loops,pong}.c "${parts[@]}" -lpthread -o "$work/loops"
  timeout 60 "$work/loops" || fail "$name"
}

run "-O0" -O0
run "-O1" -O1
run "-O2" -O2
run "-O3" -O3
run "-O3 -march=native" -O3 -march=native
run "-O2 -flto" -O2 -flto
run "-O2 -fPIC, distance 500" -O2 -fPIC -mllvm -headway-probe-distance=500
run "-O2, TSC probes" -O2 -mllvm -headway-probe=tsc

say "== negative control: a plain load, put in before the optimiser (these are to fail)"
"$bin/headway-cc" -O3 -mllvm -headway-naive-plain-load -I"$test_dir" "$test_dir"/{loops,pong}.c "${parts[@]}" -lpthread -o "$work/naive"
timeout 60 "$work/naive" --never call_free,one_long_vector_loop || fail "the negative control yields: the test proves nothing"

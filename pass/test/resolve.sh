#!/bin/bash
# The runtime in a shared library, found by the loader when the first probe is taken, and not before.
. "$(dirname "$0")/lib.sh"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
clang-19 -O1 -fPIC -shared -I"$runtime" "$test_dir/resolve_runtime.c" "$work/stub.o" -o "$work/libruntime.so"

say "== code for executables names the words' place, other code looks it up"
reads() { # WHAT FLAGS…
  local what=$1; shift
  "$bin/headway-cc" -O2 "$@" -I"$runtime" -S "$test_dir/resolve.c" -o "$work/resolve.s"
  grep -qi -- "$what" "$work/resolve.s" || fail "no $what with $*"
}
reads '%fs:__headway_preempt@TPOFF' -fPIE
reads '%fs:__headway_preempt@TPOFF' -fno-pic
reads '__headway_preempt@gottpoff' -fPIC
reads 'subq.*%fs:__headway_self@TPOFF+16' -fPIE -mllvm -headway-probe=tsc
reads '__headway_self@gottpoff' -fPIC -mllvm -headway-probe=tsc

run() { # NAME FLAGS…
  local name=$1; shift
  say "== $name"
  "$bin/headway-cc" "$@" -Wl,-z,lazy -I"$runtime" "$test_dir/resolve.c" -L"$work" -lruntime -Wl,-rpath,"$work" -o "$work/resolve"
  env -u LD_BIND_NOW timeout 20 "$work/resolve" || fail "$name"
}

run "-O2" -O2
run "-O2, TSC probes" -O2 -mllvm -headway-probe=tsc
run "-O2 -fPIC, TSC probes" -O2 -fPIC -mllvm -headway-probe=tsc
run "-O2 -fno-pic -no-pie" -O2 -fno-pic -no-pie
run "-O2 -fPIC" -O2 -fPIC
run "-O2 -flto" -O2 -flto
run "-O0 -fno-pic -no-pie" -O0 -fno-pic -no-pie

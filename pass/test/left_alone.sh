#!/bin/bash
# HEADWAY_NO_PROBES keeps probes out of a function, and out of what the optimiser makes of it: clones, parts of a coroutine.
. "$(dirname "$0")/lib.sh"
cat >"$work/clones.c" <<'C'
#include "headway_probes.h"
static int a(int x) { return x * 3 + 1; }
static int b(int x) { return x ^ 5; }
HEADWAY_NO_PROBES static unsigned f(int (*call)(int), unsigned n) {
  unsigned s = 0;
  for (unsigned i = 0; i < n; i++) s = s * 3 + call(s + i);
  return s;
}
int main(int c, char **v) { return f(a, c * 1000000) + f(b, c * 1000000); }
C
cat >"$work/parts.cc" <<'C'
#include "headway_probes.h"
#include <coroutine>
struct gen {
  struct promise_type {
    unsigned value;
    gen get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(unsigned v) { value = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};
HEADWAY_NO_PROBES gen g(unsigned n) {
  unsigned s = 1;
  for (int k = 0; k < 3; k++) {
    for (unsigned i = 0; i < n; i++) s = (s ^ i) * 31;
    co_yield s;
  }
}
C
bare() { # WHAT OBJECT
  nm "$2" | grep -c "$1" >/dev/null || fail "the optimiser makes no $1 any more: the test proves nothing"
  ! probed "$2" | grep "$1" || fail "$1 has probes"
}
for level in -O1 -O2 -O3; do
  say "== $level: clones for each function that is handed over"
  "$bin/headway-cc" "$level" -I"$runtime" -c "$work/clones.c" -o "$work/clones.o"
  bare 'f\.specialized' "$work/clones.o"
done
say "== the parts of a coroutine"
"$bin/headway-c++" -std=c++20 -O2 -I"$runtime" -c "$work/parts.cc" -o "$work/parts.o"
bare '\.resume' "$work/parts.o"

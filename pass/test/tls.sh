#!/bin/bash
# Thread-local objects in code with probes: emulated ones, models that the loader serves, aliases.
. "$(dirname "$0")/lib.sh"

say "== emulated thread-local objects are reached by calls"
cat >"$work/emulated.c" <<'C'
__thread int x = 3;
static __thread int y = 4;
int main(int c, char **v) {
  for (int i = 0; i < c * 1000; i++) x += y;
  return x != 4003;
}
C
"$bin/headway-cc" -femulated-tls -O2 "$work/emulated.c" -o "$work/emulated" || fail "-femulated-tls does not link"
timeout 20 "$work/emulated" || fail "-femulated-tls"
"$bin/headway-cc" -femulated-tls -fno-emulated-tls -O2 -S "$work/emulated.c" -o "$work/emulated.s"
grep -qi gottpoff "$work/emulated.s" || fail "-fno-emulated-tls"

# The program has the thread's words, so the shared object's own block of thread-local objects is the loader's to place.
say "== a shared object of the local-dynamic model, larger than the room for the initial-exec one"
printf 'static __thread char big[200000];\nchar *at(int n) { for (int i = 0; i < n; i++) big[i] = i; return big; }\n' >"$work/big.c"
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char **v) { for (int i = 1; i < c; i++) if (!dlopen(v[i], RTLD_NOW)) return puts(dlerror()); return 0; }\n' >"$work/open.c"
"$bin/headway-cc" -rdynamic "$work/open.c" -o "$work/open"
"$bin/headway-cc" -O2 -fPIC -ftls-model=local-dynamic -shared "$work/big.c" -o "$work/libbig.so"
"$work/open" "$work/libbig.so" || fail "local-dynamic"

say "== an alias's address is computed again behind each probe"
cat >"$work/alias.c" <<'C'
__thread int a;
extern __thread int b __attribute__((alias("a")));
void g(int);
unsigned f(unsigned n) {
  for (unsigned i = 0; i < n; i++) { g(0); b += i; }
  return 0;
}
C
"$bin/headway-cc" -O2 -fPIC -S "$work/alias.c" -o "$work/alias.s"
grep -q '__headway_address_of\.b' "$work/alias.s" || fail "the alias's address is kept"

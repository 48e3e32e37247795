#!/bin/bash
# What does not fit or is missing is refused in plain words that say what to do.
. "$(dirname "$0")/lib.sh"
echo 'int f(int x) { return x; }' >"$work/a.c"

refused() { # WORDS COMMAND…
  local words=$1 said; shift
  if said=$("$@" 2>&1); then fail "not refused: $*"; fi
  grep -qF "$words" <<<"$said" || { say "$said"; fail "expected: $words"; }
  say "refused: $(head -1 <<<"$said" | sed "s|$work|…|g")"
}

say "== a clang of another version"
printf '#!/bin/sh\necho 22.1.0\n' >"$work/clang-other"
chmod +x "$work/clang-other"
refused "the pass is built for clang 19" env HEADWAY_CLANG="$work/clang-other" "$bin/headway-cc" -c "$work/a.c" -o "$work/a.o"

say "== a plugin for another LLVM in the place of the right one"
mkdir "$work/wrong"
cp "${HEADWAY_PASS_DIR:-$bin/../../target/pass/lib}/headway-pass-22.so" "$work/wrong/headway-pass-19.so"
refused "is not built for LLVM 19" env HEADWAY_PASS_DIR="$work/wrong" "$bin/headway-cc" -c "$work/a.c" -o "$work/a.o"

say "== no plugin, no clang"
mkdir -p "$work/alone/bin"
cp -P "$bin"/* "$work/alone/bin/"
refused "make pass" env -u HEADWAY_PASS_DIR "$work/alone/bin/headway-cc" -c "$work/a.c" -o "$work/a.o"
refused "is not there" env HEADWAY_CLANG=no-such-clang "$bin/headway-cc" -c "$work/a.c" -o "$work/a.o"

say "== another machine"
refused "x86-64 ELF only" "$bin/headway-cc" --target=aarch64-linux-gnu -c "$work/a.c" -o "$work/a.o"

refused "x86-64 ELF only" "$bin/headway-cc" -mx32 -c "$work/a.c" -o "$work/a.o"

say "== an option that does not exist"
refused "headway-probe" "$bin/headway-cc" -mllvm -headway-probe=bell -c "$work/a.c" -o "$work/a.o"
refused "expected flag or tsc" env HEADWAY_PROBE=bell "$bin/headway-cc" -c "$work/a.c" -o "$work/a.o"

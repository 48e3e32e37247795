#!/bin/bash
# The wrappers take what clang takes, without a word, also where nothing is linked but no -c says so.
. "$(dirname "$0")/lib.sh"
cd "$work"
printf 'int f(int);\n' >a.h
printf 'int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += s * i + 1; return s; }\nint main(int c, char **v) { return f(c) != 1; }\n' >a.c
printf -- '-c -O2\n' >objects
printf 'a.o -o linked\n' >linked.rsp

good() { # COMMAND…
  local said
  said=$("$@" 2>&1) || { say "$said"; fail "$*"; }
  [ -z "$said" ] || { say "$said"; fail "not silent: $*"; }
}

say "== precompiled headers"
for header in "a.h -o a.h.gch" "-x c-header a.h -o a.h.pch" "-xc-header a.h -o a.h.pch"; do
  # shellcheck disable=SC2086
  good "$bin/headway-cc" -Werror $header
done
good "$bin/headway-c++" -Werror -x c++-header a.h -o a.h.pch
say "== response files, which say more than the command line"
good "$bin/headway-cc" -Werror @objects a.c -o a.o
good "$bin/headway-cc" -Werror @linked.rsp
./linked || fail "linked by a response file"
say "== trees of syntax, and the analyser"
good "$bin/headway-cc" -Werror -emit-ast a.c -o a.ast
good "$bin/headway-cc" -Werror --analyze a.c -o a.plist

#!/bin/bash
# `cargo headway` builds a crate with the pass: its programs yield, its caches stay apart, and what does not fit is refused.
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null || { say "SKIPPED cargo: no cargo"; exit 0; }
build=${HEADWAY_BUILD_DIR:?is set by ctest}
root=$(realpath "$test_dir/../..")
(cd "$root" && cargo build --locked -q -p cargo-headway)
cp "${CARGO_TARGET_DIR:-$root/target}/debug/cargo-headway" "$work/"
unset HEADWAY_PASS_DIR CARGO_TARGET_DIR
cp -r "$test_dir/rust" "$work/rust"
cp "$root/rust-toolchain.toml" "$work/rust/"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
clang-19 -O1 -I"$runtime" -c "$test_dir/rust/watch.c" -o "$work/watch.o"
export RUSTFLAGS="-Clink-arg=$work/stub.o -Clink-arg=$work/watch.o" PATH="$work:$PATH"
cd "$work/rust"
headway() { timeout 120 cargo headway "$@"; }
refused() { # WORDS COMMAND…
  local words=$1 said; shift
  if said=$("$@" 2>&1); then fail "not refused: $*"; fi
  grep -qF -- "$words" <<<"$said" || { say "$said"; fail "expected: $words"; }
  say "refused: $(head -1 <<<"$said" | sed "s|$work|…|g")"
}

say "== no pass anywhere"
command -v headway-rustc >/dev/null || refused "make install-pass" headway build

say "== installed: its own target directory, and the exit status of what it runs"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
export HEADWAY_PASS_DIR=$work/prefix/lib/headway
headway build --release --offline -q
timeout 60 target/headway/release/yielding || fail "flag probes"
! headway run --release --offline -q -- --without-probes >"$work/said" || fail "a run that fails is reported as good"
grep -q "WRONG" "$work/said" || fail "it did not run"
[ "$(find target -name yielding -perm -100 -type f -path '*release/yielding' | wc -l)" = 1 ] || fail "built twice"

say "== other probes beside them, of one crate; a report of a whole build"
headway --probe tsc run --distance 2000 --crates yielding --release --offline -q
[ -x target/headway/tsc-every-2000-in-yielding/release/yielding ] || fail "no directory of its own"
for time in first second; do
  headway build --release --offline -q --report reports
  grep -q '"reason": "strip-mined-loop"' reports/*.json || fail "no report the $time time"
  rm -r reports
done

say "== another pass: what the old one compiled is not kept"
touch "$HEADWAY_PASS_DIR/headway-pass-22.so"
said=$(headway build --release --offline 2>&1) || fail "$said"
grep -q "the compiler pass has changed" <<<"$said" || fail "$said"
grep -q "Compiling yielding" <<<"$said" || fail "$said"

say "== what does not fit"
printf '#!/bin/sh\necho "LLVM version: 21.1.0"\n' >"$work/rustc-other"
chmod +x "$work/rustc-other"
refused "the pass is built for LLVM 22" env RUSTC="$work/rustc-other" cargo headway build
refused "#[headway::preemptible]" env RUSTC="$work/rustc-other" cargo headway build
refused "did you mean 'yielding'?" headway build --crates yeilding
refused "did you mean 'build'?" headway biuld

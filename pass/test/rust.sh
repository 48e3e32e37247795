#!/bin/bash
# The pinned stock toolchain loads the plugin for the user's crates only, and they yield.
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null || { say "SKIPPED rust: no cargo"; exit 0; }
cp -r "$test_dir/rust" "$work/rust"
cp "$test_dir/../../rust-toolchain.toml" "$work/rust/"
clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
clang-19 -O1 -I"$runtime" -c "$test_dir/rust/watch.c" -o "$work/watch.o"
cd "$work/rust"

build() { # TARGET-DIR ENVIRONMENT…
  local target=$1; shift
  env "$@" RUSTC_WRAPPER="$bin/headway-rustc" CARGO_TARGET_DIR="$work/$target" \
    RUSTFLAGS="-Clink-arg=$work/stub.o -Clink-arg=$work/watch.o" timeout 120 cargo build --offline --release -q
}

say "== flag probes"
build with HEADWAY_CRATES=yielding HEADWAY_REPORT="$work/report.json"
timeout 60 "$work/with/release/yielding" || fail "Rust with flag probes"
grep -q '"reason": "strip-mined-loop"' "$work/report.json" || fail "the report of the Rust crate has no loop"

for lto in thin fat; do
  say "== lto = $lto: the probes look at the runtime's word, and what is linked with the crate has none"
  build "$lto" HEADWAY_CRATES=yielding CARGO_PROFILE_RELEASE_LTO="$lto"
  timeout 60 "$work/$lto/release/yielding" || fail "Rust with lto = $lto"
  others=$(probed "$work/$lto/release/yielding" | grep -vE 'yielding|<main>') || true
  [ -z "$others" ] || fail "probes outside the crate: $(head -3 <<<"$others")"
done

say "== lto = thin: a library with probes in a program without"
build library HEADWAY_CRATES=plain CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_DEBUG=false
probed "$work/library/release/yielding" | grep plain >"$work/names" || fail "the library has no probes"

say "== TSC probes, no list: every crate outside cargo's own directory"
build tsc HEADWAY_PROBE=tsc HEADWAY_PROBE_DISTANCE=2000
timeout 60 "$work/tsc/release/yielding" || fail "Rust with TSC probes"

say "== control: no probes"
build without HEADWAY_PROBES=off
timeout 60 "$work/without/release/yielding" --without-probes || fail "yields without probes?"

say "== a toolchain on another LLVM"
printf '#!/bin/sh\necho "LLVM version: 21.1.0"\n' >"$work/rustc-other"
chmod +x "$work/rustc-other"
if said=$("$bin/headway-rustc" "$work/rustc-other" --crate-name x x.rs 2>&1); then fail "not refused"; fi
grep -qF "the pass is built for LLVM 22" <<<"$said" || fail "$said"
say "refused: $(head -1 <<<"$said" | sed "s|$work|…|g")"

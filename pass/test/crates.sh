#!/bin/bash
# `cargo headway` in a workspace: a library with probes is linked into build scripts, procedural macros, programs without
# probes, and documentation tests; vendored and fetched dependencies have none.
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null || { say "SKIPPED crates: no cargo"; exit 0; }
root=$(realpath "$test_dir/../..")
(cd "$root" && cargo build --locked -q -p cargo-headway)
cp "${CARGO_TARGET_DIR:-$root/target}/debug/cargo-headway" "$work/"
export PATH="$work:$PATH"
unset CARGO_TARGET_DIR RUSTFLAGS RUSTDOCFLAGS CARGO_ENCODED_RUSTDOCFLAGS
headway() { timeout 120 cargo headway "$@"; }
has_probes() { nm "$1" 2>/dev/null | grep -c __headway_preempted >/dev/null; }

# Writes a package: its folder, what follows in its manifest, its source.
package() { # NAME MANIFEST SOURCE-FILE <SOURCE
  mkdir -p "$work/ws/$1/src"
  printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n%b' "$1" "$2" >"$work/ws/$1/Cargo.toml"
  cat >"$work/ws/$1/src/$3"
}
loop='let mut x = n; while x % 1_000_003 != 7 { x = x.wrapping_mul(6364136223846793005).wrapping_add(n | 1); } x'
package library "" lib.rs <<R
/// \`\`\`
/// assert_eq!(library::work(7) % 1_000_003, 7);
/// \`\`\`
#[inline(never)]
pub fn work(n: u64) -> u64 { $loop }
R
package vendored "" lib.rs <<<"#[inline(never)] pub fn work(n: u64) -> u64 { $loop }"
package pm '[lib]\nproc-macro = true\n[dependencies]\nlibrary = { path = "../library" }\n' lib.rs <<'R'
use proc_macro::TokenStream;
#[proc_macro]
pub fn seven(_: TokenStream) -> TokenStream { format!("{}", library::work(7) % 1_000_003).parse().unwrap() }
R
package app '[dependencies]\nlibrary = { path = "../library" }\npm = { path = "../pm" }\nvendored = "0.1"\n[build-dependencies]\nlibrary = { path = "../library" }\n' \
  main.rs <<<'fn main() { println!("{}", library::work(pm::seven!()) % 1_000_003 + vendored::work(7) % 1_000_003); }'
printf 'fn main() { assert_eq!(library::work(7) %% 1_000_003, 7); }\n' >"$work/ws/app/build.rs"
cd "$work/ws"
mkdir vendor .cargo
mv vendored vendor/
printf '{"files":{}}' >vendor/vendored/.cargo-checksum.json
printf '[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "vendor"\n' >.cargo/config.toml
printf '[workspace]\nresolver = "2"\nmembers = ["app", "library", "pm"]\n' >Cargo.toml
cp "$root/rust-toolchain.toml" .

say "== a build script and a procedural macro that use the library; vendored code has no probes"
headway build --offline -q
[ "$(target/headway/debug/app)" = 14 ] || fail "app"
has_probes target/headway/debug/deps/liblibrary-*.rlib || fail "the library has no probes"
! has_probes target/headway/debug/deps/libvendored-*.rlib || fail "vendored code has probes"

say "== a program that is not named, with a library that is"
headway build --offline -q --crates library
[ "$(target/headway/in-library/debug/app)" = 14 ] || fail "app without probes"

say "== documentation tests, with the user's own flags kept"
headway test --offline -q -p library >"$work/said" 2>&1 || { cat "$work/said"; fail "doctest"; }
RUSTDOCFLAGS="--cfg theirs" headway test --offline -q -p library --doc >"$work/said" 2>&1 || { cat "$work/said"; fail "doctest with RUSTDOCFLAGS"; }

say "== another folder of cargo's, named with a slash at its end: what lies there is fetched"
mkdir -p "$work/home/registry/src/index/fetched"
cp -r vendor/vendored/src "$work/home/registry/src/index/fetched/"
cd "$work/home/registry/src/index/fetched"
built() { # CARGO_HOME
  CARGO_HOME=$1 CARGO_MANIFEST_DIR=$PWD "$bin/headway-rustc" "$(rustc --print sysroot)/bin/rustc" --crate-name fetched --crate-type lib \
    -Copt-level=1 --emit=obj -o "$work/fetched.o" src/lib.rs
}
built "$work/home/"
! has_probes "$work/fetched.o" || fail "a fetched crate has probes"
built "$work/elsewhere"
has_probes "$work/fetched.o" || fail "the test proves nothing"

say "== with a wrapper of the workspace in front of rustc"
printf '#!/bin/sh\nexec "$@"\n' >"$work/wrap"
chmod +x "$work/wrap"
cd "$work/ws"
CARGO_TARGET_DIR=wrapped RUSTC_WORKSPACE_WRAPPER="$work/wrap" headway build --offline -q -p library || fail "RUSTC_WORKSPACE_WRAPPER"
has_probes wrapped/headway/debug/deps/liblibrary-*.rlib || fail "no probes behind a wrapper"

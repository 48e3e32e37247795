#!/bin/bash
# Installed somewhere, the wrappers, CMake and pkg-config build the examples, with probes in them.
. "$(dirname "$0")/lib.sh"
build=${HEADWAY_BUILD_DIR:?is set by ctest}
unset HEADWAY_PASS_DIR
prefix=$work/prefix examples=$(realpath "$test_dir/../examples")
cmake --install "$build" --prefix "$prefix" >/dev/null

has_probes() {
  nm "$1" | grep -q __headway_preempted || fail "$1 has no probes"
  readelf --notes "$1" | grep -q '^  Headway ' || fail "$1 does not say that it has probes"
}
finds_primes() {
  has_probes "$1"
  [ "$("$1" 100000)" = "9592 primes below 100000" ] || fail "$1 is wrong"
}
finds_anagrams() {
  has_probes "$1"
  [ "$(printf 'listen silent enlist once tea eat\n' | "$1")" = "listen silent enlist " ] || fail "$1 is wrong"
}

say "== the wrappers: in one step, by objects, with -flto, in a shared object"
"$prefix/bin/headway-cc" -O2 -Wall -Werror "$examples/c/primes.c" -o "$work/primes"
finds_primes "$work/primes"
"$prefix/bin/headway-c++" -O2 -std=c++17 -Wall -Werror -I"$prefix/include" -c "$examples/cpp/anagrams.cc" -o "$work/anagrams.o"
"$prefix/bin/headway-c++" -Werror "$work/anagrams.o" -o "$work/anagrams"
finds_anagrams "$work/anagrams"
"$prefix/bin/headway-cc" -O2 -flto "$examples/c/primes.c" -o "$work/primes"
finds_primes "$work/primes"
"$prefix/bin/headway-cc" -O2 -fPIC -shared -Wl,--no-undefined "$examples/c/primes.c" -o "$work/libprimes.so"
has_probes "$work/libprimes.so"
"$prefix/bin/headway-cc" -O2 -S "$examples/c/primes.c" -o "$work/primes.s"
grep -q __headway_preempted "$work/primes.s" || fail "-S has no probes"
"$prefix/bin/headway-cc" --version >/dev/null
HEADWAY_PROBES=off "$prefix/bin/headway-cc" -O2 -c "$examples/c/primes.c" -o "$work/bare.o"
! nm "$work/bare.o" | grep -q headway || fail "HEADWAY_PROBES=off has probes"

say "== CMake: find_package, and the toolchain file"
CC=clang-19 CXX=clang++-19 cmake -G Ninja -S "$examples" -B "$work/package" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release -DHEADWAY_PROBE=flag >/dev/null
ninja -C "$work/package" >/dev/null
finds_primes "$work/package/primes"
finds_anagrams "$work/package/anagrams"
if said=$(CC=cc CXX=c++ cmake -G Ninja -S "$examples" -B "$work/gcc" -DCMAKE_PREFIX_PATH="$prefix" 2>&1); then
  fail "find_package takes any compiler"
fi
grep -q "built for clang 19" <<<"$said" || { say "$said"; fail "find_package does not say why"; }
mkdir "$work/untouched"
printf 'cmake_minimum_required(VERSION 3.20)\nproject(u LANGUAGES C)\nadd_executable(primes %s)\n' "$examples/c/primes.c" \
  >"$work/untouched/CMakeLists.txt"
cmake -G Ninja -S "$work/untouched" -B "$work/untouched/build" \
  -DCMAKE_TOOLCHAIN_FILE="$prefix/lib/cmake/Headway/headway-toolchain.cmake" >/dev/null
ninja -C "$work/untouched/build" >/dev/null
finds_primes "$work/untouched/build/primes"

say "== a prefix with a space: CMake and the wrappers take it, rustc cannot"
spaced="$work/a prefix"
cmake --install "$build" --prefix "$spaced" >/dev/null
"$spaced/bin/headway-cc" -O2 "$examples/c/primes.c" -o "$work/primes"
finds_primes "$work/primes"
CC=clang-19 CXX=clang++-19 cmake -G Ninja -S "$examples" -B "$work/spaced" -DCMAKE_PREFIX_PATH="$spaced" \
  -DHEADWAY_REPORT="$work/a report.json" >/dev/null
ninja -C "$work/spaced" primes >/dev/null || fail "find_package with a space"
finds_primes "$work/spaced/primes"
[ -e "$work/a report.json" ] || fail "no report at a path with a space"
printf '#!/bin/sh\necho "LLVM version: 22.1.0"\n' >"$work/rustc"
chmod +x "$work/rustc"
if said=$("$spaced/bin/headway-rustc" "$work/rustc" --crate-name x x.rs 2>&1); then fail "not refused: $said"; fi
grep -qF "path with a space" <<<"$said" || { say "$said"; fail "headway-rustc does not say why"; }

say "== pkg-config"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  # shellcheck disable=SC2046
  clang-19 -O2 "$examples/c/primes.c" $(pkg-config --cflags --libs headway-pass) -o "$work/primes"
  finds_primes "$work/primes"
else
  say "no pkg-config here: left out"
fi

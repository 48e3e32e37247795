# What the tests share. Sourced by bash scripts: `test_dir`, `bin` and a scratch directory `work`.
set -euo pipefail
test_dir=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
bin=$(realpath "$test_dir/../bin")
runtime=$(realpath "$test_dir/../runtime")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '%s\n' "$*"; }
fail() { say "FAILED: $*"; exit 1; }

# The functions of an object or a program that have probes.
probed() {
  objdump -d --no-show-raw-insn "$1" | awk '/^[0-9a-f]+ </ { name = $2 } /call +\*%r11/ { print name }' | sort -u
}

# The parts that have no probes: the tests' runtime, and what instrumented code calls out to.
plain_objects() {
  clang-19 -c "$test_dir/stub.S" -o "$work/stub.o"
  clang-19 -O1 -I"$test_dir" -I"$runtime" -c "$test_dir/outside.c" -o "$work/outside.o"
}

# Shared by headway-cc, headway-c++ and headway-rustc: finds what they need beside themselves or
# installed, and says what is missing. Sourced by bash; `here` is the directory of the wrapper.

# Where the plugins and libheadway_probes.a are: as the user says, installed, or built in the source tree.
headway_lib_dirs() {
  [ -z "${HEADWAY_PASS_DIR:-}" ] || echo "$HEADWAY_PASS_DIR"
  echo "$here/../lib/headway"
  echo "$here/../../target/pass/lib"
}

headway_fail() {
  echo "$(basename "$0"): $1" >&2
  [ -z "${2:-}" ] || echo "$(basename "$0"): $2" >&2
  exit 1
}

# headway_find FILE HOW-TO-GET-IT: prints the path of FILE.
headway_find() {
  local dir
  while read -r dir; do
    if [ -e "$dir/$1" ]; then
      realpath "$dir/$1"
      return
    fi
  done < <(headway_lib_dirs)
  headway_fail "$1 is in none of: $(headway_lib_dirs | tr '\n' ' ')" "$2"
}

# headway_plugin LLVM-MAJOR HOW-TO-GET-IT: prints the path of the plugin for that LLVM. One that was
# built for another would fail to load with a list of symbols.
headway_plugin() {
  local plugin
  plugin=$(headway_find "headway-pass-$1.so" "$2") || exit 1
  grep -aq "headway pass built for LLVM $1\." "$plugin" ||
    headway_fail "$plugin is not built for LLVM $1" "build it again: make pass"
  echo "$plugin"
}

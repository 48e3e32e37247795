#!/bin/bash
# Makes sure that what the compiler pass is built and tested with is there, or the packages named: as root
# from Debian's packages, else it says what is missing and fails.
set -euo pipefail

packages=("$@")
[ $# -gt 0 ] || packages=(clang-19 llvm-19-dev llvm-22-dev libclang-rt-19-dev cmake ninja-build)

missing() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

want=$(missing | tr '\n' ' ')
[ -n "$want" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "needs: apt-get install $want(as root)"
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get -qq install -y --no-install-recommends $want >/dev/null 2>&1 ||
  { apt-get -qq update >/dev/null 2>&1 && apt-get -qq install -y --no-install-recommends $want >/dev/null; } ||
  { echo "apt-get install $want failed: no such packages in the machine's archives, or no way to them"; exit 1; }

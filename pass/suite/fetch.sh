#!/bin/bash
# Fetches source packages of the distribution, the authors' files of each into DIRECTORY/PACKAGE, from the archive that this machine's
# own configuration names. Nothing of them is kept in the repository. Prints "PACKAGE: why not" for each that cannot be had, and fails.
#
# The distribution's additions and patches are left out.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: fetch.sh DIRECTORY PACKAGE…"; exit 2; }
directory=$1
shift
wanted=()
for package in "$@"; do [ -d "$directory/$package" ] || wanted+=("$package"); done
[ ${#wanted[@]} -gt 0 ] || exit 0
here=$(realpath "$(dirname "$0")")

none() {
  printf "%s: $1\n" "${wanted[@]}"
  exit 1
}
command -v apt-get >/dev/null || none "source packages of Debian need a machine with apt-get"
why=$("$here/../packages.sh" dpkg-dev xz-utils) || none "${why//%/%%}"

# "package | version | archive suite/component architecture Packages", of a package that every archive of the distribution has
archive_of_distribution() {
  apt-cache madison zlib1g-dev | tail -1 | cut -d'|' -f3
}
line=$(archive_of_distribution)
if [ -z "$line" ] && [ "$(id -u)" = 0 ]; then
  apt-get -qq update >/dev/null 2>&1 || true
  line=$(archive_of_distribution)
fi
[ -n "$line" ] || none "no archive of this machine has zlib1g-dev (apt-get update as root?)"
read -r archive suite _ <<<"$line"

# A sources list and its state of our own: the machine's may leave source packages out.
mkdir -p "$directory/lists/partial"
cd "$directory"
echo "deb-src $archive ${suite%/*} ${suite#*/}" >sources.list
options=(-qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/lists")
[ "$(id -u)" != 0 ] || options+=(-o APT::Sandbox::User=root)
apt-get "${options[@]}" update >fetch.log 2>&1 || none "no source packages from $archive"

failed=0
for package in "${wanted[@]}"; do
  rm -rf download unpacked
  mkdir download unpacked
  if (cd download && apt-get "${options[@]}" source --download-only --tar-only "$package") >>fetch.log 2>&1; then
    tar -xf download/*.orig.tar.* -C unpacked --strip-components=1
    mv unpacked "$package"
  else
    echo "$package: its source cannot be had from $archive: $(grep '^E:' fetch.log | tail -1)"
    failed=1
  fi
done
rm -rf download unpacked
exit $failed

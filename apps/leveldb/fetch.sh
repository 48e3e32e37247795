#!/bin/bash
# Fetches LevelDB as the distribution packages it into DIRECTORY/leveldb, from the archive that this machine's own configuration
# names. Nothing of it is kept in the repository. Says what is missing and fails where it cannot be had.
#
# Of the distribution's patches one is applied: it lets CMakeLists.txt find the installed GoogleTest. LevelDB's own files stay as its
# authors wrote them.
set -euo pipefail
directory=${1:?usage: fetch.sh DIRECTORY}
[ ! -d "$directory/leveldb" ] || exit 0
root=$(realpath "$(dirname "$0")/../..")
readonly GTEST_PATCH=debian/patches/0120-external_testing.patch

command -v apt-get >/dev/null || { echo "LevelDB's source package needs a machine with apt-get"; exit 1; }
"$root/pass/packages.sh" dpkg-dev

# "package | version | archive suite/component architecture Packages"
archive_of_leveldb() {
  apt-cache madison libleveldb-dev | head -1 | cut -d'|' -f3
}
line=$(archive_of_leveldb)
if [ -z "$line" ] && [ "$(id -u)" = 0 ]; then
  apt-get -qq update >/dev/null 2>&1 || true
  line=$(archive_of_leveldb)
fi
[ -n "$line" ] || { echo "no archive of this machine has libleveldb-dev (apt-get update as root?)"; exit 1; }
read -r archive suite _ <<<"$line"

# A sources list and its state of our own: the machine's may leave source packages out.
mkdir -p "$directory/lists/partial"
cd "$directory"
echo "deb-src $archive ${suite%/*} ${suite#*/}" >sources.list
options=(-qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/lists")
[ "$(id -u)" != 0 ] || options+=(-o APT::Sandbox::User=root)
rm -rf leveldb_* unpacked
if ! { apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only leveldb; } >fetch.log 2>&1; then
  echo "the source package of LevelDB cannot be had from $archive: $(tail -1 fetch.log)"
  exit 1
fi
dpkg-source --no-check --skip-patches -x leveldb_*.dsc unpacked >>fetch.log 2>&1
[ ! -e "unpacked/$GTEST_PATCH" ] || patch -s -p1 --no-backup-if-mismatch -d unpacked <"unpacked/$GTEST_PATCH" >>fetch.log
mv unpacked leveldb

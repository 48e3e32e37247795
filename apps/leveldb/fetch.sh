#!/bin/bash
# Fetches LevelDB as the distribution packages it (source package, patches applied) into DIRECTORY/leveldb, from the archive that
# this machine's own configuration names. Nothing of it is kept in the repository.
set -euo pipefail
directory=${1:?usage: fetch.sh DIRECTORY}
[ ! -d "$directory/leveldb" ] || exit 0
for tool in apt-get dpkg-source; do
  command -v "$tool" >/dev/null || { echo "needs $tool (Debian: apt-get install dpkg-dev)"; exit 1; }
done

# "package | version | archive suite/component architecture Packages"
read -r archive suite _ < <(apt-cache madison libleveldb-dev | head -1 | cut -d'|' -f3) || true
[ -n "${suite:-}" ] || { echo "no archive of this machine has libleveldb-dev: apt-get update"; exit 1; }
mkdir -p "$directory/lists/partial"
directory=$(realpath "$directory")
echo "deb-src $archive ${suite%/*} ${suite#*/}" >"$directory/sources.list"
options=(-qq -o "Dir::Etc::sourcelist=$directory/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$directory/lists")
[ "$(id -u)" != 0 ] || options+=(-o APT::Sandbox::User=root)
cd "$directory"
apt-get "${options[@]}" update
apt-get "${options[@]}" source leveldb
mv leveldb-[0-9]* leveldb

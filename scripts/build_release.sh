#!/bin/sh
# Builds the module of an earlier commit of this repository, to test upgrades from it.
#
#   scripts/build_release.sh <commit>      leaves build/releases/<commit>/build/ckv.so
set -eu
cd "$(dirname "$0")/.."

commit=$1
target=build/releases/$commit
[ -e "$target/build/ckv.so" ] && exit 0

git cat-file -e "$commit^{commit}" 2>/dev/null || {
    echo "build_release: $commit is not in this copy of the repository: its history is needed" \
        "(git fetch --unshallow, or a clone instead of an archive)" >&2
    exit 1
}
rm -rf "$target"
mkdir -p "$target/build"
git archive "$commit" | tar -x -C "$target"
# What was downloaded to build this one serves that one too.
mkdir -p build/deps
ln -s ../../../deps "$target/build/deps"
log=build/releases/$commit.log
echo "release: building the module of $commit, log in $log" >&2
if ! env -u MAKEFLAGS -u MFLAGS make -C "$target" build/ckv.so >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    exit 1
fi

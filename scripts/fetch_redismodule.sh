#!/bin/sh
# Gets redismodule.h out of Debian's redis source package: downloaded and unpacked, not built.
#
#   scripts/fetch_redismodule.sh <dest>     leaves <dest>/include/redismodule.h
#
# The newest header serves every server: it only declares functions, which are looked up by name when
# the module is loaded. So recent suites are asked, one after the other: a mirror may list a version that it
# does not have yet.
#
#   REDIS_SUITE=trixie   another suite to take it from
set -eu

dest=$1
here=$(dirname "$0")

for suite in ${REDIS_SUITE:-trixie sid}; do
    if folder=$("$here/fetch_source.sh" redis "$suite" "$dest" | tail -n 1) && [ -n "$folder" ]; then
        mkdir -p "$dest/include"
        cp "$folder/src/redismodule.h" "$dest/include/redismodule.h"
        echo "redismodule.h: from $folder" >&2
        exit 0
    fi
done
echo "cannot get redismodule.h; give its folder: make REDISMODULE_INCLUDE=<dir>" >&2
exit 1

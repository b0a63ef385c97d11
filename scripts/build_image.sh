#!/bin/sh
# Builds an image of image/Dockerfile, without a daemon and without a registry.
#
#   scripts/build_image.sh <server>        redis or valkey
#
# Leaves ckv-<server> in buildah's store below build/image, and build/image/ckv-<server>.tar for
# `docker load` and `podman load`. As root.
#
#   SUITE=trixie      the Debian suite whose server it has
#   BASE=<image>      a base from a registry; without it one is made of the suite's packages
set -eu
cd "$(dirname "$0")/.."

server=$1
suite=${SUITE:-trixie}
[ "$(id -u)" = 0 ] || {
    echo "build_image: only root can build an image without a daemon" >&2
    exit 1
}
mkdir -p build/image
store() { # <command> ...
    command=$1
    shift
    buildah --root "$PWD/build/image/store" --runroot "$PWD/build/image/run" --storage-driver vfs "$command" "$@"
}

base=${BASE:-localhost/ckv-base-$suite}
if [ -z "${BASE:-}" ] && ! store inspect --type image "$base" >/dev/null 2>&1; then
    echo "image: making $base" >&2
    mmdebstrap --quiet --variant=minbase --include=ca-certificates "$suite" build/image/base.tar >&2
    container=$(store from scratch)
    store add --quiet "$container" build/image/base.tar / >/dev/null
    store commit --quiet --rm "$container" "$base" >/dev/null
    rm build/image/base.tar
fi

# HEALTHCHECK is known to Docker's format only, which every engine reads.
echo "image: building ckv-$server, log in build/image/ckv-$server.log" >&2
if ! store bud --isolation=chroot --format=docker --layers=false --build-arg "BASE=$base" --build-arg "SERVER=$server" \
    --tag "ckv-$server" --file image/Dockerfile . >"build/image/ckv-$server.log" 2>&1 </dev/null; then
    tail -n 30 "build/image/ckv-$server.log" >&2
    exit 1
fi
rm -f "build/image/ckv-$server.tar"
store push --quiet "ckv-$server" "docker-archive:build/image/ckv-$server.tar:ckv-$server:latest"
ls -l "build/image/ckv-$server.tar" >&2

#!/bin/sh
# Debian's arm64 server and libraries, unpacked below build/arm64/root for qemu's user mode: nothing of
# them is installed. The suite is this machine's, as the cross compiler links against its C library.
set -eu
cd "$(dirname "$0")/.."

root=build/arm64/root
[ -e "$root/usr/bin/redis-server" ] && exit 0
suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || {
    echo "arm64_root: this is not Debian, whose packages and cross compiler belong together" >&2
    exit 1
}
mkdir -p build/arm64
rm -rf "$root"
echo "arm64: unpacking redis-server of $suite for arm64" >&2
mmdebstrap --quiet --architectures=arm64 --variant=extract --include=redis-server,libzstd-dev "$suite" "$root" >&2

#!/bin/sh
# Builds a Redis or Valkey server out of Debian's source package, to test the module with.
#
#   scripts/build_server.sh <name>=<package>/<suite>      e.g. valkey-9.1=valkey/sid
#
# Leaves build/servers/<name>/{redis-server,redis-cli,redis-benchmark}; Valkey's programs get these
# names too, and source is a link to where it was built from. It is upstream's source without Debian's
# patches, so its own copies of jemalloc, Lua and the rest are used and nothing else has to be installed.
# One job, unless JOBS=<n>. A <name> that ends in -asan or -tsan is built with AddressSanitizer or ThreadSanitizer, and libc's malloc.
set -eu
cd "$(dirname "$0")/.."

name=${1%%=*}
from=${1#*=}
package=${from%%/*}
suite=${from#*/}
target=build/servers/$name
case $name in
*-asan) allocator="MALLOC=libc SANITIZER=address" ;;
*-tsan) allocator="MALLOC=libc SANITIZER=thread" ;;
*) allocator=MALLOC=jemalloc ;;
esac

[ -x "$target/redis-server" ] && [ -e "$target/source" ] && exit 0

source=$(APT_DIR=build/deps/apt scripts/fetch_source.sh "$package" "$suite" build/servers/src |
    tail -n 1)
log=build/servers/$name.log
echo "servers: building $name from $source, log in $log" >&2
if ! make -C "$source/src" -j"${JOBS:-1}" BUILD_TLS=no USE_SYSTEMD=no $allocator CC="${CC:-cc}" CFLAGS= \
    "$package-server" "$package-cli" "$package-benchmark" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    exit 1
fi
mkdir -p "$target"
for program in server cli benchmark; do
    cp "$source/src/$package-$program" "$target/redis-$program"
done
ln -sfn "../src/${source##*/}" "$target/source"
# The objects take more room than the server; the sources stay to be read.
make -C "$source/src" distclean >/dev/null 2>&1 || true
"$target/redis-server" --version

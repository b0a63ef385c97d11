#!/bin/sh
# Installs the Debian package on this machine, starts a server that loads it the way its documentation
# says, and removes it again.
#
#   scripts/test_deb.sh build/redis-ckv_<version>_<arch>.deb        as root
set -eu

[ $# = 1 ] || { echo "test_deb: one package is wanted, not $#" >&2; exit 1; }
deb=$1
dir=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    dpkg --purge redis-ckv >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

fail() {
    echo "test_deb: $1" >&2
    [ ! -e "$dir/log" ] || tail -n 20 "$dir/log" >&2
    exit 1
}

if dpkg -s redis-ckv >/dev/null 2>&1; then
    trap - EXIT
    fail "redis-ckv is installed already: it would be removed"
fi
dpkg --install "$deb"
[ -e /usr/lib/redis/modules/ckv.so ] || fail "the module is not where it belongs"

cat >"$dir/redis.conf" <<CONF
port 0
unixsocket $dir/socket
dir $dir
logfile $dir/log
save ""
include /etc/redis/ckv.conf
CONF
redis-server "$dir/redis.conf" &
server=$!
cli() { redis-cli -s "$dir/socket" "$@"; }
for _ in $(seq 100); do
    if [ "$(cli PING 2>/dev/null)" = PONG ]; then break; fi
    sleep 0.1
done
[ "$(cli CSET greeting hello)" = OK ] || fail "CSET"
[ "$(cli CGET greeting)" = hello ] || fail "CGET"
ckv-estimate -s "$dir/socket" --json | grep -q bytes_with_ckv || fail "ckv-estimate"
cli SHUTDOWN NOSAVE 2>/dev/null || true
wait "$server" || true
server=

dpkg --purge redis-ckv
for left in /usr/lib/redis/modules/ckv.so /usr/bin/ckv-estimate /etc/redis/ckv.conf /usr/share/doc/redis-ckv; do
    [ ! -e "$left" ] || fail "$left is left behind"
done
echo "test_deb: installed, loaded, used and removed"
